"""The threads that run the lanes of a batch: as many as keep the processor busy, and no more.

Threads of one interpreter run Python code in turns. While a store is far away or operations wait, that is hidden behind
the waiting. Where little waits, ten threads do no more than two, and pay half as much again for taking turns. What has
only a share of a processor (Lambda below 1.8 GB) never keeps one busy: there all threads run.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from threading import Condition
from time import perf_counter, process_time
from typing import Final

from domain.ports.clock import Clock

BUSY: Final = 0.85
"""The share of CPU time in the time of a batch from which on half the threads would have done as well."""

IDLE: Final = 0.45
"""The share below which more threads are of use."""

PATIENCE_SECONDS: Final = 0.005
"""So often is looked whether they are."""

type Task = Callable[[], None]


class Load:
    """How busy this process kept the processor since this was made: CPU time of all its threads in time of a clock."""

    def __init__(self) -> None:
        self._clock, self._cpu = perf_counter(), process_time()

    def share(self) -> float:
        return (process_time() - self._cpu) / max(perf_counter() - self._clock, 1e-9)


class ThreadCrew:
    """Runs tasks in at most `size` threads, which are kept for the next batch.

    It begins with all. A batch that kept the processor busy halves their number for the next one; while a batch leaves
    it idle, or ends no task, their number is doubled.
    """

    def __init__(self, size: int, clock: Clock, load: Callable[[], Load] = Load) -> None:
        self.size = size
        self.enough = size
        """So many threads begin the next batch."""
        self.clock = clock
        self.load = load
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="onejob")

    def start(self, tasks: Sequence[Task]) -> "RunningThreads":
        return RunningThreads(self, tasks)

    def hire(self, work: Task) -> None:
        """Let one more thread do this."""
        self._pool.submit(work)


class RunningThreads:
    """Tasks that a `ThreadCrew` has started. To be waited for by one thread."""

    def __init__(self, crew: ThreadCrew, tasks: Sequence[Task]) -> None:
        self._crew = crew
        self._waiting = deque(tasks)
        self._unfinished = self._told = len(tasks)
        self._changed = Condition()
        self._tells_each = False
        self._error: BaseException | None = None
        self._load = crew.load()
        self._hired = 0
        self._hire(min(crew.enough, len(tasks)))

    def wait(self, until: datetime) -> bool:
        with self._changed:
            while self._waiting and self._hired < self._crew.size:
                self._see_whether_more_help(min(PATIENCE_SECONDS, self._seconds_to(until)))
            all_ended = self._changed.wait_for(lambda: not self._unfinished, self._seconds_to(until))
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

    def _see_whether_more_help(self, patience: float) -> None:
        unfinished, load = self._unfinished, self._crew.load()
        self._changed.wait(patience)
        if self._unfinished == unfinished or load.share() < IDLE:
            self._hire(min(self._hired, self._crew.size - self._hired, len(self._waiting)))
            self._crew.enough = self._hired

    def _hire(self, threads: int) -> None:
        for _ in range(threads):
            try:
                self._crew.hire(self._work)
            except RuntimeError:  # the system has no thread to spare
                if not self._hired:
                    self._waiting.clear()  # nor may a later batch run these
                    raise
                self._hired = self._crew.size  # those that were had do it all: they may be running operations
                return
            self._hired += 1

    def _seconds_to(self, moment: datetime) -> float:
        return max(0.0, (moment - self._crew.clock.now()).total_seconds())

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
