"""The file of `--failed`: the lines that did not finish, ready to be run again."""

import os
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from stat import S_ISREG

from adapters.job_lines import JobLines
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.run_options import RunOptions
from entrypoints.cli.runner import Told


class FailedLines:
    """Written as they came, one after another. A line that was too long to be read is not among them."""

    def __init__(self, stack: ExitStack, options: RunOptions, jobs: JobLines) -> None:
        self.count = 0
        self._file: FileIO | None = None
        if options.failed is None:
            return
        try:
            if options.failed.exists() and _is_in_use(options.failed, options, jobs):
                raise UnusableOptionError(f"--failed {options.failed}: is read, or is the database; name another")
            self._file = stack.enter_context(options.failed.open("wb", buffering=0))
        except OSError as error:
            raise UnusableOptionError(f"--failed {options.failed}: {error.strerror}") from error

    def write(self, told: Told) -> None:
        """Raises `OSError`."""
        raw = told.line.raw
        if not raw:
            return
        self.count += 1
        if self._file is not None:
            line = raw if raw.endswith(b"\n") else raw + b"\n"
            while line:  # unbuffered: what fails, fails here, and nothing is left for the closing
                line = line[self._file.write(line) :]


def _is_in_use(failed: Path, options: RunOptions, jobs: JobLines) -> bool:
    named = [Path(f"{options.db}{ending}") for ending in ("", "-wal", "-shm")]
    in_use = [path.stat() for path in named if path.exists()]
    if jobs.state is not None:
        in_use.append(jobs.state)
    state = failed.stat()
    return S_ISREG(state.st_mode) and any(os.path.samestat(state, each) for each in in_use)
