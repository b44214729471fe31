"""Who works: Lambda's sandboxes with their batches, and a long-running worker that renews its leases."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from greenlet import GreenletExit

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.dead_letter import ATTRIBUTE, DeadLetter
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import LeaseLostError, PermanentError, StoreUnavailableError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.lease import Lease
from domain.operation import Operation, Operations
from domain.outcome import Deferred, Failed, Outcome, Rejected
from domain.ports.events import Trace
from domain.service import JobService
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, MARGIN, MAX_ATTEMPTS, Plan, PlannedJob
from tests.simulation.sqs import SentMessage, SimulatedQueue
from tests.simulation.store import Backend, WorkerStore
from tests.simulation.world import Process, Task, Violation, World, moment, tick_of

NAMESPACE = "sim"
ARN = "arn:aws:sqs:us-east-1:000000000000:jobs"
RUNNER_LEASE = timedelta(seconds=12)


@dataclass(slots=True)
class Shared:
    """What all workers of a run have in common."""

    world: World
    plan: Plan
    oracle: Oracle
    backend: Backend
    queue: SimulatedQueue
    jobs: dict[str, PlannedJob]
    number: Iterator[int]
    failed: dict[str, int] = field(default_factory=dict)


class WorkerClock:
    """A `Clock` that is wrong by its skew."""

    def __init__(self, world: World, skew: int) -> None:
        self.world, self.skew = world, skew

    def now(self) -> datetime:
        return moment(self.world.now + self.skew)

    def sleep(self, duration: timedelta) -> None:
        self.world.pause(-(-duration // timedelta(seconds=1)))


class Worker(Process):
    """A process with the real domain in it. `BatchEvents` and `JobEvents` go to the oracle."""

    def __init__(self, shared: Shared, skew: int) -> None:
        super().__init__()
        self.shared = shared
        self.world, self.oracle, self.plan = shared.world, shared.oracle, shared.plan
        self.clock = WorkerClock(self.world, skew)
        self.unrecorded = 0
        self.last_start: datetime | None = None
        self.operations = Operations(Operation("default", self._operation))
        self.factory = JobFactory(NAMESPACE, self.operations)
        self.store = WorkerStore(
            self.world, self.plan, self.oracle, shared.backend, self, self.clock.now, self.crash_point
        )

    def service(self, **options: object) -> JobService:
        return JobService(
            store=self.store,
            operations=self.operations,
            events=self,
            clock=self.clock,
            new_id=lambda: f"run-{next(self.shared.number)}",
            jitter=self.world.chance.random,
            max_attempts=MAX_ATTEMPTS,
            margin=timedelta(seconds=MARGIN),
            **options,  # type: ignore[arg-type]
        )

    def crash_point(self) -> None:
        """Here a process may be killed, or sleep past its lease."""
        plan, world = self.plan, self.world
        if world.now >= FAULTS_UNTIL:
            return
        drawn = world.chance.random() * 1000
        if drawn < plan.crashes and (plan.hostile or not self.unrecorded):
            self.oracle.faults["killed"] += 1
            self.dead = True
            self.died()
            raise GreenletExit
        if drawn > 1000 - plan.suspensions:
            self.oracle.faults["suspended"] += 1
            self.asleep_until = world.now + world.chance.randint(5, 120)
            world.pause()

    def died(self) -> None:
        """Told before its last step."""

    def _operation(self, job: Job, attempt: Attempt) -> object:
        self.oracle.started(attempt.execution_id, attempt.number, self.clock.now(), self.last_start)
        planned, world = self.shared.jobs[job.job_id], self.world
        world.pause(planned.before)
        self.crash_point()
        match planned.behaviour:
            case "refuses":
                raise PermanentError("account_closed", "account: closed")
            case "flaky":
                self.shared.failed[job.job_id] = failed = self.shared.failed.get(job.job_id, 0) + 1
                if failed <= planned.failures:
                    raise ConnectionError
            case "hangs_once" if attempt.number == 1:
                world.pause(10_000)
        if planned.careful:
            if attempt.lost():
                raise TimeoutError
            self.oracle.not_lost(attempt.execution_id, self.clock.now())
        self.oracle.effect(job.key, attempt.execution_id)
        self.unrecorded += 1
        world.pause(planned.after)
        return {"by": attempt.execution_id}

    # JobEvents and BatchEvents

    def finished(self, trace: Trace) -> None:
        seen = self.oracle.by_owner.get(trace.execution_id)
        if seen is not None and seen.effect_at is not None:
            self.unrecorded -= 1
        message_id = trace.delivery.message_id or ""
        self.world.trace.append(f"{self.world.now} {message_id} {trace.job.job_id} {trace.attempt} {trace.outcome}")
        self.oracle.finished(trace, self.clock.now(), self.last_start)

    def fingerprint_unverified(self, job: Job) -> None: ...
    def release_failed(self, job: Job, error: Exception) -> None: ...
    def test_event(self, message: Message) -> None: ...
    def flush(self) -> None: ...

    def turned_away(self, message: Message, job: Job | None, rejected: Rejected) -> None:
        self.oracle.outcomes[f"Rejected {rejected.reason}"] += 1

    def burial_failed(self, message: Message, error: QueueUnavailableError) -> None:
        self.oracle.faults["burial failed"] += 1

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        self.oracle.faults["settling failed"] += 1

    def no_time_to_start(self, message_count: int) -> None:
        self.oracle.fail("an invocation began without time")

    def crashed(self, message: Message, error: Exception) -> None:
        self.oracle.fail(f"unexpected {type(error).__name__}: {error}")


class GreenCrew:
    """A `Crew` of so many greenlets."""

    def __init__(self, worker: "Sandbox", size: int) -> None:
        self.worker, self.size = worker, size

    def start(self, tasks: Sequence[Callable[[], None]]) -> "GreenRunning":
        return GreenRunning(self.worker, list(tasks), self.size)


class GreenRunning:
    """Tasks under way."""

    def __init__(self, worker: "Sandbox", tasks: list[Callable[[], None]], size: int) -> None:
        self.worker, self.world = worker, worker.world
        self.todo = tasks
        self.left, self.ended, self.told = len(tasks), 0, 0
        self.raised: BaseException | None = None
        self.waiter: Task | None = None
        worker.running = self
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


class Sandbox(Worker):
    """A Lambda execution environment, warm between invocations."""

    def __init__(self, shared: Shared, is_free: Callable[[], None], skew: int) -> None:
        super().__init__(shared, skew)
        self.is_free = is_free
        self.busy = False
        self.running: GreenRunning | None = None
        self.batches = SqsBatchProcessor(
            factory=self.factory,
            process=self.service().process,
            queue=self,
            events=self,
            crew=GreenCrew(self, self.plan.threads),
            clock=self.clock,
            jitter=self.world.chance.random,
            retention=shared.backend.retention,
            margin=timedelta(seconds=MARGIN),
            grace=timedelta(seconds=self.plan.grace),
        )

    def invoke(self, batch: list[SentMessage]) -> None:
        """As the event source mapping does: call, delete what is not reported, and kill at the time-out."""
        world, plan = self.world, self.plan
        self.busy = True
        number = next(self.shared.number)
        end = world.now + plan.timeout
        if plan.late_kills and world.now < FAULTS_UNTIL and world.chance.random() * 1000 < plan.late_kills:
            self.oracle.faults["killed late"] += 1
            world.at(end + world.chance.randint(1, 90), partial(self._time_out, number))
        else:
            world.at(end, partial(self._time_out, number))
        self.invocation = number
        world.spawn(self, partial(self._handle, [self._message(sent) for sent in batch], number))

    def _handle(self, batch: list[Message], number: int) -> None:
        invocation_end = self.clock.now() + timedelta(seconds=self.plan.timeout)
        self.last_start = invocation_end - timedelta(seconds=MARGIN)
        failed = self.batches.run(batch, invocation_end=invocation_end, request_id=f"request-{number}")
        if self.running is not None and self.running.left:
            self.oracle.fail("the handler returned while an operation runs")
        self.busy = False
        if self.dead:
            return
        for message in batch:
            if message.message_id in failed and (message.message_id, message.receives) not in self.oracle.told_back:
                self.oracle.fail(f"{message.message_id} goes back and nobody said when")
            if message.message_id not in failed:
                self._delete(message.receipt_handle)
        self.is_free()

    def died(self) -> None:
        self.is_free()

    def _time_out(self, number: int) -> None:
        if self.busy and self.invocation == number and not self.dead:
            self.oracle.faults["timed out"] += 1
            self.dead = True
            self.is_free()

    def _message(self, sent: SentMessage) -> Message:
        planned = sent.planned
        return Message(
            message_id=planned.name,
            receipt_handle=sent.receipt,
            body=sent.body,
            queue_arn=f"{ARN}.fifo" if self.plan.fifo else ARN,
            receives=sent.receives,
            sent_at=moment(planned.sent_at),
            group_id=planned.group if self.plan.fifo else None,
        )

    # The `Queue` port.

    def bury(self, letter: DeadLetter) -> None:
        if self._queue_fails():
            raise QueueUnavailableError("told to fail")
        message = self.shared.queue.by_receipt(letter.message.receipt_handle)
        told = json.loads(letter.attributes[ATTRIBUTE]["StringValue"])
        planned = message.planned if message is not None else None
        if planned is None:
            planned = next(one for one in self.plan.messages if one.name == letter.message.message_id)
        age = int((self.clock.now() - moment(planned.sent_at)).total_seconds())
        self.oracle.buried(planned, told, age)
        if self._queue_fails():
            raise QueueUnavailableError("it landed, the answer is lost")

    def delete(self, messages: Sequence[Message]) -> list[str]:
        if self._queue_fails():
            return ["told to fail"] * len(messages)
        for message in messages:
            self._delete(message.receipt_handle)
        return []

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        for message, seconds in timeouts:
            self.oracle.hidden(message.message_id, message.receives, seconds, self.clock.now())
        if self._queue_fails():
            return ["told to fail"] * len(timeouts)
        for message, seconds in timeouts:
            sent = self.shared.queue.by_receipt(message.receipt_handle)
            if sent is not None:
                sent.visible_at = self.world.now + seconds
        return []

    def _delete(self, receipt: str) -> None:
        message = self.shared.queue.by_receipt(receipt)
        if message is not None:
            self.oracle.deleted(message)
            message.is_gone = True

    def _queue_fails(self) -> bool:
        self.world.pause()
        self.crash_point()
        fails = self.world.now < FAULTS_UNTIL and self.world.chance.random() * 1000 < self.plan.queue_faults
        if fails:
            self.oracle.faults["queue"] += 1
        return fails


class Runner(Worker):
    """A worker without a deadline, whose lease is renewed while it works: what `onejob run` is."""

    def __init__(self, shared: Shared, skew: int, jobs: Sequence[PlannedJob]) -> None:
        super().__init__(shared, skew)
        self.jobs = jobs
        self.process_job = self.service(heartbeat=self.heartbeat).process

    def work(self) -> None:
        for planned in self.jobs:
            job = self.factory.job({"job_id": planned.job_id, "payload": 1})
            for receives in range(1, 60):
                outcome = self.process_job(
                    job,
                    lease=RUNNER_LEASE,
                    deadline=None,
                    delivery=Delivery(receives, f"runner-{planned.job_id}"),
                )
                if not isinstance(outcome, Deferred | Failed):
                    break
                self.world.pause(_wait(outcome, self.clock.now()))

    @contextmanager
    def heartbeat(self, lease: Lease, length: timedelta) -> Iterator[None]:
        beat = _Beat()
        self.world.spawn(self, partial(self._beat, beat, lease, length))
        try:
            yield
        finally:
            beat.ended = True
            while beat.busy and not self.world.is_over:
                self.world.pause(1)

    def _beat(self, beat: "_Beat", lease: Lease, length: timedelta) -> None:
        while True:
            self.world.pause(int(length.total_seconds()) // 3)
            if beat.ended:
                return
            now = self.clock.now()
            beat.busy = True
            try:
                self.store.renew(lease.claim, length)
            except LeaseLostError:
                lease.refuse()
                return
            except StoreUnavailableError:
                pass
            else:
                self.oracle.faults["renewed"] += 1
                lease.extend(now + length)
            finally:
                beat.busy = False


@dataclass(slots=True)
class _Beat:
    ended: bool = False
    busy: bool = False


def _wait(outcome: Outcome, now: datetime) -> int:
    if isinstance(outcome, Deferred):
        return max(1, int((outcome.until - now).total_seconds()) + 1)
    return 5
