"""A job's record, and the one judgement of what a claim may make of it. Stores differ in how, never in what."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseHeldError, RecordChangedError
from domain.identity import JobKey, same_scheme
from domain.job import Job
from domain.life import FIRST_CLAIM, NEW, Life

RELEASED: Final = datetime.fromtimestamp(0, UTC)
"""The lease end of a released record: past on every clock."""


class Status(StrEnum):
    """As Powertools writes it."""

    IN_PROGRESS = "INPROGRESS"
    COMPLETED = "COMPLETED"


class State(StrEnum):
    """What a record says at some moment, in an operator's words."""

    RUNNING = "running"
    LAPSED = "lapsed"
    """Its worker was killed, timed out, or is cut off: the next delivery takes it over."""
    RELEASED = "released"
    """Its last attempt failed, or an operator had it forgotten: the next delivery runs it."""
    COMPLETED = "completed"
    EXPIRED = "expired"
    """Nobody answers for it any more; it is there until it is deleted."""


@dataclass(frozen=True, slots=True)
class Record:
    """What a store knows of a job. `lease_until` and `job_id` are None only where another tool wrote the record.

    - `attempts` counts claims. It is the fence, and never goes back while the record exists.
    - `life` is the count of its runs. Another tool's record has none.
    - `released_by` is the owner that gave it back; nobody else has claimed it since.
    - `last_seen` is when a worker last claimed, completed or released it.
    - `epoch` counts from 1 how often the job may have its effect: an operator who has it forgotten begins another.
    """

    key: JobKey
    job_id: str | None
    status: Status
    owner: str | None
    attempts: int
    lease_until: datetime | None
    expires_at: datetime
    fingerprint: str | None
    answer: Answer | None = None
    last_error: str | None = None
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    epoch: int = 1
    life: Life = NEW
    released_by: str | None = None

    @property
    def in_progress(self) -> bool:
        return self.status is Status.IN_PROGRESS

    def lease_is_over(self, now: datetime) -> bool:
        """Strictly: at its very end a lease is still held. A claim without a lease lasts for the retention."""
        return (self.expires_at if self.lease_until is None else self.lease_until) < now

    def retention_is_over(self, now: datetime) -> bool:
        """Nobody answers for this record any more. A live lease is judged first: it outlasts any retention."""
        return self.expires_at < now and (not self.in_progress or self.lease_is_over(now))

    def state(self, now: datetime) -> State:
        """In the order in which a claim judges."""
        if self.retention_is_over(now):
            return State.EXPIRED
        if not self.in_progress:
            return State.COMPLETED
        if not self.lease_is_over(now):
            return State.RUNNING
        return State.RELEASED if self.lease_until == RELEASED else State.LAPSED

    @property
    def is_held(self) -> bool:
        """An attempt has claimed it and not ended it, whether or not its lease is over."""
        return self.in_progress and self.lease_until != RELEASED

    def is_same_as(self, other: "Record") -> bool:
        """Whether nobody has claimed, ended or forgotten it between the two. A renewal does not count."""
        return (self.status, self.owner, self.attempts, self.epoch) == (
            other.status,
            other.owner,
            other.attempts,
            other.epoch,
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to write a record. The fence is the pair (owner, attempt); a store may subclass it.

    `life` is what the record counted when it was claimed, this attempt among those under way.
    """

    key: JobKey
    owner: str
    attempt: int
    epoch: int = 1
    life: Life = field(default=FIRST_CLAIM, compare=False)


@dataclass(frozen=True, slots=True)
class Acquired:
    """The job is this worker's.

    - `last_error` is the error type that the attempt before it left.
    - `verified` is False where the payload of a record that was taken over could not be compared.
    """

    claim: Claim
    last_error: str | None = None
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Completed:
    """The job is done. `verified` tells whether the fingerprints could be compared."""

    answer: Answer
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Busy:
    """Another worker holds the job until then, and claimed it at `since`, where that is known."""

    until: datetime
    verified: bool = True
    since: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The same job with another payload."""


@dataclass(frozen=True, slots=True)
class Claimable:
    """The record may be taken: there is none, its retention is over, or its lease is."""

    verified: bool = True


type ClaimAnswer = Acquired | Completed | Busy | Mismatch


def record_changed(seen: Record) -> RecordChangedError:
    """What stands there is not what was seen."""
    return RecordChangedError(f"{seen.key}: changed since it was shown")


def refusal_to_forget(found: Record | None, seen: Record) -> RecordChangedError | LeaseHeldError:
    """Why what stands there is not forgotten for who saw `seen`."""
    if found is None or not found.is_same_as(seen):
        return record_changed(seen)
    return LeaseHeldError(f"{seen.key}: attempt {found.attempts} has not ended")


def kept_until(now: datetime, lease: timedelta, retention: timedelta) -> datetime:
    """The end of the retention of a record that is claimed or renewed now. It is never before the end of the lease."""
    return now + max(retention, lease)


def claimed(
    old: Record | None, job: Job, *, owner: str, now: datetime, lease: timedelta, retention: timedelta
) -> Record:
    """The record as a claim makes it, where `judge` found `old` free."""
    life = old.life if old else NEW
    if old and old.retention_is_over(now):
        life = life.following()
    return Record(
        key=job.key,
        job_id=job.job_id,
        status=Status.IN_PROGRESS,
        owner=owner,
        attempts=(old.attempts if old else 0) + 1,
        lease_until=now + lease,
        expires_at=kept_until(now, lease, retention),
        fingerprint=job.fingerprint,
        last_error=old.last_error if old else None,
        first_seen=old.first_seen if old and old.first_seen else now,
        last_seen=now,
        epoch=old.epoch if old else 1,
        life=life.claimed(),
    )


def acquired(record: Record, *, verified: bool = True) -> Acquired:
    """The claim on a record that is in progress under its owner."""
    claim = Claim(record.key, record.owner or "", record.attempts, record.epoch, record.life)
    return Acquired(claim, record.last_error, verified)


def is_held_by(record: Record | None, claim: Claim) -> bool:
    """Whether writes of this claim land."""
    return record is not None and record.in_progress and (record.owner, record.attempts) == (claim.owner, claim.attempt)


def was_released_by(record: Record | None, claim: Claim) -> bool:
    """Whether this claim gave it back, and nothing has happened since."""
    return record is not None and (record.owner, record.released_by, record.attempts, record.lease_until) == (
        None,
        claim.owner,
        claim.attempt,
        RELEASED,
    )


def was_completed_by(record: Record | None, claim: Claim) -> bool:
    """Whether this claim stored its answer."""
    return (
        record is not None
        and record.status is Status.COMPLETED
        and (record.owner, record.attempts) == (claim.owner, claim.attempt)
    )


def begun(held: Record, claim: Claim, life: Life) -> Record:
    """The record with this attempt counted, unless another life has begun."""
    return replace(held, life=life) if held.life.number == claim.life.number else held


def completed(held: Record, answer: Answer, now: datetime, retention: timedelta) -> Record:
    """The record as a completion makes it. What is done has no runs any more."""
    return replace(
        held,
        status=Status.COMPLETED,
        answer=answer,
        expires_at=now + retention,
        last_seen=now,
        life=Life(held.life.number),
    )


def released(
    held: Record, claim: Claim, now: datetime, error: str, *, forget_payload: bool, life: Life | None
) -> Record:
    """The record as a release makes it. `life` is what is counted then; None: the attempt was no run."""
    return replace(
        begun(held, claim, life or claim.life.ended()),
        owner=None,
        released_by=claim.owner,
        lease_until=RELEASED,
        last_error=error or held.last_error,
        fingerprint=None if forget_payload else held.fingerprint,
        last_seen=now,
    )


def renewed(held: Record, now: datetime, lease: timedelta, retention: timedelta) -> Record:
    """The record as a renewal makes it; never backwards."""
    if held.lease_until is not None and held.lease_until >= now + lease:
        return held
    return replace(held, lease_until=now + lease, expires_at=kept_until(now, lease, retention))


def forgotten(seen: Record, now: datetime, retention: timedelta) -> Record:
    """The record as forgetting makes it: released by nobody, in another epoch and another life."""
    return replace(
        seen,
        status=Status.IN_PROGRESS,
        owner=None,
        released_by=None,
        lease_until=RELEASED,
        expires_at=now + retention,
        fingerprint=None,
        answer=None,
        epoch=seen.epoch + 1,
        life=seen.life.following(),
    )


def judge(record: Record | None, job: Job, owner: str, now: datetime) -> ClaimAnswer | Claimable:
    """What `owner` finds when it claims `job`. The order of the questions is the rule. Raises `ForeignRecordError`.

    A claim that finds itself (same owner and same fingerprint, its lease live) had landed; its answer was lost.
    """
    if record is None:
        return Claimable()
    if record.job_id not in (None, job.job_id):
        raise ForeignRecordError(f"{job.key}: the record belongs to another job_id")
    if record.retention_is_over(now):
        return Claimable()
    verified = same_scheme(record.fingerprint, job.fingerprint)
    if verified and record.fingerprint != job.fingerprint:
        return Mismatch()
    if not record.in_progress:
        return Completed(record.answer or Answer("null"), verified)
    if record.released_by == owner:  # a claim that was asked for before and landed after: nobody waits for its answer
        return Busy(now, verified)
    if record.lease_is_over(now):
        return Claimable(verified)
    if record.owner == owner and record.fingerprint == job.fingerprint:
        return acquired(record)
    return Busy(record.lease_until or record.expires_at, verified, record.last_seen)
