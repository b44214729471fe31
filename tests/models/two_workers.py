"""Two workers and a job that each of them is delivered twice: the real service over the store in memory, watched.

Each step of a schedule is a call of the store or the operation's effect. One worker may be killed at any point, and the
time may jump past every lease at any point. What may never be is asserted here.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from greenlet import GreenletExit

from adapters.stores.memory import MemoryIdempotencyStore
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.outcome import Executed, Failed, Outcome, Rejected
from domain.record import Claim, Record, Status
from domain.service import JobService
from tests.models.schedules import Worker, pause
from tests.models.watched_store import LEASE, START, Run, Watched, WatchedStore, answer_of, by_the_table
from tests.support.clock import FakeClock
from tests.support.jobs import RecordedEvents, counting_ids, job, operations

JOB = job("job-001", amount=10)
WORKERS = DELIVERIES = 2


class LeaseGoneError(Exception):
    """Raised by an operation that looked at `lost()` before its effect."""


@dataclass(frozen=True)
class Case:
    """The operation: whether it looks at `lost()` before its effect, and what its first attempt raises there. And how
    far the time jumps: to the very end of the leases that were taken at the start, or beyond.
    """

    looks: bool = False
    raises: type[Exception] | None = None
    jump: timedelta = LEASE + timedelta(milliseconds=1)

    def before_effect(self, attempt: Attempt) -> None:
        if self.looks and attempt.lost():
            raise LeaseGoneError
        if self.raises and attempt.number == 1:
            raise self.raises


class TwoWorkers:
    """A `World`."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.clock = FakeClock(START)
        self.store = MemoryIdempotencyStore(self.clock, timedelta(days=1))
        self.runs: list[Run] = []
        self.outcomes: list[Outcome] = []
        self.met: Counter[str] = Counter()
        self.completed: Record | None = None
        self.broken: AssertionError | None = None
        self.at: list[Watched] = [Watched() for _ in range(WORKERS)]
        new_id = counting_ids()
        self.services = [
            JobService(
                store=WatchedStore(self, number),
                operations=operations(lambda job, attempt, number=number: self.operation(number, attempt)),  # type: ignore[misc]
                events=RecordedEvents(),
                clock=self.clock,
                new_id=new_id,
                jitter=lambda: 0.0,
                max_attempts=WORKERS * DELIVERIES + 1,
                margin=timedelta(seconds=5),
                ends_process=lambda error: isinstance(error, GreenletExit),
            )
            for number in range(WORKERS)
        ]
        self.workers = [
            Worker([lambda n=n, d=d: self.deliver(n, d) for d in range(1, DELIVERIES + 1)])  # type: ignore[misc]
            for n in range(WORKERS)
        ]

    def deliver(self, worker: int, receives: int) -> None:
        watched = self.at[worker] = Watched(self.clock.now())
        outcome = self.services[worker].process(JOB, lease=LEASE, deadline=None, delivery=Delivery(receives))
        expected = by_the_table(watched)
        assert self.broken or outcome == expected, f"the table says {expected}, the outcome was {outcome}"
        self.outcomes.append(outcome)
        self.met[type(outcome).__name__] += 1
        if isinstance(outcome, Failed | Rejected):
            self.met[str(outcome.reason)] += 1

    def operation(self, worker: int, attempt: Attempt) -> object:
        """A broken promise seen in here must not look like an operation that failed."""
        try:
            return self.run(self.at[worker], attempt)
        except AssertionError as broken:
            self.broken = broken
            raise

    def run(self, watched: Watched, attempt: Attempt) -> object:
        assert watched.run is not None, "it runs, and nobody acquired it"
        assert watched.run.claim.attempt == attempt.number
        assert self.clock.now() < watched.began_at + LEASE, "a run began when its lease was over"
        pause()
        try:
            self.case.before_effect(attempt)
        except Exception as error:
            watched.raised = error
            raise
        self.effect(watched.run)
        return answer_of(watched.run.claim).value

    def effect(self, run: Run) -> None:
        run.effect_at = self.clock.now()
        assert not self.case.looks or run.effect_at < run.lease_until, "an effect after the lease, though it looked"
        for other in self.runs:
            if other is not run and other.effect_at is not None:
                first, second = sorted((run, other), key=lambda each: each.claim.attempt)
                outlived = second.acquired_at > first.lease_until
                assert first.killed or outlived, f"two effects: {first} and {second}"
                self.met[f"two effects, {'after a kill' if first.killed else 'a lease outlived'}"] += 1

    def acquired(self, worker: int, claim: Claim, before: Record | None) -> None:
        now, record = self.clock.now(), self.record()
        assert record.lease_until is not None
        assert before is None or before.in_progress, "a completed job was claimed"
        if before is not None:
            assert before.lease_until is not None
            assert before.lease_until < now, "a live lease was taken over"
        assert all(run.claim.attempt < claim.attempt for run in self.runs), "attempts strictly increase"
        run = Run(claim, now, record.lease_until)
        self.runs.append(run)
        self.at[worker].run = run

    def killed(self, worker: int) -> None:
        watched = self.at[worker]
        watched.dead = True
        if watched.run is None:
            return
        watched.run.killed = True
        if self.holder() == watched.run.claim.owner:
            self.met[f"killed {'between effect and record' if watched.run.effect_at else 'before its effect'}"] += 1
        elif self.completed is not None and self.completed.owner == watched.run.claim.owner:
            self.met["killed after the record, unheard"] += 1

    def time_jumps(self) -> None:
        self.clock.time += self.case.jump
        self.met["time jumped while a claim was held"] += self.holder() is not None

    def stepped(self) -> None:
        if self.broken is not None:
            raise self.broken
        record = self.store.find(JOB.key)
        if self.completed is not None:
            assert record == self.completed, "a completed record changed"
        elif record is not None and record.status is Status.COMPLETED:
            self.completed = record
            assert record.owner is not None
            owner = Claim(JOB.key, record.owner, record.attempts)
            assert record.answer == answer_of(owner), "the answer is not its owner's"
            fence = record.owner, record.attempts
            fences = [(run.claim.owner, run.claim.attempt) for run in self.runs if run.effect_at]
            assert fence in fences, "completed without an effect"

    def end(self) -> None:
        """Whatever happened: one more delivery, when every lease is over, finds the job done or does it."""
        assert sum(isinstance(outcome, Executed) for outcome in self.outcomes) <= 1, "executed twice"
        self.clock.time += 2 * LEASE
        last = Worker([lambda: self.deliver(0, DELIVERIES + 1)])
        while not last.done:
            last.step()
            self.stepped()
        assert self.completed is not None, "the job is not done"

    def now(self) -> datetime:
        return self.clock.now()

    def holder(self) -> str | None:
        record = self.store.find(JOB.key)
        return record.owner if record is not None and record.in_progress else None

    def record(self) -> Record:
        record = self.store.find(JOB.key)
        assert record is not None
        return record
