"""A job's record, and the one judgement of what a claim may make of it. Stores differ in how, never in what."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseHeldError, RecordChangedError
from domain.identity import JobKey, comparable
from domain.job import Job

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

    `last_seen` is when a worker last claimed, completed or released it. `epoch` counts from 1 how often the job may
    have its effect: an operator who has it forgotten begins another.
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
    """The right to write a record. The fence is the pair (owner, attempt); a store may subclass it."""

    key: JobKey
    owner: str
    attempt: int
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class Acquired:
    """The job is this worker's. `last_error` is the error type that the attempt before it left; `verified` is False
    where the payload of a record that was taken over could not be compared.
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
    """Another worker holds the job until then."""

    until: datetime
    verified: bool = True


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The same job with another payload."""


@dataclass(frozen=True, slots=True)
class Free:
    """The record may be taken: there is none, its retention is over, or its lease is."""

    verified: bool = True


type ClaimAnswer = Acquired | Completed | Busy | Mismatch


def refusal_to_forget(found: Record | None, seen: Record) -> RecordChangedError | LeaseHeldError:
    """Why what stands there is not forgotten for who saw `seen`."""
    if found is None or not found.is_same_as(seen):
        return RecordChangedError(f"{seen.key}: changed since it was shown")
    return LeaseHeldError(f"{seen.key}: attempt {found.attempts} has not ended")


def judge(record: Record | None, job: Job, owner: str, now: datetime) -> ClaimAnswer | Free:
    """What `owner` finds when it claims `job`. The order of the questions is the rule. Raises `ForeignRecordError`.

    A claim that finds itself (same owner and same fingerprint, its lease live) had landed; its answer was lost.
    """
    if record is None:
        return Free()
    if record.job_id not in (None, job.job_id):
        raise ForeignRecordError(f"{job.key}: the record belongs to another job_id")
    if record.retention_is_over(now):
        return Free()
    verified = comparable(record.fingerprint, job.fingerprint)
    if verified and record.fingerprint != job.fingerprint:
        return Mismatch()
    if not record.in_progress:
        return Completed(record.answer or Answer("null"), verified)
    if record.lease_is_over(now):
        return Free(verified)
    if record.owner == owner and record.fingerprint == job.fingerprint:
        return Acquired(Claim(job.key, owner, record.attempts, record.epoch), record.last_error)
    return Busy(record.lease_until or record.expires_at, verified)
