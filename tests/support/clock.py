"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Starts at the real present, since an emulator deletes by its own clock; sleeping moves it and is remembered."""

    def __init__(self, start: datetime | None = None) -> None:
        now = start or datetime.now(UTC)
        self.time = now.replace(microsecond=0)
        self.uptime = timedelta(0)
        self.slept: list[timedelta] = []

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> timedelta:
        return self.uptime

    def sleep(self, duration: timedelta) -> None:
        self.slept.append(duration)
        self._pass(duration)

    def advance(self, **amount: float) -> None:
        self._pass(timedelta(**amount))

    def step(self, **amount: float) -> None:
        """Set the wall clock, forward or back; no time passes."""
        self.time += timedelta(**amount)

    def _pass(self, duration: timedelta) -> None:
        self.time += duration
        self.uptime += duration
