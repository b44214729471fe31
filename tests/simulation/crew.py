"""Lanes side by side, as greenlets of a sandbox; and the real pool in the simulator's threads."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from greenlet import GreenletExit

from adapters.sqs.ports import Running
from adapters.threads.crew import Load, ThreadCrew
from tests.simulation.threads import GreenThreads
from tests.simulation.workers import Worker
from tests.simulation.world import Task, Violation, World, tick_of


class _Load(Load):
    """A processor that is as busy as chance will have it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def share(self) -> float:
        return self._world.chance.random()


class RealCrew:
    """The real `ThreadCrew`. `left` counts the tasks of the last start that have not ended."""

    def __init__(self, worker: Worker, size: int) -> None:
        self.world = worker.world
        threads = GreenThreads(worker.world, worker, worker.thread_is_refused)
        self.crew = ThreadCrew(size, worker.clock, lambda: _Load(worker.world), threads)
        self.running = 0

    def start(self, tasks: Sequence[Callable[[], None]]) -> Running:
        return self.crew.start([partial(self._run, task) for task in tasks])

    def _run(self, task: Callable[[], None]) -> None:
        self.running += 1
        try:
            task()
        finally:
            self.running -= 1


class GreenCrew:
    """A `Crew` of so many greenlets."""

    def __init__(self, worker: Worker, size: int, started: Callable[["GreenRunning"], None]) -> None:
        self.worker, self.size, self.started = worker, size, started

    def start(self, tasks: Sequence[Callable[[], None]]) -> "GreenRunning":
        running = GreenRunning(self.worker, list(tasks), self.size)
        self.started(running)
        return running


class GreenRunning:
    """Tasks under way."""

    def __init__(self, worker: Worker, tasks: list[Callable[[], None]], size: int) -> None:
        self.worker, self.world = worker, worker.world
        self.todo = tasks
        self.left, self.ended, self.told = len(tasks), 0, 0
        self.raised: BaseException | None = None
        self.waiter: Task | None = None
        for _ in range(min(size, len(tasks))):
            self.world.spawn(worker, self._work)

    def _work(self) -> None:
        while self.todo:
            task = self.todo.pop(0)
            try:
                task()
            except (GreenletExit, Violation):
                raise
            except BaseException as error:
                self.raised = error
            self.left -= 1
            self.ended += 1
            if self.waiter is not None:
                self.world.wake(self.waiter)

    def wait(self, until: datetime) -> bool:
        last = tick_of(until) - self.worker.clock.skew
        while self.left and self.world.now < last:
            self.waiter = self.world.current
            self.world.park(last)
        self.waiter = None
        self.told = self.ended
        return not self.left

    def wait_for_next(self) -> bool:
        while self.left and self.ended == self.told:
            self.waiter = self.world.current
            self.world.park(None)
        self.waiter = None
        self.told = self.ended
        return not self.left

    def error(self) -> BaseException | None:
        return self.raised
