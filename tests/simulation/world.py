"""Time, chance and who runs next. Greenlets carry the real, synchronous code; each port call is a place to switch."""

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import ClassVar, NoReturn

from greenlet import GreenletExit, getcurrent, greenlet

BASE = datetime(2026, 1, 1, tzinfo=UTC)


@cache
def moment(tick: int) -> datetime:
    """A tick as the code under test sees it."""
    return BASE + timedelta(seconds=tick)


def tick_of(at: datetime) -> int:
    """The first tick that is not before that moment."""
    return -((BASE - at) // timedelta(seconds=1))


class Violation(BaseException):
    """Something happened that must never happen. The code under test may catch it: the world has noted it."""

    first: "ClassVar[Violation | None]" = None

    def __init__(self, what: str) -> None:
        super().__init__(what)
        Violation.first = Violation.first or self


class Process:
    """What lives and dies as one: a sandbox, a worker. Its tasks stop for good when it is killed."""

    counts_runs = True
    """Whether the limit on runs is on its own."""

    def __init__(self, skew: int = 0) -> None:
        self.skew = skew
        self.skews = skew, skew
        """The least and the most that it was."""
        self.died_at: int | None = None
        self.asleep_until = 0

    def is_cut_off(self, what: str) -> bool:
        """Whether this one alone does not reach the store, or the queue, just now."""
        return False

    def is_set(self, skew: int) -> None:
        """Its clock was set."""
        self.skew, self.skews = skew, (min(self.skews[0], skew), max(self.skews[1], skew))

    @property
    def dead(self) -> bool:
        return self.died_at is not None


class Task:
    """A greenlet of a process. `token` tells a wake-up that is meant from one that is out of date."""

    __slots__ = ("green", "name", "process", "token")

    def __init__(self, name: str, green: greenlet, process: Process) -> None:
        self.name = name
        self.green = green
        self.process = process
        self.token = 0


class World:
    """One run. The same seed gives the same run, whatever the hash seed."""

    def __init__(self, chance: Random, last_tick: int) -> None:
        self.chance = chance
        self.now = 0
        self.last_tick = last_tick
        self.trace: list[str] = []
        self._heap: list[tuple[int, float, int, Callable[[], object]]] = []
        self._numbers = count()
        self._hub = getcurrent()
        self._tasks: list[Task] = []
        self._current: Task | None = None
        self.is_over = False

    def at(self, tick: int, action: Callable[[], object]) -> None:
        """Do it then; among what is due at one tick, chance decides the order."""
        heappush(self._heap, (tick, self.chance.random(), next(self._numbers), action))

    def spawn(self, process: Process, run: Callable[[], None]) -> Task:
        task = Task(f"task {len(self._tasks)}", greenlet(run, self._hub), process)
        self._tasks.append(task)
        self.at(self.now, partial(self._resume, task, 0))
        return task

    def pause(self, ticks: int = 0) -> None:
        """Let others run. A process that was killed meanwhile does not come back."""
        self.park(self.now + ticks)

    def park(self, until: int | None) -> None:
        """Wait for that tick, or to be woken."""
        task = self._current
        if task is None or self.is_over:
            raise GreenletExit
        if until is not None:
            self.at(until, partial(self._resume, task, task.token))
        self._hub.switch()
        if self.is_over:
            raise GreenletExit

    def stop(self) -> NoReturn:
        """For a task whose process was killed: nothing of it runs on, also no `finally`."""
        self._hub.switch()
        raise GreenletExit

    def wake(self, task: Task) -> None:
        self.at(self.now, partial(self._resume, task, task.token))

    def names_of(self, process: Process) -> set[str]:
        """Of its tasks."""
        return {task.name for task in self._tasks if task.process is process}

    @property
    def current(self) -> Task:
        assert self._current is not None
        return self._current

    def _resume(self, task: Task, token: int) -> None:
        if task.process.died_at is not None or task.green.dead or task.token != token:
            return
        if task.process.asleep_until > self.now:
            self.at(task.process.asleep_until, partial(self._resume, task, token))
            return
        task.token += 1
        self._current = task
        task.green.switch()
        self._current = None

    def run(self, is_done: Callable[[], bool]) -> None:
        """Until it is done, nothing is left to do, or time is over. Raises `Violation`."""
        heap, Violation.first = self._heap, None
        try:
            while heap and not is_done():
                tick, _, _, action = heappop(heap)
                if tick > self.last_tick:
                    break
                if tick > self.now:
                    self.now = tick
                action()
                if Violation.first is not None:
                    raise Violation.first
        finally:
            self._end()

    def _end(self) -> None:
        """What still waits is ended in order, and finds the world gone."""
        self.is_over = True
        for task in self._tasks:
            if task.green and not task.green.dead:
                with suppress(BaseException):
                    task.green.throw(GreenletExit)
