"""SQS events, and a batch processor over a memory store with everything in reach."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message, read_event
from adapters.sqs.notes import Notes
from adapters.sqs.ports import QueueUnavailableError
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.system import SystemClock
from adapters.threads.crew import ThreadCrew
from domain.attempt import Attempt
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import OperationFunction
from domain.outcome import Rejected
from domain.ports.clock import Clock
from domain.record import Record
from domain.service import JobService, no_signal
from domain.shared_secret import SharedSecret
from tests.support.clock import FakeClock
from tests.support.faulty_store import FaultyStore
from tests.support.jobs import RecordedEvents, answer_ok, counting_ids, died_with, operations

QUEUE = "arn:aws:sqs:us-east-1:000000000000:jobs"
FIFO = f"{QUEUE}.fifo"


def record(
    message_id: str,
    body: str,
    *,
    receives: int = 1,
    group: str | None = None,
    sent_at: datetime | None = None,
    queue: str | None = None,
    attributes: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """One record of a Lambda event; a FIFO queue's if it has a group."""
    system = {"ApproximateReceiveCount": str(receives)}
    if sent_at is not None:
        system["SentTimestamp"] = str(round(sent_at.timestamp() * 1000))
    if group is not None:
        system["MessageGroupId"] = group
    return {
        "messageId": message_id,
        "receiptHandle": f"handle-{message_id}",
        "body": body,
        "attributes": system,
        "messageAttributes": attributes or {},
        "eventSource": "aws:sqs",
        "eventSourceARN": queue or (QUEUE if group is None else FIFO),
        "awsRegion": "us-east-1",
    }


def event(*records: dict[str, Any]) -> dict[str, Any]:
    return {"Records": list(records)}


class Context:
    """A Lambda context."""

    def __init__(self, seconds: float = 30) -> None:
        self.aws_request_id = "request-1"
        self._milliseconds = int(seconds * 1000)

    def get_remaining_time_in_millis(self) -> int:
        return self._milliseconds


@dataclass
class RecordedQueue:
    """A `Queue` that remembers, and fails as told."""

    letters: list[DeadLetter] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    timeouts: dict[str, int] = field(default_factory=dict)
    burying_fails: bool = False
    settling_fails: bool = False

    def dead_letter(self, letter: DeadLetter) -> None:
        if self.burying_fails:
            raise QueueUnavailableError("told to fail")
        self.letters.append(letter)

    def delete(self, messages: Sequence[Message]) -> list[str]:
        if self.settling_fails:
            return ["told to fail"] * len(messages)
        self.deleted += [message.message_id for message in messages]
        return []

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        if self.settling_fails:
            return ["told to fail"] * len(timeouts)
        for message, seconds in timeouts:
            assert message.message_id not in self.timeouts, "a visibility is set once"
            self.timeouts[message.message_id] = seconds
        return []


@dataclass
class RecordedBatchEvents(RecordedEvents):
    """`JobEvents` and `BatchEvents` that remember."""

    told: list[tuple[str, object]] = field(default_factory=list)
    flushed: int = 0

    def rejected_unread(self, message: Message, job: Job | None, rejected: Rejected) -> None:
        self.told.append(("rejected_unread", rejected.reason))

    def test_event(self, message: Message) -> None:
        self.told.append(("test_event", message.message_id))

    def dead_letter_failed(self, message: Message, error: QueueUnavailableError) -> None:
        self.told.append(("dead_letter_failed", message.message_id))

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        self.told.append(("settling_failed", (len(deletions), len(visibilities))))

    def crashed(self, message: Message, error: Exception) -> None:
        self.told.append(("crashed", type(error).__name__))

    def no_time_to_start(self, message_count: int) -> None:
        self.told.append(("no_time_to_start", message_count))

    def threads_refused(self, purpose: str, had: int) -> None:
        self.told.append(("threads_refused", (purpose, had)))

    def flush(self) -> None:
        self.flushed += 1


