"""The AWS command line: version 1 from the lock file, in an environment of its own; version 2 if the machine has it."""

import os
import subprocess
from pathlib import Path

from entrypoints.emulator.launcher import locked_environment


def version_1() -> Path:
    """The folder of its `aws`."""
    return locked_environment("awscli") / "bin"


def version_2() -> Path | None:
    """The folder of the first `aws` on the PATH, if that is version 2. The package index has none."""
    for folder in map(Path, os.get_exec_path()):
        if (folder / "aws").is_file():
            told = subprocess.run([folder / "aws", "--version"], capture_output=True, text=True).stdout
            return folder if told.startswith("aws-cli/2.") else None
    return None
