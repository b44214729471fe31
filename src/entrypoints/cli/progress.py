"""How far a long command has come, on standard error: a live line on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Final

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from entrypoints.cli.output import is_terminal, say, spinner

EVERY_SECONDS: Final = 5.0


class Ticker:
    """A context; `tell` may be called as often as one likes."""

    def __init__(self) -> None:
        self._began = self._told = time.monotonic()
        self._bar: Progress | None = None
        if is_terminal(sys.stderr):
            columns = (SpinnerColumn(spinner(sys.stderr)), TextColumn("{task.description}"), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)

    def __enter__(self) -> "Ticker":
        if self._bar is not None:
            self._task = self._bar.add_task("")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def tell(self, text: str) -> None:
        """Shown at once on a terminal."""
        if self._bar is not None:
            self._bar.update(self._task, description=text)
        elif time.monotonic() - self._told >= EVERY_SECONDS:
            self._told = time.monotonic()
            say(text)
