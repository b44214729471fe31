"""A process with the real domain in it: its clock, its store, its operation, and where it may be killed."""

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from greenlet import GreenletExit

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operation, Operations
from domain.outcome import Rejected
from domain.ports.events import Trace
from domain.record import Claim
from domain.service import JobService
from tests.simulation.attempts import AttemptSeen
from tests.simulation.backends import Backend
from tests.simulation.oracle import Oracle
from tests.simulation.plan import (
    FAULTS_UNTIL,
    MARGIN,
    MAX_ANSWER_BYTES,
    MAX_ATTEMPTS,
    PAYLOADS,
    Identity,
    Plan,
    PlannedJob,
    PlannedMessage,
)
from tests.simulation.sqs import SentMessage, SimulatedQueue
from tests.simulation.store import WorkerStore
from tests.simulation.world import Process, Violation, World, moment

NAMESPACE = "sim"


class Interrupted(BaseException):
    """What a signal raises, such as Ctrl-C, while an operation runs."""


ENDS_NO_PROCESS: Final = (SystemExit, CancelledError, GeneratorExit, KeyboardInterrupt)
"""What an operation may raise by itself: no `Exception`, and a failure of its job like any other."""


def ends_process(error: BaseException) -> bool:
    """An interrupt; and what ends the simulated process, or the run."""
    return isinstance(error, Interrupted | GreenletExit | Violation)


@dataclass(slots=True)
class Shared:
    """What all workers of a run have in common."""

    world: World
    plan: Plan
    oracle: Oracle
    backend: Backend
    queue: SimulatedQueue
    jobs: dict[Identity, PlannedJob]
    number: Iterator[int]
    send: Callable[[SentMessage], None]
    look_again: Callable[[], None]
    dead_letter: Callable[[PlannedMessage, DeadLetter], None] = field(init=False)
    failed: dict[Identity, int] = field(default_factory=dict)
    operations: Operations = field(init=False)
    factory: JobFactory = field(init=False)

    def __post_init__(self) -> None:
        self.operations = Operations(Operation("default", self._operate))
        self.factory = JobFactory(NAMESPACE, self.operations)

    def announce(self, planned: PlannedMessage) -> PlannedMessage:
        """A message that is sent back, under a name that nobody has."""
        known, name = self.queue.announced, f"{planned.name} again"
        while name in known:
            name += "!"
        known.add(name)
        return replace(planned, name=name, redrives=planned.redrives + 1)

    def _operate(self, job: Job, attempt: Attempt) -> object:
        worker = self.world.current.process
        assert isinstance(worker, Worker)
        return worker.operate(job, attempt)


