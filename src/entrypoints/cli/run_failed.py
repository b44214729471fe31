"""The file of `--failed`: the lines that did not finish, ready to be run again."""

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO

from entrypoints.cli.run_options import RunOptions, UnusableOptionError
from entrypoints.cli.runner import Told


class FailedLines:
    """Written as they came, one after another. A line that was too long to be read is not among them."""

    def __init__(self, stack: ExitStack, options: RunOptions) -> None:
        self.count = 0
        self._file: BinaryIO | None = None
        if options.failed is None:
            return
        try:
            if options.failed.exists() and _is_in_use(options.failed, options):
                raise UnusableOptionError(f"--failed {options.failed}: is read, or is the database; name another")
            self._file = stack.enter_context(options.failed.open("wb"))
        except OSError as error:
            raise UnusableOptionError(f"--failed {options.failed}: {error.strerror}") from error

    def write(self, told: Told) -> None:
        """Raises `OSError`."""
        raw = told.line.raw
        if not raw:
            return
        self.count += 1
        if self._file is not None:
            self._file.write(raw if raw.endswith(b"\n") else raw + b"\n")
            self._file.flush()


def _is_in_use(failed: Path, options: RunOptions) -> bool:
    named = [Path(options.source), *(Path(f"{options.db}{ending}") for ending in ("", "-wal", "-shm"))]
    in_use = [path.stat() for path in named if path.exists()]
    with suppress(OSError, ValueError, AttributeError):  # standard input may be closed, or no file
        in_use.append(os.fstat(sys.stdin.fileno()))
    return any(os.path.samestat(failed.stat(), each) for each in in_use)
