"""Runs the lines of a file: takes them as there is room, waits for what others hold, tries again what failed.

One thread decides. It reads an inbox, into which a reader puts lines and the workers put outcomes; everything that
is held at once is bounded, however long the file.

A job with which a run died may be what killed it. It runs when nothing else can, with nothing beside it: should it kill
this run too, all other lines are done.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from threading import Semaphore, Thread
from typing import Final

from adapters.error_place import described
from adapters.files.lines import Line, UnreadableFileError
from domain.backoff import backoff
from domain.delivery import Delivery
from domain.errors import InvalidJobError
from domain.identity import JobKey
from domain.job import Job
from domain.job_factory import JobFactory
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.clock import Clock
from domain.ports.events import Trace
from domain.service import Process
from domain.strict_json import Json

AHEAD_OF_WORKERS: Final = 4
"""Lines read ahead, for each worker."""

MOST_WAITING: Final = 1000
MOST_WAITING_BYTES: Final = 64 * 1024 * 1024
"""At most so many jobs wait for a retry or another process, and so many duplicates for them; then no line is read."""

IDLE_SECONDS: Final = 0.2
"""After so long without news, `run` gives None, for a view to catch up."""

ASK_AGAIN: Final = timedelta(seconds=1)
"""Interval between two looks at a job that another process holds. It is looked at when its lease ends, too."""

FIRST_BACKOFF: Final = timedelta(seconds=1)
LONGEST_BACKOFF: Final = timedelta(seconds=60)


@dataclass(slots=True, eq=False)
class Task:
    """A line on its way."""

    line: Line
    job: Job
    has_slot: bool = True
    deliveries: int = 0
    failures: int = 0
    outcome: Outcome | None = None
    error: BaseException | None = None
    said_waiting: bool = False
    is_alone: bool = False
    """Nothing runs beside it."""


@dataclass(frozen=True, slots=True)
class LineResult:
    """What became of a line. `is_final` is False while it will be tried again, `outcome` None where it was not run."""

    line: Line
    job_id: str | None
    outcome: Outcome | None
    is_final: bool
    error: BaseException | None = None


@dataclass(slots=True)
class _Waiting:
    """What waits, by number and bytes."""

    tasks: int = 0
    size: int = 0

    @property
    def has_room(self) -> bool:
        return self.tasks < MOST_WAITING and self.size < MOST_WAITING_BYTES

    def add(self, task: Task) -> None:
        self.tasks += 1
        self.size += len(task.line.raw)

    def remove(self, task: Task) -> None:
        self.tasks -= 1
        self.size -= len(task.line.raw)


@dataclass(frozen=True, slots=True)
class _Arrived:
    line: Line


@dataclass(frozen=True, slots=True)
class _Ended:
    """The file has been read."""

    error: UnreadableFileError | None = None


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


type _Event = _Arrived | _Ended | _Stop | Task


@dataclass(kw_only=True)
class JobFileRunner:
    """Runs one file. `submit` hands a task to a pool of `workers` threads; `read` makes a message of a line's text."""

    factory: JobFactory
    read: Callable[[str], Json]
    process: Process
    submit: Callable[[Callable[[], None]], object]
    last_trace: Callable[[], Trace | None]
    workers: int
    clock: Clock
    jitter: Callable[[], float]
    lease: timedelta
    max_attempts: int
    on_stop: Callable[[], None] = lambda: None

    stopped: bool = False
    """Told to stop: what ran was finished, the rest was not taken."""
    store_error: str | None = None
    unreadable: UnreadableFileError | None = None

    _inbox: "SimpleQueue[_Event]" = field(default_factory=SimpleQueue)
    _ready: deque[Task] = field(default_factory=deque)
    _delayed: list[tuple[datetime, int, Task]] = field(default_factory=list)
    _lanes: dict[JobKey, deque[Task]] = field(default_factory=dict)
    _running: int = 0
    _is_one_alone: bool = False
    _delays: _Waiting = field(default_factory=_Waiting)
    _duplicates: _Waiting = field(default_factory=_Waiting)
    _to_run_alone: list[Task] = field(default_factory=list)
    _ended: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    def stop(self) -> None:
        """Take no more lines; from any thread or signal handler."""
        self._inbox.put(_Stop())

    def run(self, lines: Iterable[Line]) -> Iterator[LineResult | None]:
        """Everything that happens, as it happens, until all lines are done or the runner is stopped; None when
        nothing has for a while.
        """
        self._room = Semaphore(self.workers * AHEAD_OF_WORKERS)
        reader = Thread(target=self._read, args=(lines,), name="onejob-reader", daemon=True)
        try:
            reader.start()
        except RuntimeError as error:  # the system has no thread to spare
            self._ended, self.unreadable = True, UnreadableFileError(f"{error}: the file was not read")
            return
        while not self._is_over():
            event = self._next_event()
            if event is None:
                yield None
            yield from self._handle(event)
            self._start_due()
        self._ended = True
        self._room.release()  # the reader, if it still waits, sees that it is over
        reader.join()
        yield from self._left()

    def _left(self) -> Iterator[LineResult]:
        """What was read and not finished."""
        tasks = [*self._ready, *self._to_run_alone, *(task for _, _, task in sorted(self._delayed))]
        for task in [*tasks, *(task for lane in self._lanes.values() for task in lane)]:
            yield LineResult(task.line, task.job.job_id, None, True)
        with suppress(Empty):
            while True:
                event = self._inbox.get_nowait()
                if isinstance(event, _Arrived):
                    yield LineResult(event.line, None, None, True)

    def _is_over(self) -> bool:
        if self._running:
            return False
        return self.stopped or (self._ended and not (self._ready or self._delayed or self._to_run_alone))

    def _next_event(self) -> _Event | None:
        """The next event; None when a delayed task is due, or nothing came for a while."""
        timeout = IDLE_SECONDS
        if self._delayed and not self.stopped:
            timeout = min(timeout, max(0.0, (self._delayed[0][0] - self.clock.now()).total_seconds()))
        try:
            return self._inbox.get(timeout=timeout)
        except Empty:
            return None

    def _handle(self, event: _Event | None) -> Iterator[LineResult]:
        match event:
            case _Arrived(line):
                yield from self._take(line)
            case Task():
                self._running -= 1
                self._is_one_alone = False
                yield from self._settle(event)
            case _Ended(error):
                self._ended, self.unreadable = True, error
            case _Stop():
                self._stop()
            case None:
                pass

    def _take(self, line: Line) -> Iterator[LineResult]:
        try:
            job = self._job(line)
        except InvalidJobError as error:
            self._room.release()
            yield LineResult(line, None, Rejected(error.reason, error.detail), True)
            return
        task = Task(replace(line, text=None), job)
        if job.key in self._lanes:
            self._lanes[job.key].append(task)
            if self._duplicates.has_room:
                self._let_in_another(task)
            self._duplicates.add(task)
        else:
            self._lanes[job.key] = deque()
            self._ready.append(task)

    def _job(self, line: Line) -> Job:
        if line.text is None:
            raise InvalidJobError("unreadable_line", line.problem or "")
        return self.factory.waiting_job(partial(self.read, line.text))

    def _start_due(self) -> None:
        while not self.stopped and self._running < self.workers and not self._is_one_alone:
            if self._delayed and self._delayed[0][0] <= self.clock.now():
                task = heappop(self._delayed)[2]
                self._delays.remove(task)
                self._start(task)
            elif self._ready and self._delays.has_room:
                self._start(self._ready.popleft())
            elif self._to_run_alone and not self._running:
                # any of them: the one that kills is not to be the first each time
                task = self._to_run_alone.pop(int(self.jitter() * len(self._to_run_alone)))
                self._delays.remove(task)
                self._is_one_alone = task.is_alone = True
                self._start(task)
            else:
                return

    def _let_in_another(self, task: Task) -> None:
        """Its line makes room for the next; once."""
        if task.has_slot:
            task.has_slot = False
            self._room.release()

    def _start(self, task: Task) -> None:
        self._let_in_another(task)
        self._running += 1
        self.submit(lambda: self._work(task))

    def _work(self, task: Task) -> None:
        task.deliveries += 1
        try:
            name, is_alone = f"line {task.line.number}", task.is_alone or self.workers == 1
            delivery = Delivery(task.deliveries, name, counts_runs=False, is_alone=is_alone)
            task.error, task.outcome, task.is_alone = None, None, False
            task.outcome = self.process(task.job, lease=self.lease, deadline=None, delivery=delivery)
            if task.outcome != Failed(Failure.NOT_ALONE):  # which is no end, and leaves no trace
                trace = self.last_trace()
                task.error = trace.error if trace else None
        except BaseException as error:  # an operation may raise what is no Exception: its lease lapses
            task.error, task.outcome = error, Failed(Failure.UNEXPECTED, type(error).__name__)
        self._inbox.put(task)

    def _settle(self, task: Task) -> Iterator[LineResult]:
        outcome = task.outcome
        match outcome:
            case Deferred(until):
                task.deliveries -= 1  # it was not this job's turn: no attempt of it is used up
                again = min(until + timedelta(milliseconds=1), self.clock.now() + ASK_AGAIN)
                self._delay(task, again)
                if not task.said_waiting:
                    task.said_waiting = True
                    yield self._result(task, outcome, is_final=False)
            case Failed(Failure.NOT_ALONE):
                task.deliveries -= 1
                self._delays.add(task)
                self._to_run_alone.append(task)
                yield self._result(task, outcome, is_final=False)
            case Failed(Failure.LEASE_LOST | Failure.NOT_STARTED):
                self._delay(task, self.clock.now() + ASK_AGAIN)
                yield self._result(task, outcome, is_final=False)
            case Failed(Failure.OPERATION_RAISED) if task.failures + 1 < self.max_attempts:
                task.failures += 1
                pause = backoff(task.failures, FIRST_BACKOFF, LONGEST_BACKOFF, self.jitter)
                self._delay(task, self.clock.now() + pause)
                yield self._result(task, outcome, is_final=False)
            case Failed(Failure.UNKNOWN_OPERATION):
                yield self._finish(task, Rejected("unknown_operation", task.job.operation))
            case Failed(Failure.STORE_UNAVAILABLE | Failure.COMPLETION_LOST):
                self.store_error = str(task.error)
                self._stop()
                yield self._finish(task, outcome)
            case Executed() | Skipped() | Rejected() | Failed():
                yield self._finish(task, outcome)
            case None:
                raise AssertionError("a task comes back with an outcome")

    def _stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            self.on_stop()

    def _delay(self, task: Task, due: datetime) -> None:
        self._delays.add(task)
        heappush(self._delayed, (due, next(self._numbers), task))

    def _finish(self, task: Task, outcome: Outcome) -> LineResult:
        lane = self._lanes.pop(task.job.key)
        if lane:
            following = lane.popleft()
            self._duplicates.remove(following)
            self._ready.append(following)
            self._lanes[task.job.key] = lane
        return self._result(task, outcome, is_final=True)

    def _result(self, task: Task, outcome: Outcome, *, is_final: bool) -> LineResult:
        return LineResult(task.line, task.job.job_id, outcome, is_final, task.error)

    def _read(self, lines: Iterable[Line]) -> None:
        error = None
        try:
            for line in lines:
                self._room.acquire()
                if self._ended:
                    return
                self._inbox.put(_Arrived(line))
        except UnreadableFileError as unreadable:
            error = unreadable
        except Exception as unforeseen:
            error = UnreadableFileError(described(unforeseen))
        self._inbox.put(_Ended(error))