class WorkerClock:
    """A `Clock` that is wrong by its skew."""

    def __init__(self, world: World, skew: int) -> None:
        self.world, self.skew = world, skew

    def now(self) -> datetime:
        return moment(self.world.now + self.skew)

    def monotonic(self) -> timedelta:
        return timedelta(seconds=self.world.now)

    def sleep(self, duration: timedelta) -> None:
        self.world.pause(-(-duration // timedelta(seconds=1)))


class Worker(Process):
    """A process with the real domain in it. `BatchEvents` and `JobEvents` go to the oracle."""

    def __init__(self, shared: Shared, skew: int) -> None:
        super().__init__(skew)
        self.shared = shared
        self.world, self.oracle, self.plan = shared.world, shared.oracle, shared.plan
        self.clock = WorkerClock(self.world, skew)
        self.unrecorded = 0
        self.owners: set[str] = set()
        self.cuts: list[tuple[str, int, int]] = []
        self.suspended_at = -1
        self.factory = shared.factory
        self.store = WorkerStore(
            self.world,
            self.plan,
            self.oracle,
            shared.backend,
            self,
            self.clock.now,
            self.crash_point,
            MAX_ANSWER_BYTES,
        )

    def service(self, **options: object) -> JobService:
        return JobService(
            store=self.store,
            operations=self.shared.operations,
            events=self,
            clock=self.clock,
            new_id=self._new_id,
            jitter=self.world.chance.random,
            max_attempts=MAX_ATTEMPTS,
            margin=timedelta(seconds=MARGIN),
            ends_process=ends_process,
            **options,  # type: ignore[arg-type]
        )

    def _new_id(self) -> str:
        name = f"run-{next(self.shared.number)}"
        self.owners.add(name)
        return name

    def cut_off(self) -> None:
        """For a while it alone does not reach the store, or the queue. In a calm world it always reaches the store."""
        plan, chance = self.plan, self.world.chance
        if not plan.cuts or chance.random() * 1000 >= plan.cuts:
            return
        start = self.world.now + chance.randint(0, 60)
        end = start + chance.choice((5, 20, 90))
        what: tuple[str, ...] = chance.choice(
            (("store",), ("queue",), ("store", "queue")) if plan.hostile else (("queue",),)
        )
        self.cuts += [(one, start, end) for one in what]

    def crash_point(self) -> None:
        """Here a process may be killed, or sleep past its lease."""
        plan, world = self.plan, self.world
        if world.now >= FAULTS_UNTIL:
            return
        drawn = world.chance.random() * 1000
        if drawn < plan.crashes and (plan.hostile or not self.unrecorded):
            self.oracle.faults["killed"] += 1
            self.die()
        if drawn > 1000 - plan.suspensions:
            self.oracle.faults["suspended"] += 1
            self.suspended_at = world.now
            self.asleep_until = world.now + world.chance.randint(5, 120)
            world.pause()

    def die(self) -> None:
        """As by `kill -9`, where it stands."""
        self.died_at = self.world.now
        self.died()
        self.world.stop()

    def parsing_point(self) -> None:
        """Here a process may be killed by what it reads."""
        plan, world = self.plan, self.world
        if not plan.parsing or world.now >= FAULTS_UNTIL or (self.unrecorded and not plan.hostile):
            return
        if world.chance.random() * 1000 < plan.parsing:
            self.oracle.faults["killed while parsing"] += 1
            self.die()

    def is_cut_off(self, what: str) -> bool:
        now = self.world.now
        return bool(self.cuts) and any(one == what and start <= now < end for one, start, end in self.cuts)

    def thread_is_refused(self) -> bool:
        """Whether the system has no thread to spare just now."""
        plan, world = self.plan, self.world
        is_refused = plan.refused > 0 and world.now < FAULTS_UNTIL and world.chance.random() * 1000 < plan.refused
        self.oracle.faults["thread refused"] += is_refused
        return is_refused

    def died(self) -> None:
        """Told before its last step."""

    def operate(self, job: Job, attempt: Attempt) -> object:
        seen = self.oracle.started(job, attempt, self.clock.now(), self.store.last_try)
        planned, world = self.shared.jobs[job.tenant, job.job_id], self.world
        is_refused = planned.behaviour == "refuses" and job.payload == PAYLOADS[0]
        job.payload["changed_by"] = attempt.execution_id
        world.pause(planned.before)
        self.crash_point()
        if is_refused:
            seen.raised = PermanentError.__name__
            raise PermanentError("account_closed", "account: closed")
        self._behave(planned, attempt, seen)
        self.work_longer(planned, attempt, seen)
        if planned.careful:
            seen.careful = True
            self.stop_if_lost(attempt, seen)
        seen.big = planned.big and attempt.number % 2 == 1
        self.oracle.effect(seen)
        self.unrecorded += 1
        world.pause(planned.after)
        answer = {"by": attempt.execution_id}
        return answer | {"more": "x" * MAX_ANSWER_BYTES} if seen.big else answer

    def _behave(self, planned: PlannedJob, attempt: Attempt, seen: AttemptSeen) -> None:
        """What an operation does before its effect, if it gets there."""
        match planned.behaviour:
            case "flaky":
                failed = self.shared.failed
                failed[planned.identity] = failed.get(planned.identity, 0) + 1
                if failed[planned.identity] <= planned.failures:
                    seen.raised = ConnectionError.__name__
                    raise ConnectionError
            case "deadly":
                while self.unrecorded and not self.plan.hostile:  # or it would open the window of another job
                    self.world.pause(1)
                self.oracle.killed_by_its_job(self)
                self.die()
            case "hangs_once" if attempt.number == 1:
                self.hang(attempt, seen)
            case "brink" if attempt.deadline is not None:
                self.world.pause(max(0, int((attempt.deadline - self.clock.now()).total_seconds()) + MARGIN - 3))
            case "exits_once" if attempt.number == 1:
                self.oracle.faults["exited"] += 1
                kind = ENDS_NO_PROCESS[planned.failures - 1 + 2 * planned.careful]
                seen.raised = kind.__name__
                raise kind
            case "interrupted_once" if attempt.number == 1:
                self.oracle.faults["interrupted"] += 1
                seen.interrupted = True
                raise Interrupted

    def hang(self, attempt: Attempt, seen: AttemptSeen) -> None:
        """For longer than anybody waits."""
        self.world.pause(10_000)

    def work_longer(self, planned: PlannedJob, attempt: Attempt, seen: AttemptSeen) -> None:
        """Where a lease is renewed."""

    def stop_if_lost(self, attempt: Attempt, seen: AttemptSeen) -> None:
        is_lost = attempt.lost()
        self.oracle.asked_lost(seen, is_lost, self.clock.now())
        if is_lost:
            seen.raised = TimeoutError.__name__
            raise TimeoutError

    # JobEvents and BatchEvents

    def finished(self, trace: Trace) -> None:
        seen = self.oracle.by_fence.get((trace.execution_id, trace.attempt))
        if seen is not None and seen.effect_at is not None:
            self.unrecorded -= 1
        message_id = trace.delivery.message_id or ""
        self.world.trace.append(f"{self.world.now} {message_id} {trace.job.job_id} {trace.attempt} {trace.outcome}")
        self.oracle.finished(trace, self.clock.now(), self.store.last_try)

    def fingerprint_unverified(self, job: Job) -> None: ...

    def release_failed(self, job: Job, error: Exception) -> None:
        self.oracle.faults["release failed"] += 1

    def overdue(self, job: Job, claim: Claim) -> None:
        self.oracle.faults["overdue"] += 1

    def threads_refused(self, purpose: str, had: int) -> None:
        self.oracle.faults["threads refused"] += 1

    def flush(self) -> None: ...

    def rejected_unread(self, message: Message, job: Job | None, rejected: Rejected) -> None:
        self.oracle.outcomes[f"Rejected {rejected.reason}"] += 1
        deliveries = self.oracle.deliveries
        deliveries.rejected_unread(deliveries.of(message), rejected, self.clock.now())

    def test_event(self, message: Message) -> None:
        self.oracle.outcomes["test event"] += 1
        deliveries = self.oracle.deliveries
        deliveries.nothing_to_do(deliveries.of(message), self.clock.now())

    def dead_letter_failed(self, message: Message, error: QueueUnavailableError) -> None:
        self.oracle.faults["burial failed"] += 1
        deliveries = self.oracle.deliveries
        deliveries.not_buried(deliveries.of(message), self.clock.now())

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        self.oracle.faults["settling failed"] += 1

    def no_time_to_start(self, message_count: int) -> None:
        self.oracle.fail("an invocation began without time")

    def crashed(self, message: Message, error: Exception) -> None:
        self.oracle.fail(f"unexpected {type(error).__name__}: {error}")
