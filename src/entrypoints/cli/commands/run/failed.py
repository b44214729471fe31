"""The file of `--failed`: the lines that did not finish, ready to be run again."""

import os
from contextlib import ExitStack, suppress
from pathlib import Path
from stat import S_ISREG

from adapters.files.lines import JobLines
from adapters.files.runner import LineResult
from entrypoints.cli.commands.run.options import RunOptions
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.private_files import Replacement


class FailedLines:
    """Written as they came, one after another, into a file that takes the name when the run is over. A line that was
    too long to be read is not among them.
    """

    def __init__(self, stack: ExitStack, options: RunOptions, jobs: JobLines) -> None:
        self.count = 0
        self._file: Replacement | None = None
        if options.failed is None:
            return
        try:
            if options.failed.exists() and _is_in_use(options.failed, options, jobs):
                raise UnusableOptionError(f"--failed {options.failed}: is read, or is the database; name another")
            self._file = Replacement(options.failed)
            stack.callback(self._close, self._file)
        except OSError as error:
            raise UnusableOptionError(f"--failed {options.failed}: {error.strerror}") from error

    def write(self, told: LineResult) -> None:
        """Raises `OSError`."""
        raw = told.line.raw
        if not raw:
            return
        self.count += 1
        if self._file is not None:
            self._file.write(raw if raw.endswith(b"\n") else raw + b"\n")

    def finish(self) -> None:
        """Nothing more comes: the file takes its name. Raises `OSError`."""
        if self._file is not None:
            self._file.finish()

    @staticmethod
    def _close(file: Replacement) -> None:
        with suppress(OSError):  # after an error: what was written is kept if it can be
            file.finish()
        file.close()


def _is_in_use(failed: Path, options: RunOptions, jobs: JobLines) -> bool:
    named = [Path(f"{options.db}{ending}") for ending in ("", "-wal", "-shm")]
    in_use = [path.stat() for path in named if path.exists()]
    if jobs.state is not None:
        in_use.append(jobs.state)
    state = failed.stat()
    return S_ISREG(state.st_mode) and any(os.path.samestat(state, each) for each in in_use)
