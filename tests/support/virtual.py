"""Threads that are greenlets, and the clock that they wait for: hours of waiting take no time, always in one order."""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from types import TracebackType

from greenlet import getcurrent, greenlet

from adapters.threads.seam import ThreadRefusedError

START = datetime(2026, 1, 1, tzinfo=UTC)


class Thread:
    """A greenlet, and what it waits for."""

    def __init__(self, run: Callable[[], None]) -> None:
        self.greenlet = greenlet(run)
        self.waits = 0
        """Counts its waits, so that a time-out of an earlier one is not taken for this one's."""

    def is_alive(self) -> bool:
        return not self.greenlet.dead


class VirtualTime:
    """A `Clock` and `Threads` in one. The test's own code is no thread: it may look and act, but not wait."""

    def __init__(self) -> None:
        self.uptime = timedelta(0)
        self.wall = START
        self.refuses = False
        """Whether the system has no thread to spare."""
        self.started: list[str] = []
        self._threads: dict[greenlet, Thread] = {}
        self._ready: deque[Thread] = deque()
        self._timers: list[tuple[timedelta, int, int, Thread]] = []
        self._numbers = count()

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> timedelta:
        return self.uptime

    def sleep(self, duration: timedelta) -> None:
        self.block(duration)

    def step(self, **amount: float) -> None:
        """Set the wall clock, forward or back; no time passes."""
        self.wall += timedelta(**amount)

    def lock(self) -> "Lock":
        return Lock(self)

    def condition(self) -> "Condition":
        return Condition(self)

    def start(self, run: Callable[[], None], name: str) -> Thread:
        if self.refuses:
            raise ThreadRefusedError("can't start new thread")
        self.started.append(name)
        thread = Thread(run)
        self._threads[thread.greenlet] = thread
        self._ready.append(thread)
        return thread

    def go(self, run: Callable[[], None]) -> Thread:
        """A thread of the test's own, which is never refused."""
        refuses, self.refuses = self.refuses, False
        try:
            return self.start(run, "test")
        finally:
            self.refuses = refuses

    def pass_by(self, **amount: float) -> None:
        """Run everything that happens in this time."""
        end = self.uptime + timedelta(**amount)
        while True:
            while self._ready:
                ready = self._ready.popleft().greenlet
                ready.parent = getcurrent()  # or who had started it would go on when it waits
                ready.switch()
            if not self._timers or self._timers[0][0] > end:
                break
            due, _, waits, thread = heappop(self._timers)
            if thread.waits == waits and thread.is_alive():
                self._advance(due)
                self.wake(thread)
        self._advance(end)

    def _advance(self, moment: timedelta) -> None:
        self.wall += moment - self.uptime
        self.uptime = moment

    def current(self) -> Thread:
        return self._threads[getcurrent()]

    def block(self, longest: timedelta | None) -> None:
        """The current thread goes on when it is woken, or after so long."""
        thread = self.current()
        if longest is not None:
            due = self.uptime + max(timedelta(0), longest)
            heappush(self._timers, (due, next(self._numbers), thread.waits, thread))
        parent = thread.greenlet.parent
        assert parent is not None
        parent.switch()

    def wake(self, thread: Thread) -> None:
        thread.waits += 1
        self._ready.append(thread)


class Lock:
    """Held by one thread at a time; the test's own code gets it while nobody has it."""

    def __init__(self, time: VirtualTime) -> None:
        self._time = time
        self._is_held = False
        self._entering: deque[Thread] = deque()

    def __enter__(self) -> bool:
        while self._is_held:
            self._entering.append(self._time.current())
            self._time.block(None)
        self._is_held = True
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        self._is_held = False
        if self._entering:
            self._time.wake(self._entering.popleft())


class Condition(Lock):
    """A lock that can be waited on."""

    def __init__(self, time: VirtualTime) -> None:
        super().__init__(time)
        self._waiting: deque[Thread] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._time.current()
        self._waiting.append(thread)
        self.__exit__(None, None, None)
        self._time.block(None if timeout is None else timedelta(seconds=timeout))
        was_notified = thread not in self._waiting
        if not was_notified:
            self._waiting.remove(thread)
        self.__enter__()
        return was_notified

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        end = None if timeout is None else self._time.uptime + timedelta(seconds=timeout)
        while not predicate():
            if end is not None and self._time.uptime >= end:
                return False
            self.wait(None if end is None else (end - self._time.uptime).total_seconds())
        return True

    def notify(self, n: int = 1) -> None:
        assert self._is_held
        for _ in range(min(n, len(self._waiting))):
            self._time.wake(self._waiting.popleft())

    def notify_all(self) -> None:
        self.notify(len(self._waiting))
