"""The store for tests and trials: a dictionary and a lock. Forgets everything when the process ends."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from threading import Lock

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged
from domain.record import (
    RELEASED,
    Claim,
    ClaimAnswer,
    Free,
    Record,
    RunCount,
    Status,
    acquired,
    claimed,
    judge,
    record_changed,
    refusal_to_forget,
    released,
    restarted,
)


class MemoryIdempotencyStore:
    """An `IdempotencyStore` and its `StoreAdmin` for one process. Thread-safe: each method is one step under `lock`."""

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
            self._records[job.key] = new = claimed(
                old, job, owner=owner, now=now, lease=lease, retention=self._retention
            )
            return acquired(new, seen)

    def begin(self, claim: Claim, *, anew: bool) -> None:
        with self._lock:
            held = self._held(claim)
            if held.runs == claim.runs:
                rejected = None if anew else held.rejected
                self._records[claim.key] = replace(held, runs=1 if anew else claim.runs + 1, rejected=rejected)

    def complete(self, claim: Claim, answer: Answer) -> None:
        with self._lock:
            record = self._records.get(claim.key)
            if _is_fenced(record, claim, Status.COMPLETED):
                return
            held, now = self._held(claim), self._clock.now()
            self._records[claim.key] = replace(
                held, status=Status.COMPLETED, answer=answer, expires_at=now + self._retention, last_seen=now
            )

    def release(
        self,
        claim: Claim,
        error: str,
        *,
        forget_payload: bool = False,
        runs: RunCount = RunCount.SAME,
        rejected: str | None = None,
    ) -> None:
        with self._lock:
            if _was_released_by(self._records.get(claim.key), claim):
                return
            held, now = self._held(claim), self._clock.now()
            self._records[claim.key] = released(
                held, now, error, forget_payload=forget_payload, runs=runs, rejected=rejected
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

    def look(self, key: JobKey) -> Record | None:
        return self._records.get(key)

    def records(self) -> Iterator[Record]:
        with self._lock:
            records = list(self._records.values())
        yield from records

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        with self._lock:
            record, now = self._records.get(seen.key), self._clock.now()
            if record is None or not record.is_same_as(seen) or (record.is_held and not force):
                raise refusal_to_forget(record, seen)
            self._records[seen.key] = forgotten = replace(
                record,
                status=Status.IN_PROGRESS,
                owner=None,
                lease_until=RELEASED,
                expires_at=now + self._retention,
                fingerprint=None,
                answer=None,
                epoch=record.epoch + 1,
                runs=0,
                rejected=None,
            )
            return forgotten

    def restart(self, seen: Record) -> None:
        with self._lock:
            record = self._records.get(seen.key)
            if record is None or not record.is_same_as(seen):
                raise record_changed(seen)
            self._records[seen.key] = replace(record, runs=restarted(record), rejected=None)

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        with self._lock:
            now = self._clock.now()
            keys = sorted((key for key in self._records if after is None or str(key) > after), key=str)
            page = keys[:limit]
            over = [key for key in page if self._records[key].retention_is_over(now)]
            for key in over:
                del self._records[key]
            return Purged(len(page), len(over), str(page[-1]) if len(keys) > limit else None)

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
