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
from domain.life import Life
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged
from domain.record import (
    Claim,
    Claimable,
    ClaimAnswer,
    Record,
    acquired,
    begun,
    claimed,
    completed,
    forgotten,
    is_held_by,
    judge,
    record_changed,
    refusal_to_forget,
    released,
    renewed,
    was_completed_by,
    was_released_by,
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
            if not isinstance(seen, Claimable):
                return seen
            self._records[job.key] = new = claimed(
                old, job, owner=owner, now=now, lease=lease, retention=self._retention
            )
            return acquired(new, verified=seen.verified)

    def begin(self, claim: Claim, life: Life) -> None:
        with self._lock:
            self._records[claim.key] = begun(self._held(claim), claim, life)

    def complete(self, claim: Claim, answer: Answer) -> None:
        with self._lock:
            if not was_completed_by(self._records.get(claim.key), claim):
                held, now = self._held(claim), self._clock.now()
                self._records[claim.key] = completed(held, answer, now, self._retention)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        with self._lock:
            if not was_released_by(self._records.get(claim.key), claim):
                held, now = self._held(claim), self._clock.now()
                self._records[claim.key] = released(held, claim, now, error, forget_payload=forget_payload, life=life)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        with self._lock:
            held, now = self._held(claim), self._clock.now()
            self._records[claim.key] = renewed(held, now, lease, self._retention)

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
            self._records[seen.key] = changed = forgotten(record, now, self._retention)
            return changed

    def restart(self, seen: Record) -> None:
        with self._lock:
            record = self._records.get(seen.key)
            if record is None or not record.is_same_as(seen):
                raise record_changed(seen)
            self._records[seen.key] = replace(record, life=record.life.following())

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        with self._lock:
            now = self._clock.now()
            keys = sorted((key for key in self._records if after is None or str(key) > after), key=str)
            page = keys[:limit]
            over = [key for key in page if self._records[key].retention_is_over(now)]
            for key in over:
                del self._records[key]
            return Purged(len(page), len(over), str(page[-1]) if len(keys) > limit else None)

    def close(self) -> None:
        """Nothing is held but the records, which stay."""

    def _held(self, claim: Claim) -> Record:
        record = self._records.get(claim.key)
        if record is None or not is_held_by(record, claim):
            raise LeaseLostError(f"{claim.key}: attempt {claim.attempt} holds no claim")
        return record
