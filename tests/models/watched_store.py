"""The store as one worker sees it, in a schedule: each call is a step, and what was said tells the outcome."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from adapters.stores.memory import MemoryIdempotencyStore
from domain.answer import Answer
from domain.errors import LeaseLostError, PermanentError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.record import Acquired, Busy, Claim, ClaimAnswer, Completed, Record, Status
from tests.models.schedules import pause

START = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=60)


@dataclass
class Run:
    """What is known of one attempt from outside."""

    claim: Claim
    acquired_at: datetime
    lease_until: datetime
    effect_at: datetime | None = None
    killed: bool = False


@dataclass
class Watched:
    """One delivery: what the store said in it, from which the table tells the outcome."""

    began_at: datetime = START
    said: list[tuple[str, object]] = field(default_factory=list)
    run: Run | None = None
    raised: Exception | None = None
    dead: bool = False


class Watcher(Protocol):
    """Who is told what happens in the store."""

    store: MemoryIdempotencyStore
    completed: Record | None
    at: list[Watched]

    def now(self) -> datetime: ...

    def acquired(self, worker: int, claim: Claim, before: Record | None) -> None: ...


class WatchedStore:
    """The store as one worker sees it: each call is a step, and what it said is kept."""

    max_answer_bytes: int | None = None

    def __init__(self, world: Watcher, worker: int) -> None:
        self.world = world
        self.worker = worker

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        watched = self._step()
        before = self.world.store.find(job.key)
        answer = self.world.store.claim(job, owner=owner, lease=lease)
        watched.said.append(("claim", answer))
        match answer:
            case Acquired(acquired):
                self.world.acquired(self.worker, acquired, before)
            case Completed(stored):
                assert self.world.completed, "told completed, and it is not"
                assert stored == self.world.completed.answer, "another answer than the stored one"
            case Busy(until):
                assert before, "told busy, and there is no record"
                assert before.in_progress, "told busy, and it is completed"
                assert before.lease_until == until, "told another end of the lease"
                assert until >= self.world.now(), "told busy, and the lease is over"
        return answer

    def begin(self, claim: Claim, life: Life) -> None:
        self._write("begin", lambda: self.world.store.begin(claim, life))

    def complete(self, claim: Claim, answer: Answer) -> None:
        self._write("complete", lambda: self.world.store.complete(claim, answer))

    def release(self, claim: Claim, error: str, **how: Any) -> None:
        self._write("release", lambda: self.world.store.release(claim, error, **how))

    def renew(self, claim: Claim, lease: timedelta) -> None:
        raise AssertionError("nobody renews here")

    def find(self, key: JobKey) -> Record | None:
        watched = self._step()
        record = self.world.store.find(key)
        watched.said.append(("find", record))
        return record

    def close(self) -> None:
        """No step: nothing is held."""

    def _write(self, name: str, call: Callable[[], None]) -> None:
        watched = self._step()
        try:
            call()
        except LeaseLostError as lost:
            watched.said.append((name, lost))
            raise
        watched.said.append((name, None))
        pause()  # it landed, and whoever wrote it may die before it hears so

    def _step(self) -> Watched:
        watched = self.world.at[self.worker]
        assert not watched.dead, "a killed worker called the store"
        pause()
        return watched


def answer_of(claim: Claim) -> Answer:
    return Answer.of({"owner": claim.owner, "attempt": claim.attempt}, None)


def by_the_table(watched: Watched) -> Outcome:
    """The outcome by the table in `domain.service`, from what the store said and the operation did."""
    last: Any
    name, last = watched.said[-1]
    match name, last:
        case "find", Record(status=Status.COMPLETED, answer=Answer() as answer):
            return Skipped(answer)
        case "find", Record(status=Status.IN_PROGRESS, lease_until=datetime() as until):
            return Deferred(until)  # or it would have been claimed
        case "claim", Completed(answer):
            return Skipped(answer)
        case "claim", Busy(until):
            return Deferred(until)
        case "release", None if watched.run and watched.raised is None:
            return Failed(Failure.LEASE_LOST)  # the claim took longer than it lasts: nothing ran
        case "begin", LeaseLostError():
            return Failed(Failure.LEASE_LOST)
        case "release", LeaseLostError() if watched.raised is None:
            return Failed(Failure.LEASE_LOST)
        case "complete", None:
            assert watched.run is not None
            return Executed(answer_of(watched.run.claim))
        case "complete", LeaseLostError():
            return Failed(Failure.LEASE_LOST)
        case "release", LeaseLostError():
            return Failed(Failure.LEASE_LOST, type(watched.raised).__name__)
        case "release", None if isinstance(watched.raised, PermanentError):
            assert watched.run is not None
            return Rejected(watched.raised.code, "", "PermanentError", watched.run.claim.attempt)
        case "release", None:
            return Failed(Failure.OPERATION_RAISED, type(watched.raised).__name__)
    raise AssertionError(f"not in the table: {watched}")
