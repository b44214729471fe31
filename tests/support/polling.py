"""A poll worker over a queue of this process and the memory store, with everything in reach. Waits in real time."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Condition, Event
from typing import Any

from adapters.sqs.message import Message, read_event
from adapters.sqs.polling.deletions import Deletions
from adapters.sqs.polling.receiver import ReceivedMessages
from adapters.sqs.polling.visibility_heartbeat import HeldQueue, VisibilityHeartbeat
from adapters.sqs.polling.worker import PollWorker
from adapters.sqs.ports import QueueUnavailableError
from adapters.system import SystemClock
from adapters.threads.pool import ThreadPool
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.attempt import Attempt
from domain.job import Job
from domain.operation import OperationFunction
from domain.service import no_signal
from tests.support.jobs import answer_ok
from tests.support.sqs import RecordedPollEvents, Worker, event

WITHIN_SECONDS = 30
LEASE = timedelta(seconds=60)


def until(passed: Callable[[], bool], what: Callable[[], object] = lambda: "") -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not passed():
        assert time.monotonic() < deadline, what()
        time.sleep(0.002)


class Gate:
    """An operation that waits, for jobs with these ids, until it is opened."""

    def __init__(self, *closed: str) -> None:
        self.closed = set(closed)
        self.opened = Event()
        self.began: list[str] = []

    def __call__(self, job: Job, attempt: Attempt) -> object:
        self.began.append(job.job_id)
        if job.job_id in self.closed:
            assert self.opened.wait(20)
        return job.job_id


@dataclass
class MemoryQueue:
    """What is received from, and what is asked of it. An empty queue is polled for `poll_seconds`."""

    waiting: deque[Message] = field(default_factory=deque)
    asked: list[int] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    hidden: list[tuple[str, int]] = field(default_factory=list)
    failures: int = 0
    poll_seconds: float = 0.05
    may_delete: Event = field(default_factory=Event)
    changed: Condition = field(default_factory=Condition)

    def __post_init__(self) -> None:
        self.may_delete.set()

    def send(self, *records: dict[str, Any]) -> None:
        with self.changed:
            self.waiting += read_event(event(*records))
            self.changed.notify_all()

    def receive(self, number: int, /) -> ReceivedMessages:
        with self.changed:
            self.asked.append(number)
            if self.failures:
                self.failures -= 1
                raise QueueUnavailableError("told to fail")
            self.changed.wait_for(lambda: self.waiting, self.poll_seconds)
            taken = [self.waiting.popleft() for _ in range(min(number, len(self.waiting)))]
        return ReceivedMessages(taken, "request-1")

    def try_to_delete(self, messages: Sequence[Message]) -> list[tuple[Message, str]]:
        assert self.may_delete.wait(WITHIN_SECONDS)
        self.deleted += [message.message_id for message in messages]
        return []

    def try_to_hide(self, timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        self.hidden += [(message.message_id, seconds) for message, seconds in timeouts]
        return []


class Poller:
    """The worker, its queue, and what it told."""

    def __init__(
        self,
        run: OperationFunction = answer_ok,
        *,
        concurrency: int = 10,
        threads: Threads = SYSTEM_THREADS,
        longest: timedelta | None = None,
        ends_process: Callable[[BaseException], bool] = no_signal,
    ) -> None:
        self.behind = Worker(run, threads=1, ends_process=ends_process)
        self.queue = MemoryQueue()
        self.events = RecordedPollEvents()
        clock = SystemClock()
        self.visibility = VisibilityHeartbeat(self.queue.try_to_hide, self.events, clock, LEASE, threads)
        self.worker = PollWorker(
            batches=replace(
                self.behind.batches, queue=HeldQueue(self.behind.queue, self.visibility), events=self.events
            ),
            receive=self.queue.receive,
            visibility=self.visibility,
            deletions=Deletions(
                self.queue.try_to_delete, self.visibility.let_go, self.events, clock, lambda: 0.0, threads
            ),
            events=self.events,
            pool=ThreadPool(concurrency, threads),
            lease=LEASE,
            longest=longest,
            threads=threads,
            clock=clock,
            jitter=lambda: 0.0,
        )

    @property
    def held(self) -> int:
        return len(self.visibility._held)

    @property
    def given_back(self) -> dict[str, int]:
        return self.behind.queue.timeouts

    def stop(self, seconds: float = WITHIN_SECONDS) -> list[str]:
        """What still runs after so long."""
        self.worker.stop()
        left = self.worker.wait(timedelta(seconds=seconds))
        return [message.message_id for message in left]


@contextmanager
def polling(poller: Poller) -> Iterator[Poller]:
    poller.worker.start()
    try:
        yield poller
    finally:
        poller.stop()
