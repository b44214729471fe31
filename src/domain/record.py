"""A job's record, and the one judgement of what a claim may make of it. Stores differ in how, never in what."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

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

    - `attempts` counts claims. It is the fence, and never goes back while the record exists.
    - `runs` counts the runs of this life that are known to have begun. A life begins with the record, when its
      retention is over, when an operator has it forgotten or its message sent back, and when another message comes
      after one that was rejected. The limit on runs is on this number. Another tool's record has none.
    - `rejected` is the id of the message that was rejected last. While that one comes back, the count goes on.
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
    runs: int = 0
    rejected: str | None = None

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

    `runs` is what the record counted when it was claimed, before this attempt.
    """

    key: JobKey
    owner: str
    attempt: int
    epoch: int = 1
    runs: int = 0


class RunCount(StrEnum):
    """What a release makes of the number of runs."""

    SAME = "same"
    """The attempt did not run, or is counted already."""
    ONE_MORE = "one more"
    FIRST = "first"
    """The first run of a new life."""
    UNDONE = "undone"
    """It was counted before it began, and then it did not."""


@dataclass(frozen=True, slots=True)
class Acquired:
    """The job is this worker's.

    - `last_error` is the error type that the attempt before it left.
    - `verified` is False where the payload of a record that was taken over could not be compared.
    - `rejected` is the id of the message that was rejected last (`Record.rejected`).
    - `after_lapse`: the attempt before it was not ended. Its worker died in it, or never learned of its claim.
    """

    claim: Claim
    last_error: str | None = None
    verified: bool = True
    rejected: str | None = None
    after_lapse: bool = False


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
    """The record may be taken: there is none, its retention is over, or its lease is. `after_lapse`: see `Acquired`."""

    verified: bool = True
    after_lapse: bool = False


type ClaimAnswer = Acquired | Completed | Busy | Mismatch


def record_changed(seen: Record) -> RecordChangedError:
    """What stands there is not what was seen."""
    return RecordChangedError(f"{seen.key}: changed since it was shown")


def refusal_to_forget(found: Record | None, seen: Record) -> RecordChangedError | LeaseHeldError:
    """Why what stands there is not forgotten for who saw `seen`."""
    if found is None or not found.is_same_as(seen):
        return record_changed(seen)
    return LeaseHeldError(f"{seen.key}: attempt {found.attempts} has not ended")


def claimed(
    old: Record | None, job: Job, *, owner: str, now: datetime, lease: timedelta, retention: timedelta
) -> Record:
    """The record as a claim makes it, where `judge` found `old` free. Retention is never shorter than the lease."""
    same_life = old is not None and not old.retention_is_over(now)
    return Record(
        key=job.key,
        job_id=job.job_id,
        status=Status.IN_PROGRESS,
        owner=owner,
        attempts=(old.attempts if old else 0) + 1,
        lease_until=now + lease,
        expires_at=now + max(retention, lease),
        fingerprint=job.fingerprint,
        last_error=old.last_error if old else None,
        first_seen=old.first_seen if old and old.first_seen else now,
        last_seen=now,
        epoch=old.epoch if old else 1,
        runs=old.runs if old and same_life else 0,
        rejected=old.rejected if old and same_life else None,
    )


def acquired(record: Record, free: Free | None = None) -> Acquired:
    """The claim on a record that is in progress under its owner; `free` is what was judged before it was made."""
    claim = Claim(record.key, record.owner or "", record.attempts, record.epoch, record.runs)
    found = free or Free()
    return Acquired(claim, record.last_error, found.verified, record.rejected, found.after_lapse)


def released(
    held: Record, now: datetime, error: str, *, forget_payload: bool, runs: RunCount, rejected: str | None
) -> Record:
    """The record as a release makes it."""
    return replace(
        held,
        owner=None,
        lease_until=RELEASED,
        last_error=error or held.last_error,
        fingerprint=None if forget_payload else held.fingerprint,
        last_seen=now,
        runs=counted(held.runs, runs),
        rejected=rejected or (None if runs is RunCount.FIRST else held.rejected),
    )


def restarted(seen: Record) -> int:
    """The number of runs of a job whose message is sent anew: 0; -1 where an attempt is under way, whose end counts one
    though it began before.
    """
    return -1 if seen.is_held else 0


def counted(before: int, runs: RunCount) -> int:
    """The number of runs after a release."""
    match runs:
        case RunCount.SAME:
            return before
        case RunCount.ONE_MORE:
            return before + 1
        case RunCount.FIRST:
            return 1
        case RunCount.UNDONE:
            return before - 1
        case _:
            assert_never(runs)


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
        return Free(verified, record.is_held)
    if record.owner == owner and record.fingerprint == job.fingerprint:
        return acquired(record)
    return Busy(record.lease_until or record.expires_at, verified)
