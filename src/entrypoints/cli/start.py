"""The command `onejob`: it says what to install where its libraries are missing."""

import sys
from typing import Final

LIBRARIES: Final = ("typer", "rich")
UNUSABLE: Final = 2


def main() -> None:
    """Run the command line, and exit with its status."""
    try:
        from entrypoints.cli.app import main as run
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in LIBRARIES:
            raise
        sys.stderr.write(
            f"onejob: {library} is not installed: the command line needs it. Add it with `uv add 'onejob[cli]'` "
            "(in a clone of onejob: `uv sync`)\n"
        )
        sys.exit(UNUSABLE)
    run()
