"""The store for tests and trials: a dictionary and a lock. Forgets everything when the process ends."""

from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from threading import Lock

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.clock import Clock
from domain.record import RELEASED, Acquired, Claim, ClaimAnswer, Free, Record, Status, judge


class MemoryIdempotencyStore:
    """An `IdempotencyStore` for one process. Thread-safe: each method is one step under `lock`."""

    max_answer_bytes: int | None = None

    def __init__(self, clock: Clock, retention: timedelta, lock: AbstractContextManager[object] | None = None) -> None:
        self._clock = clock
        self._retention = retention
        self._lock = lock or Lock()
        self._records: dict[JobKey, Record] = {}

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        with self._lock:
            old, now = self._records.get(job.key), self._clock.now()
            seen = judge(old, job, owner, now)
            if not isinstance(seen, Free):
                return seen
            self._records[job.key] = new = Record(
                key=job.key,
                job_id=job.job_id,
                status=Status.IN_PROGRESS,
                owner=owner,
                attempts=(old.attempts if old else 0) + 1,
                lease_until=now + lease,
                expires_at=now + max(self._retention, lease),
                fingerprint=job.fingerprint,
                last_error=old.last_error if old else None,
                first_seen=old.first_seen if old else now,
            )
            return Acquired(Claim(job.key, owner, new.attempts), new.last_error, seen.verified)

    def complete(self, claim: Claim, answer: Answer) -> None:
        with self._lock:
            record = self._records.get(claim.key)
            if _is_fenced(record, claim, Status.COMPLETED):
                return
            held, now = self._held(claim), self._clock.now()
            self._records[claim.key] = replace(
                held, status=Status.COMPLETED, answer=answer, expires_at=now + self._retention
            )

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False) -> None:
        with self._lock:
            if _was_released_by(self._records.get(claim.key), claim):
                return
            held = self._held(claim)
            self._records[claim.key] = replace(
                held,
                owner=None,
                lease_until=RELEASED,
                last_error=error or held.last_error,
                fingerprint=None if forget_payload else held.fingerprint,
            )

    def renew(self, claim: Claim, lease: timedelta) -> None:
        with self._lock:
            held, now = self._held(claim), self._clock.now()
            if held.lease_until is None or held.lease_until < now + lease:
                self._records[claim.key] = replace(
                    held, lease_until=now + lease, expires_at=now + max(self._retention, lease)
                )

    def find(self, key: JobKey) -> Record | None:
        return self._records.get(key)

    def _held(self, claim: Claim) -> Record:
        record = self._records.get(claim.key)
        if record is None or not _is_fenced(record, claim, Status.IN_PROGRESS):
            raise LeaseLostError(f"{claim.key}: attempt {claim.attempt} holds no claim")
        return record


def _was_released_by(record: Record | None, claim: Claim) -> bool:
    """Only the holder of an attempt can have ended it so."""
    return record is not None and (record.owner, record.attempts, record.lease_until) == (
        None,
        claim.attempt,
        RELEASED,
    )


def _is_fenced(record: Record | None, claim: Claim, status: Status) -> bool:
    return record is not None and (record.status, record.owner, record.attempts) == (
        status,
        claim.owner,
        claim.attempt,
    )
