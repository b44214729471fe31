"""How an operator command ends: every foreseeable error is one line that says what mends it, and an exit status."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Final

import typer
from botocore.exceptions import BotoCoreError

from adapters.files.lines import UnreadableFileError
from adapters.sqs.ports import QueueUnavailableError
from domain.errors import InvalidJobError, StoreUnavailableError, UnusableStoreError
from domain.identity import NAME
from entrypoints.cli.aws import AWS_ERRORS, explained, is_no_url, is_setting
from entrypoints.cli.errors import NothingDoneError, UnusableOptionError
from entrypoints.cli.output import say
from entrypoints.settings import SettingError

EXIT_PROBLEM: Final = 1
UNUSABLE: Final = 2
INTERRUPTED: Final = 130
QUEUE_URL: Final = re.compile(r"https?://[^\s/]+/[0-9]+/[A-Za-z0-9_-]{1,80}(\.fifo)?")


@contextmanager
def ended(command: str, on: str = "") -> Iterator[None]:
    """Every foreseeable error is a line on standard error and an exit status; `on` is what AWS was asked about."""
    try:
        yield
    except (SettingError, UnusableStoreError, UnusableOptionError, UnreadableFileError) as error:
        _end(command, str(error), UNUSABLE)
    except InvalidJobError as error:
        _end(command, f"no such job can be: {error}", UNUSABLE)
    except NothingDoneError as error:
        _end(command, str(error), EXIT_PROBLEM)
    except (StoreUnavailableError, QueueUnavailableError) as error:
        cause = error.__cause__
        text = explained(cause, on) if isinstance(cause, AWS_ERRORS) and cause is not None else str(error)
        _end(command, text, EXIT_PROBLEM)
    except AWS_ERRORS as error:
        if isinstance(error, ValueError) and not isinstance(error, BotoCoreError) and not is_no_url(error):
            raise  # a defect, whose place must be seen
        _end(command, explained(error, on), UNUSABLE if is_setting(error) else EXIT_PROBLEM)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:  # as from the refresh of credentials, or an answer that lacks what it is asked for
        _end(command, f"{explained(error, on)} ({place_of(error)})", EXIT_PROBLEM)


def checked_url(text: str, option: str) -> str:
    """The URL of a queue. Raises `UnusableOptionError`."""
    if not QUEUE_URL.fullmatch(text):
        raise UnusableOptionError(f"{option} {text}: expected the URL of an SQS queue")
    return text


def checked_namespace(text: str) -> str:
    """First part of each key. Raises `UnusableOptionError`."""
    if not NAME.fullmatch(text):
        raise UnusableOptionError(f"--namespace {text}: expected 1 to 64 of A-Z a-z 0-9 _ -")
    return text


def place_of(error: BaseException) -> str:
    """Where it was raised last in code of ours, for who reports it."""
    frames = [frame for frame in extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"


def _end(command: str, text: str, status: int) -> None:
    say(f"onejob {command}: {text}")
    raise typer.Exit(status) from None
