"""When to ask again for a thread that the system had not to spare."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from domain.backoff import backoff
from domain.ports.clock import Clock

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=30)


class Refusals:
    """Consecutive refusals of one kind of thread, and the pause after them. Not thread-safe."""

    def __init__(self, clock: Clock, jitter: Callable[[], float]) -> None:
        self._clock = clock
        self._jitter = jitter
        self._count = 0
        self._again_at = timedelta(0)

    @property
    def is_over(self) -> bool:
        """Whether a thread may be asked for now."""
        return not self._count or self._clock.monotonic() >= self._again_at

    @property
    def happened(self) -> bool:
        """Whether the last thread that was asked for was refused."""
        return self._count > 0

    def add(self) -> None:
        """A thread was refused."""
        self._count += 1
        pause = backoff(self._count, FIRST_PAUSE, LONGEST_PAUSE, self._jitter)
        self._again_at = self._clock.monotonic() + pause

    def clear(self) -> None:
        """A thread was started."""
        self._count = 0
