"""Threads, locks and conditions of a simulated process: each acquire and each wait is a place to switch."""

from collections.abc import Callable
from math import ceil
from types import TracebackType
from typing import Final

from adapters.threads.seam import ThreadRefusedError
from tests.simulation.plan import FAULTS_UNTIL
from tests.simulation.world import Process, Task, Violation, World

SPINS: Final = 5_000
"""Waits without a length that one condition may see at one tick. More never end: time stands still meanwhile."""


class GreenThreads:
    """`Threads` of one process. They end with it: who holds a lock then holds it for ever, and none is left to ask.

    `refuses` tells for each start whether it is refused. To acquire takes up to `slowness` ticks.
    """

    def __init__(
        self, world: World, process: Process, refuses: Callable[[], bool] = lambda: False, *, slowness: int = 0
    ) -> None:
        self.world, self.process, self.refuses, self.slowness = world, process, refuses, slowness

    def lock(self) -> "GreenLock":
        return GreenLock(self.world, self.slowness)

    def condition(self) -> "GreenCondition":
        return GreenCondition(self.world, self.slowness)

    def start(self, run: Callable[[], None], name: str) -> "GreenThread":
        """Run it as a task of the process. Raises `ThreadRefusedError`."""
        if self.refuses():
            raise ThreadRefusedError(f"can't start new thread: {name}")
        return GreenThread(self.world.spawn(self.process, run))


class GreenThread:
    """A thread that was started."""

    def __init__(self, task: Task) -> None:
        self._task = task

    def is_alive(self) -> bool:
        return not self._task.green.dead


class GreenLock:
    """A lock that is not fair: of those that wait, chance decides."""

    def __init__(self, world: World, slowness: int = 0) -> None:
        self.world, self.slowness = world, slowness
        self.holder: Task | None = None
        self._waiting: list[Task] = []

    def __enter__(self) -> bool:
        is_slow = self.slowness and self.world.now < FAULTS_UNTIL
        self.world.pause(self.world.chance.randint(0, self.slowness) if is_slow else 0)
        self._take()
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._give()

    def _take(self) -> None:
        task = self.world.current
        if self.holder is task:
            raise Violation("a thread waits for a lock that it holds")
        while self.holder is not None:
            self._waiting.append(task)
            self.world.park(None)
        self.holder = task

    def _give(self) -> None:
        self.holder = None
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            self.world.wake(task)


class GreenCondition(GreenLock):
    """A condition. A time-out is rounded up to whole ticks; one of nothing lets others run, and time stands still."""

    def __init__(self, world: World, slowness: int = 0) -> None:
        super().__init__(world, slowness)
        self._sleeping: list[Task] = []
        self._spun_at, self._spins = -1, 0

    def wait(self, timeout: float | None = None) -> bool:
        """Whether it was notified."""
        return self._wait(None if timeout is None else self.world.now + ceil(max(0.0, timeout)))

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        """What `predicate` is in the end."""
        until = None if timeout is None else self.world.now + ceil(max(0.0, timeout))
        while not predicate():
            if until is not None and self.world.now >= until:
                return False
            self._wait(until)
        return True

    def notify(self, n: int = 1) -> None:
        """Wake so many, in the order in which they came."""
        self._require_held()
        woken, self._sleeping = self._sleeping[:n], self._sleeping[n:]
        for task in woken:
            self.world.wake(task)

    def notify_all(self) -> None:
        self.notify(len(self._sleeping))

    def _wait(self, until: int | None) -> bool:
        self._require_held()
        self._refuse_spinning(until)
        task = self.world.current
        self._sleeping.append(task)
        self._give()
        self.world.park(until)
        was_notified = task not in self._sleeping
        if not was_notified:
            self._sleeping.remove(task)
        self._take()
        return was_notified

    def _require_held(self) -> None:
        if self.holder is not self.world.current:
            raise RuntimeError("cannot wait on, or notify, a condition that is not held")

    def _refuse_spinning(self, until: int | None) -> None:
        now = self.world.now
        if until is None or until > now:
            return
        self._spins = self._spins + 1 if self._spun_at == now else 0
        self._spun_at = now
        if self._spins > SPINS:
            raise Violation("a thread waits for nothing, again and again")
