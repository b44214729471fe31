"""The port for time, so that tests and the simulator own it."""

from datetime import datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Now, and a pause."""

    def now(self) -> datetime:
        """The present, aware and in UTC."""
        ...

    def sleep(self, duration: timedelta) -> None:
        """Come back after `duration`."""
        ...
