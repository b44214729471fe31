"""The threads that run the lanes of a batch: as many as keep the processor busy, and no more.

Threads of one interpreter run Python code in turns. While a store is far away or operations wait, that is hidden behind
the waiting. Where little waits, ten threads do no more than two, and pay half as much again for taking turns. What has
only a share of a processor (Lambda below 1.8 GB) never keeps one busy: there all threads run.
"""

from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from time import perf_counter, process_time
from typing import Final

from adapters.threads.pool import Task, ThreadPool
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.ports.clock import Clock

BUSY: Final = 0.85
"""The share of CPU time in the time of a batch from which on half the threads would have done as well."""

IDLE: Final = 0.45
"""The share below which more threads are of use."""

PATIENCE: Final = timedelta(milliseconds=5)
"""Poll interval for deciding whether to add threads."""


class Load:
    """How busy this process kept the processor since this was made: CPU time of all its threads in time of a clock."""

    def __init__(self) -> None:
        self._clock, self._cpu = perf_counter(), process_time()

    def share(self) -> float:
        return (process_time() - self._cpu) / max(perf_counter() - self._clock, 1e-9)


class ThreadCrew:
    """Runs tasks in at most `size` threads, which are kept for the next batch.

    It begins with all. A batch that kept the processor busy halves their number for the next one; while a batch leaves
    it idle, or ends no task, their number is doubled. `refused` is called, once for a batch, with how many threads
    there are where the system has none to spare for more.
    """

    def __init__(
        self,
        size: int,
        clock: Clock,
        load: Callable[[], Load] = Load,
        threads: Threads = SYSTEM_THREADS,
        refused: Callable[[int], None] = lambda _had: None,
    ) -> None:
        self.size = size
        self.enough = size
        """So many threads begin the next batch."""
        self.clock = clock
        self.load = load
        self.threads = threads
        self.refused = refused
        self._pool = ThreadPool(size, threads)

    def start(self, tasks: Sequence[Task]) -> "RunningThreads":
        return RunningThreads(self, tasks)

    def hire(self, work: Task, number: int, more: int) -> int:
        """Beside so many threads that do this, let more do it; how many more there are."""
        more = min(more, self._pool.ensure(number + more) - number)
        for _ in range(more):
            self._pool.submit(work)
        return max(0, more)


class RunningThreads:
    """Tasks that a `ThreadCrew` has started. To be waited for by one thread.

    If no thread at all can be had, none of the tasks runs, now or later, and all count as ended.
    """

    def __init__(self, crew: ThreadCrew, tasks: Sequence[Task]) -> None:
        self._crew = crew
        self._waiting = deque(tasks)
        self._unfinished = self._told = len(tasks)
        self._changed = crew.threads.condition()
        self._tells_each = False
        self._error: BaseException | None = None
        self._load = crew.load()
        self._hired = 0
        self._most = crew.size
        self._hire(min(crew.enough, len(tasks)))
        if tasks and not self._hired:
            self._unfinished = 0

    def wait(self, until: datetime) -> bool:
        clock = self._crew.clock
        end = clock.monotonic() + (until - clock.now())
        with self._changed:
            while self._waiting and self._hired < self._most and (left := end - clock.monotonic()) > timedelta(0):
                self._see_whether_more_help(min(PATIENCE, left))
            left = max(timedelta(0), end - clock.monotonic())
            all_ended = self._changed.wait_for(lambda: not self._unfinished, left.total_seconds())
        if all_ended and self._load.share() > BUSY:
            self._crew.enough = max(1, self._hired // 2)
        return all_ended

    def wait_for_next(self) -> bool:
        with self._changed:
            self._tells_each = True
            self._changed.wait_for(lambda: self._unfinished < self._told or not self._unfinished)
            self._told = self._unfinished
            return not self._unfinished

    def error(self) -> BaseException | None:
        """What the first task that failed raised. Only to be asked when all have ended."""
        return self._error

    def _see_whether_more_help(self, patience: timedelta) -> None:
        unfinished, load = self._unfinished, self._crew.load()
        self._changed.wait(patience.total_seconds())
        if self._unfinished == unfinished or load.share() < IDLE:
            self._hire(min(self._hired, self._crew.size - self._hired, len(self._waiting)))
            self._crew.enough = max(self._crew.enough, self._hired)

    def _hire(self, threads: int) -> None:
        more = self._crew.hire(self._work, self._hired, threads)
        self._hired += more
        if more < threads:  # those that there are do it all
            self._most = self._hired
            self._crew.refused(self._hired)

    def _work(self) -> None:
        while True:
            try:
                task = self._waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as error:
                self._error = self._error or error
            with self._changed:
                self._unfinished -= 1
                if self._tells_each or not self._unfinished:  # what nobody waits for would only wake the other thread
                    self._changed.notify()
