"""Lanes side by side, as greenlets of a sandbox."""

from collections.abc import Callable, Sequence
from datetime import datetime

from greenlet import GreenletExit

from tests.simulation.workers import Worker
from tests.simulation.world import Task, Violation, tick_of


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
