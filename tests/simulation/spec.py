"""The conditions of the `IdempotencyStore` port, written again from its docstrings: an oracle for each transition.

Nothing here calls `domain.record.judge`. `now` is the time on the clock of whoever asks.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.job import Job
from domain.record import RELEASED, Acquired, Busy, Claim, ClaimAnswer, Completed, Mismatch, Record, Status

type Result = ClaimAnswer | Exception | None


def _lease_is_over(record: Record, now: datetime) -> bool:
    assert record.lease_until is not None
    return record.lease_until < now


def _is_forgotten(record: Record, now: datetime) -> bool:
    """A live lease is judged before retention."""
    return record.expires_at < now and (record.status is not Status.IN_PROGRESS or _lease_is_over(record, now))


def _is_comparable(record: Record, job: Job) -> bool:
    return record.fingerprint is not None and record.fingerprint.split(":")[0] == job.fingerprint.split(":")[0]


def claim(
    before: Record | None,
    after: Record | None,
    job: Job,
    owner: str,
    lease: timedelta,
    retention: timedelta,
    now: datetime,
    result: Result,
) -> str | None:
    """What is wrong with it, if something is."""
    if before is None or _is_forgotten(before, now):
        return _taken(before, after, job, owner, lease, retention, now, result)
    if _is_comparable(before, job) and before.fingerprint != job.fingerprint:
        return _unchanged(before, after) or (
            None if isinstance(result, Mismatch) else f"expected Mismatch, got {result}"
        )
    if before.status is Status.COMPLETED:
        if not isinstance(result, Completed) or result.answer != before.answer:
            return f"expected the stored answer, got {result}"
        return _unchanged(before, after)
    if _lease_is_over(before, now):
        return _taken(before, after, job, owner, lease, retention, now, result)
    if before.owner == owner and before.fingerprint == job.fingerprint:
        if not isinstance(result, Acquired) or result.claim.attempt != before.attempts:
            return f"a claim did not recognise itself: {result}"
        return _unchanged(before, after)
    if not isinstance(result, Busy) or result.until != before.lease_until:
        return f"expected Busy until {before.lease_until}, got {result}"
    return _unchanged(before, after)


def _taken(
    before: Record | None,
    after: Record | None,
    job: Job,
    owner: str,
    lease: timedelta,
    retention: timedelta,
    now: datetime,
    result: Result,
) -> str | None:
    attempts = (before.attempts if before else 0) + 1
    if not isinstance(result, Acquired):
        return f"expected Acquired, got {result}"
    if after is None or (after.owner, after.attempts, after.status) != (owner, attempts, Status.IN_PROGRESS):
        return f"the record was not taken: {after}"
    if (result.claim.owner, result.claim.attempt) != (owner, attempts):
        return f"a claim that is not the record's: {result.claim}"
    if after.lease_until != now + lease or after.expires_at != now + max(retention, lease):
        return f"wrong ends: lease {after.lease_until}, retention {after.expires_at}"
    if after.fingerprint != job.fingerprint or after.answer is not None:
        return "the fingerprint is not the job's, or an old answer is left"
    if after.last_error != (before.last_error if before else None):
        return "the last error was not kept"
    return None


def _unchanged(before: Record | None, after: Record | None) -> str | None:
    return None if before == after else f"the record changed: {before} -> {after}"


def _is_held(record: Record | None, claim: Claim) -> bool:
    return record is not None and (record.status, record.owner, record.attempts) == (
        Status.IN_PROGRESS,
        claim.owner,
        claim.attempt,
    )


def _lands(before: Record | None, after: Record | None, expected: Record, result: Result) -> str | None:
    if result is not None:
        return f"the holder was refused: {result}"
    return None if after == expected else f"expected {expected}, got {after} (was {before})"


def _refused(before: Record | None, after: Record | None, result: Result) -> str | None:
    if not isinstance(result, LeaseLostError):
        return f"somebody else's record {before}: expected LeaseLostError, got {result}"
    return _unchanged(before, after)


def complete(
    before: Record | None,
    after: Record | None,
    held: Claim,
    answer: Answer,
    retention: timedelta,
    now: datetime,
    result: Result,
) -> str | None:
    """What is wrong with it, if something is."""
    if before is not None and _is_held(before, held):
        expected = replace(before, status=Status.COMPLETED, answer=answer, expires_at=now + retention)
        return _lands(before, after, expected, result)
    if before is not None and (before.status, before.owner, before.attempts) == (
        Status.COMPLETED,
        held.owner,
        held.attempt,
    ):
        return _unchanged(before, after) or (None if result is None else f"a repetition was refused: {result}")
    return _refused(before, after, result)


def release(
    before: Record | None, after: Record | None, held: Claim, error: str, forget_payload: bool, result: Result
) -> str | None:
    """What is wrong with it, if something is."""
    if before is not None and _is_held(before, held):
        expected = replace(
            before,
            owner=None,
            lease_until=RELEASED,
            last_error=error or before.last_error,
            fingerprint=None if forget_payload else before.fingerprint,
        )
        return _lands(before, after, expected, result)
    if (
        before is not None
        and before.status is Status.IN_PROGRESS
        and (before.owner, before.lease_until, before.attempts) == (None, RELEASED, held.attempt)
    ):
        return _unchanged(before, after) or (None if result is None else f"a repetition was refused: {result}")
    return _refused(before, after, result)


def renew(
    before: Record | None,
    after: Record | None,
    held: Claim,
    lease: timedelta,
    retention: timedelta,
    now: datetime,
    result: Result,
) -> str | None:
    """What is wrong with it, if something is."""
    if before is not None and _is_held(before, held):
        expected = before
        if before.lease_until is None or before.lease_until < now + lease:
            expected = replace(before, lease_until=now + lease, expires_at=now + max(retention, lease))
        return _lands(before, after, expected, result)
    return _refused(before, after, result)
