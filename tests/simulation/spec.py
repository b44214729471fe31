"""The conditions of the `IdempotencyStore` port, written again from its docstrings: an oracle for each transition.

Nothing here calls `domain.record.judge`. Each function tells what is wrong with a transition, if something is.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.job import Job
from domain.life import Life
from domain.record import RELEASED, Acquired, Busy, Claim, ClaimAnswer, Completed, Mismatch, Record, Status

type Result = ClaimAnswer | Record | Exception | None


@dataclass(frozen=True, slots=True)
class Transition:
    """One request to the port: what stood there, what stands there after it, and what was answered. `now` is the time
    on the clock of whoever asked.
    """

    before: Record | None
    after: Record | None
    now: datetime
    retention: timedelta
    result: Result


@dataclass(frozen=True, slots=True)
class Released:
    """What a release was told. `life` is what is counted then; None: the attempt was no run."""

    error: str
    forget_payload: bool
    life: Life | None


def _lease_is_over(record: Record, now: datetime) -> bool:
    assert record.lease_until is not None
    return record.lease_until < now


def is_forgotten(record: Record, now: datetime) -> bool:
    """A live lease is judged before retention."""
    return record.expires_at < now and (record.status is not Status.IN_PROGRESS or _lease_is_over(record, now))


def _is_comparable(record: Record, job: Job) -> bool:
    return record.fingerprint is not None and record.fingerprint.split(":")[0] == job.fingerprint.split(":")[0]


def claim(seen: Transition, job: Job, owner: str, lease: timedelta) -> str | None:
    before, result, now = seen.before, seen.result, seen.now
    if before is None or is_forgotten(before, now):
        return _taken(seen, job, owner, lease)
    if _is_comparable(before, job) and before.fingerprint != job.fingerprint:
        return _unchanged(seen) or (None if isinstance(result, Mismatch) else f"expected Mismatch, got {result}")
    if before.status is Status.COMPLETED:
        if not isinstance(result, Completed) or result.answer != before.answer:
            return f"expected the stored answer, got {result}"
        if result.verified != _is_comparable(before, job):
            return f"the payloads were compared, or were not: {result}"
        return _unchanged(seen)
    if before.released_by == owner:
        return _unchanged(seen) or (None if isinstance(result, Busy) else f"it landed after its release: {result}")
    if _lease_is_over(before, now):
        return _taken(seen, job, owner, lease)
    if before.owner == owner and before.fingerprint == job.fingerprint:
        if not isinstance(result, Acquired) or result.claim.attempt != before.attempts:
            return f"a claim did not recognise itself: {result}"
        if result.claim.life != before.life:
            return f"a claim that recognised itself has another count of runs: {result}"
        return _unchanged(seen)
    if not isinstance(result, Busy) or result.until != before.lease_until:
        return f"expected Busy until {before.lease_until}, got {result}"
    if result.verified != _is_comparable(before, job):
        return f"the payloads were compared, or were not: {result}"
    return _unchanged(seen)


def _taken(seen: Transition, job: Job, owner: str, lease: timedelta) -> str | None:
    before, after, result, now = seen.before, seen.after, seen.result, seen.now
    attempts = (before.attempts if before else 0) + 1
    if not isinstance(result, Acquired):
        return f"expected Acquired, got {result}"
    if after is None or (after.owner, after.attempts, after.status) != (owner, attempts, Status.IN_PROGRESS):
        return f"the record was not taken: {after}"
    if (result.claim.owner, result.claim.attempt) != (owner, attempts):
        return f"a claim that is not the record's: {result.claim}"
    if after.lease_until != now + lease or after.expires_at != now + max(seen.retention, lease):
        return f"wrong ends: lease {after.lease_until}, retention {after.expires_at}"
    if after.fingerprint != job.fingerprint or after.answer is not None:
        return "the fingerprint is not the job's, or an old answer is left"
    if not after.last_error == result.last_error == (before.last_error if before else None):
        return "the last error was not kept"
    if before is None or before.first_seen is not None:  # another tool may not have noted it
        known = (before.first_seen, before.epoch) if before else (now, 1)
        if (after.first_seen, after.epoch) != known or after.last_seen != now or result.claim.epoch != after.epoch:
            return f"first or last time seen, or the epoch: {after} after {before}"
    life = before.life if before else Life()
    if before is not None and is_forgotten(before, now):
        life = Life(life.number + 1)
    life = replace(life, unended=life.unended + 1)
    if not life == after.life == result.claim.life or after.released_by is not None:
        return f"the count of runs: expected {life}, got {after} and {result}"
    if result.verified != (before is None or is_forgotten(before, now) or _is_comparable(before, job)):
        return f"the payloads were compared, or were not: {result}"
    return None


def _unchanged(seen: Transition) -> str | None:
    return None if seen.before == seen.after else f"the record changed: {seen.before} -> {seen.after}"


def _is_held(record: Record | None, claim: Claim) -> bool:
    return record is not None and (record.status, record.owner, record.attempts) == (
        Status.IN_PROGRESS,
        claim.owner,
        claim.attempt,
    )


def _lands(seen: Transition, expected: Record) -> str | None:
    if seen.result is not None:
        return f"the holder was refused: {seen.result}"
    return None if seen.after == expected else f"expected {expected}, got {seen.after} (was {seen.before})"


def _repeated(seen: Transition) -> str | None:
    return _unchanged(seen) or (None if seen.result is None else f"a repetition was refused: {seen.result}")


def _refused(seen: Transition) -> str | None:
    if not isinstance(seen.result, LeaseLostError):
        return f"somebody else's record {seen.before}: expected LeaseLostError, got {seen.result}"
    return _unchanged(seen)


def complete(seen: Transition, held: Claim, answer: Answer) -> str | None:
    before = seen.before
    if before is not None and _is_held(before, held):
        ends, life = seen.now + seen.retention, Life(before.life.number)
        expected = replace(
            before, status=Status.COMPLETED, answer=answer, expires_at=ends, last_seen=seen.now, life=life
        )
        return _lands(seen, expected)
    if before is not None and (before.status, before.owner, before.attempts) == (
        Status.COMPLETED,
        held.owner,
        held.attempt,
    ):
        return _repeated(seen)
    return _refused(seen)


def begin(seen: Transition, held: Claim, life: Life) -> str | None:
    before = seen.before
    if before is None or not _is_held(before, held):
        return _refused(seen)
    return _lands(seen, _counted(before, held, life))


def _counted(before: Record, held: Claim, life: Life) -> Record:
    """What an attempt counts is written to the life in which it was claimed, or not at all."""
    return replace(before, life=life) if before.life.number == held.life.number else before


def release(seen: Transition, held: Claim, told: Released) -> str | None:
    before = seen.before
    if before is not None and _is_held(before, held):
        unrun = replace(held.life, unended=max(0, held.life.unended - 1))
        expected = replace(
            _counted(before, held, told.life or unrun),
            owner=None,
            released_by=held.owner,
            lease_until=RELEASED,
            last_error=told.error or before.last_error,
            fingerprint=None if told.forget_payload else before.fingerprint,
            last_seen=seen.now,
        )
        return _lands(seen, expected)
    if before is not None and (before.released_by, before.lease_until, before.attempts) == (
        held.owner,
        RELEASED,
        held.attempt,
    ):
        return _repeated(seen)
    return _refused(seen)


def renew(seen: Transition, held: Claim, lease: timedelta) -> str | None:
    before, now = seen.before, seen.now
    if before is not None and _is_held(before, held):
        expected = before
        if before.lease_until is None or before.lease_until < now + lease:
            expected = replace(before, lease_until=now + lease, expires_at=now + max(seen.retention, lease))
        return _lands(seen, expected)
    return _refused(seen)


def find(seen: Transition) -> str | None:
    if seen.result != seen.before:
        return f"found {seen.result} where {seen.before} stands"
    return _unchanged(seen)
