"""The port for time, so that tests and the simulator own it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, Self


class Clock(Protocol):
    """Now, and a pause."""

    def now(self) -> datetime:
        """The present, aware and in UTC. It may jump when the machine's clock is set."""
        ...

    def monotonic(self) -> timedelta:
        """Time since some moment. It never goes back and never jumps: for waits, not for what other machines read."""
        ...

    def sleep(self, duration: timedelta) -> None:
        """Come back after `duration`."""
        ...


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant on both clocks of a machine: by the date that others read, and by the time that cannot jump."""

    wall: datetime
    monotonic: timedelta

    @classmethod
    def of(cls, clock: Clock) -> Self:
        """The present."""
        return cls(clock.now(), clock.monotonic())