@dataclass
class RecordedPollEvents(RecordedBatchEvents):
    """`PollEvents` that remember."""

    visibility_errors: list[str] = field(default_factory=list)
    deletion_errors: list[str] = field(default_factory=list)
    held_too_long_since: list[datetime] = field(default_factory=list)
    receive_pauses: list[timedelta] = field(default_factory=list)
    broken: list[tuple[list[str], str]] = field(default_factory=list)
    waits: list[tuple[str, timedelta]] = field(default_factory=list)
    put_offs: list[str] = field(default_factory=list)

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        self.visibility_errors += visibilities
        self.deletion_errors += deletions

    def receive_failed(self, error: QueueUnavailableError, again_in: timedelta) -> None:
        self.receive_pauses.append(again_in)

    def visibility_limit_reached(self, message: Message, since: datetime) -> None:
        self.held_too_long_since.append(since)

    def waits_to_run_alone(self, message: Message, longest: timedelta) -> None:
        self.waits.append((message.message_id, longest))

    def put_off(self, message: Message) -> None:
        self.put_offs.append(message.message_id)

    def worker_error(self, messages: Sequence[Message], error: BaseException) -> None:
        self.broken.append(([message.message_id for message in messages], type(error).__name__))


class InlineCrew:
    """Runs each task at once in the caller's thread."""

    def start(self, tasks: Sequence[Callable[[], None]]) -> "Ended":
        errors = []
        for task in tasks:
            try:
                task()
            except BaseException as error:
                errors.append(error)
        return Ended(errors)


@dataclass
class Ended:
    errors: list[BaseException]

    def wait(self, until: datetime) -> bool:
        return True

    def wait_for_next(self) -> bool:
        return True

    def error(self) -> BaseException | None:
        return self.errors[0] if self.errors else None


class Worker:
    """The batch code over the real domain and the memory store; runs are remembered in order."""

    def __init__(
        self,
        run: OperationFunction = answer_ok,
        *,
        threads: int = 0,
        max_attempts: int = 5,
        ends_process: Callable[[BaseException], bool] = no_signal,
    ) -> None:
        """With `threads`, lanes run side by side and the clock is the real one: threads wait in real time."""
        self.runs: list[str] = []
        self.clock = FakeClock()
        clock: Clock = SystemClock() if threads else self.clock
        self.memory = MemoryIdempotencyStore(clock, timedelta(days=28))
        self.store = FaultyStore(self.memory)
        self.queue = RecordedQueue()
        self.events = RecordedBatchEvents()

        def counted(job: Job, attempt: Attempt) -> object:
            self.runs.append(job.job_id)
            return run(job, attempt)

        known = operations(counted)
        self.service = JobService(
            store=self.store,
            operations=known,
            events=self.events,
            clock=clock,
            new_id=counting_ids(),
            jitter=lambda: 0.0,
            max_attempts=max_attempts,
            margin=timedelta(seconds=5),
            ends_process=ends_process,
        )
        self.batches = SqsBatchProcessor(
            factory=JobFactory("test", known),
            process=self.service.process,
            queue=self.queue,
            events=self.events,
            crew=ThreadCrew(threads, clock) if threads else InlineCrew(),
            notes=Notes(SharedSecret(self.store.find, self.store.claim, "test", lambda: "secret")),
            clock=clock,
            jitter=lambda: 0.0,
            retention=timedelta(days=28),
            margin=timedelta(seconds=5),
            grace=timedelta(seconds=30),
        )

    def handle(self, *records: dict[str, Any], seconds: float = 30) -> list[str]:
        """The ids of the messages that are not done."""
        self.queue.timeouts.clear()
        return self.batches.run(
            read_event(event(*records)),
            invocation_end=self.batches.clock.now() + timedelta(seconds=seconds),
            request_id="request-1",
        )

    def died_with(self, *job_ids: str) -> None:
        died_with(self.memory, self.batches.factory, *job_ids)

    def record_of(self, job_id: str) -> Record | None:
        return self.memory.find(self.batches.factory.job({"job_id": job_id}).key)
