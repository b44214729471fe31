"""The conditions of the `IdempotencyStore` port, written again from its docstrings: an oracle for each transition.

Nothing here calls `domain.record.judge`. Each function tells what is wrong with a transition, if something is.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.job import Job
from domain.record import RELEASED, Acquired, Busy, Claim, ClaimAnswer, Completed, Mismatch, Record, RunCount, Status

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
    """What a release was told. `runs` is how the number of runs changes, `rejected` the message rejected with it."""

    error: str
    forget_payload: bool
    runs: RunCount
    rejected: str | None


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
    if _lease_is_over(before, now):
        return _taken(seen, job, owner, lease)
    if before.owner == owner and before.fingerprint == job.fingerprint:
        if not isinstance(result, Acquired) or result.claim.attempt != before.attempts:
            return f"a claim did not recognise itself: {result}"
        if (result.claim.runs, result.rejected) != (before.runs, before.rejected):
            return f"a claim that recognised itself has another number of runs: {result}"
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
    is_new_life = before is None or is_forgotten(before, now)
    life = (0, None) if before is None or is_new_life else (before.runs, before.rejected)
    if not life == (after.runs, after.rejected) == (result.claim.runs, result.rejected):
        return f"runs and rejected message: expected {life}, got {after} and {result}"
    was_left = before is not None and not is_new_life and before.lease_until != RELEASED
    if result.after_lapse != was_left:
        return f"the attempt before was ended, or was not: {result} after {before}"
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
        ends = seen.now + seen.retention
        return _lands(
            seen, replace(before, status=Status.COMPLETED, answer=answer, expires_at=ends, last_seen=seen.now)
        )
    if before is not None and (before.status, before.owner, before.attempts) == (
        Status.COMPLETED,
        held.owner,
        held.attempt,
    ):
        return _repeated(seen)
    return _refused(seen)


def begin(seen: Transition, held: Claim, anew: bool) -> str | None:
    before = seen.before
    if before is None or not _is_held(before, held):
        return _refused(seen)
    if before.runs != held.runs:  # it landed before, or an operator set the count back
        return _repeated(seen)
    expected = replace(before, runs=1, rejected=None) if anew else replace(before, runs=before.runs + 1)
    return _lands(seen, expected)


def release(seen: Transition, held: Claim, told: Released) -> str | None:
    before = seen.before
    if before is not None and _is_held(before, held):
        is_first = told.runs is RunCount.FIRST
        changes = {RunCount.SAME: 0, RunCount.ONE_MORE: 1, RunCount.UNDONE: -1}
        expected = replace(
            before,
            owner=None,
            lease_until=RELEASED,
            last_error=told.error or before.last_error,
            fingerprint=None if told.forget_payload else before.fingerprint,
            last_seen=seen.now,
            runs=1 if is_first else before.runs + changes[told.runs],
            rejected=told.rejected or (None if is_first else before.rejected),
        )
        return _lands(seen, expected)
    if (
        before is not None
        and before.status is Status.IN_PROGRESS
        and (before.owner, before.lease_until, before.attempts) == (None, RELEASED, held.attempt)
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
