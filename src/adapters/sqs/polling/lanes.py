"""The lanes that a poll worker holds, and the threads that there are for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.sqs.entry import BatchEntry
from adapters.threads.asking import Refusals
from adapters.threads.pool import Task, ThreadPool
from domain.ports.clock import Clock, Moment


@dataclass(slots=True, eq=False)
class Lane:
    """Entries that one thread handles, with the id and the time of the request that received them."""

    entries: Sequence[BatchEntry]
    request_id: str
    since: Moment
    ends_at: timedelta | None = None
    """When the attempt that is under way must have ended, on the monotonic clock."""
    is_overdue: bool = False
    waits_until: timedelta | None = None
    """Where it is to run alone, and others run: when it waits no longer, on the monotonic clock."""
    is_alone: bool = False

    def began(self, deadline: datetime, clock: Clock) -> timedelta:
        """An attempt begins that must have ended then; the same on the monotonic clock."""
        self.ends_at = clock.monotonic() + (deadline - clock.now())
        self.is_overdue = False
        return self.ends_at

    def wait_alone(self, left: Sequence[BatchEntry], until: timedelta) -> None:
        """That much is left of it, and its first job is to run with nothing beside it."""
        self.entries, self.waits_until, self.ends_at = left, until, None

    def is_over(self, now: timedelta) -> bool:
        """Whether it has waited long enough."""
        return self.waits_until is not None and now >= self.waits_until

    def run_alone(self) -> None:
        """Nothing runs beside it from now on."""
        self.waits_until, self.is_alone = None, True


class Staff:
    """The threads of a pool, as a receive loop asks for them: before it receives, so that nothing is received that no
    thread could run. Where the system has none to spare the loop goes on with those that there are, and asks again
    after a pause. `refused` is called with how many there are.
    """

    def __init__(
        self, pool: ThreadPool, clock: Clock, jitter: Callable[[], float], refused: Callable[[int], None]
    ) -> None:
        self._pool = pool
        self._refused = refused
        self._refusals = Refusals(clock, jitter)
        self._had = 0

    @property
    def most(self) -> int:
        """So many lanes may there be now."""
        return self._pool.size if self._refusals.is_over else self._had

    @property
    def is_missing(self) -> bool:
        """Whether no thread at all can be had."""
        return self._refusals.happened and not self._had

    def threads(self, wanted: int) -> int:
        """How many there are, after as many were started as are wanted."""
        if not self._refusals.is_over:
            return self._had
        self._had = self._pool.ensure(wanted)
        if self._had < min(wanted, self._pool.size):
            self._refusals.add()
            self._refused(self._had)
        else:
            self._refusals.clear()
        return self._had

    def keep(self, number: int) -> None:
        """Replace threads that have died while so many have work."""
        if self._refusals.is_over:
            self._pool.ensure(number)

    def submit(self, task: Task) -> None:
        self._pool.submit(task)
