"""What may be told of an unforeseen error: its type and place, never its text, which may hold payload values."""

import os
from traceback import extract_tb
from typing import Final

MAX_FRAMES: Final = 8


class UnexpectedError(Exception):
    """Stands for an error that leaves a worker: its text is the other one's type and place."""


def places(error: BaseException) -> list[str]:
    """`file:line function` of its innermost frames, the innermost last."""
    frames = extract_tb(error.__traceback__, limit=-MAX_FRAMES)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def described(error: BaseException) -> str:
    """Its type and places, in one line."""
    return " < ".join([type(error).__name__, *reversed(places(error))])


def without_text(error: BaseException) -> BaseException:
    """What may be raised in its place: without text, notes, cause and context, and with its traceback.

    An interrupt and an exit stay what they are, so that they end the process.
    """
    match error:
        case KeyboardInterrupt():
            bare: BaseException = KeyboardInterrupt()
        case SystemExit():
            bare = SystemExit(error.code if isinstance(error.code, int | None) else 1)
        case _:
            bare = UnexpectedError(described(error))
    return bare.with_traceback(error.__traceback__)


def texts_are_wanted() -> bool:
    """Whether `LOG_ERROR_MESSAGES` asks for the texts of errors, where there are no settings yet or any more."""
    return os.environ.get("LOG_ERROR_MESSAGES", "").strip().lower() in ("1", "true", "yes", "on")
