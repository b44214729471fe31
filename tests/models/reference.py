"""What the port's docstrings say of a store, as a model in plain Python. It has no code of the product judge."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseHeldError, LeaseLostError, RecordChangedError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.record import RELEASED, Acquired, Busy, Claim, ClaimAnswer, Completed, Mismatch, Record, Status


@dataclass
class ReferenceStore:
    """An `IdempotencyStore`, and `StoreAdmin.forget`, for one thread. Counts the situations that it was asked about.

    `kept_until` says how a store writes down the end of a retention: DynamoDB rounds up to a second.
    """

    now: Callable[[], datetime]
    retention: timedelta
    kept_until: Callable[[datetime], datetime] = lambda end: end
    max_answer_bytes: int | None = None
    records: dict[JobKey, Record] = field(default_factory=dict)
    situations: Counter[str] = field(default_factory=Counter)

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        old, now = self.records.get(job.key), self.now()
        if old is None:
            return self._acquire(job, owner, lease, "no record")
        if old.job_id != job.job_id:
            self.situations["claim: foreign record"] += 1
            raise ForeignRecordError
        in_progress = old.status is Status.IN_PROGRESS
        assert old.lease_until is not None
        lease_over, expired = now > old.lease_until, now > old.expires_at
        if now == old.expires_at and not in_progress:
            self.situations["claim: at the very end of a retention"] += 1
        if expired and (not in_progress or lease_over):
            return self._acquire(job, owner, lease, "completed and expired" if old.answer else "lapsed and expired")
        same_scheme = old.fingerprint is not None and _scheme(old.fingerprint) == _scheme(job.fingerprint)
        if same_scheme and old.fingerprint != job.fingerprint:
            state = "lapsed" if in_progress and lease_over else old.status
            self.situations[f"claim: mismatch, {state}"] += 1
            return Mismatch()
        if not in_progress:
            self.situations[f"claim: completed, verified {same_scheme}"] += 1
            assert old.answer is not None
            return Completed(old.answer, verified=same_scheme)
        if now == old.lease_until:
            self.situations["claim: at the very end of a lease"] += 1
        if old.released_by == owner:
            self.situations["claim: by who has released it"] += 1
            return Busy(now, verified=same_scheme)
        if lease_over:
            state = "released" if old.owner is None else "lapsed"
            return self._acquire(job, owner, lease, f"{state}, verified {same_scheme}", verified=same_scheme)
        if (old.owner, old.fingerprint) == (owner, job.fingerprint):
            self.situations["claim: found itself"] += 1
            return Acquired(Claim(job.key, owner, old.attempts, old.epoch, old.life), old.last_error)
        self.situations[f"claim: busy, verified {same_scheme}"] += 1
        return Busy(old.lease_until, verified=same_scheme)

    def complete(self, claim: Claim, answer: Answer) -> None:
        old = self.records.get(claim.key)
        if old and (old.status, old.owner, old.attempts) == (Status.COMPLETED, claim.owner, claim.attempt):
            self.situations["complete: repeated"] += 1
            return
        held = self._held(claim, "complete")
        end = self.kept_until(self.now() + self.retention)
        self.records[claim.key] = replace(
            held,
            status=Status.COMPLETED,
            answer=answer,
            expires_at=end,
            last_seen=self.now(),
            life=Life(held.life.number),
        )

    def begin(self, claim: Claim, life: Life) -> None:
        held = self._held(claim, "begin")
        self.records[claim.key] = self._counted(held, claim, life)

    def _counted(self, held: Record, claim: Claim, life: Life) -> Record:
        if held.life.number != claim.life.number:
            self.situations["another life has begun"] += 1
            return held
        return replace(held, life=life)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        old = self.records.get(claim.key)
        if old and (old.released_by, old.attempts) == (claim.owner, claim.attempt):
            self.situations["release: repeated"] += 1
            return
        held = self._held(claim, "release")
        before = claim.life
        unrun = replace(before, unended=max(0, before.unended - 1))
        self.records[claim.key] = replace(
            self._counted(held, claim, life or unrun),
            owner=None,
            released_by=claim.owner,
            lease_until=RELEASED,
            last_error=error or held.last_error,
            fingerprint=None if forget_payload else held.fingerprint,
            last_seen=self.now(),
        )

    def renew(self, claim: Claim, lease: timedelta) -> None:
        held = self._held(claim, "renew")
        assert held.lease_until is not None
        if held.lease_until < self.now() + lease:
            self.records[claim.key] = replace(held, lease_until=self.now() + lease, expires_at=self._end(lease))

    def find(self, key: JobKey) -> Record | None:
        return self.records.get(key)

    def close(self) -> None:
        """Nothing is held but the records."""

    def forget(self, seen: Record, *, force: bool) -> Record:
        old = self.records[seen.key]
        if (old.status, old.owner, old.attempts, old.epoch) != (seen.status, seen.owner, seen.attempts, seen.epoch):
            self.situations["forget: changed"] += 1
            raise RecordChangedError
        running = old.status is Status.IN_PROGRESS and old.lease_until != RELEASED
        if running and not force:
            self.situations["forget: held"] += 1
            raise LeaseHeldError
        self.situations[f"forget: {'running' if running else old.status}"] += 1
        self.records[seen.key] = replace(
            old,
            status=Status.IN_PROGRESS,
            owner=None,
            lease_until=RELEASED,
            expires_at=self.kept_until(self.now() + self.retention),
            fingerprint=None,
            answer=None,
            epoch=old.epoch + 1,
            released_by=None,
            life=Life(old.life.number + 1),
        )
        return self.records[seen.key]

    def restart(self, seen: Record) -> None:
        old = self.records[seen.key]
        if (old.status, old.owner, old.attempts, old.epoch) != (seen.status, seen.owner, seen.attempts, seen.epoch):
            self.situations["restart: changed"] += 1
            raise RecordChangedError
        self.situations[f"restart: {old.status}"] += 1
        self.records[seen.key] = replace(old, life=Life(old.life.number + 1))

    def _acquire(self, job: Job, owner: str, lease: timedelta, why: str, *, verified: bool = True) -> ClaimAnswer:
        self.situations[f"claim: acquired, {why}"] += 1
        old, now = self.records.get(job.key), self.now()
        life = old.life if old else Life()
        if "expired" in why:
            life = Life(life.number + 1)
        self.records[job.key] = Record(
            key=job.key,
            job_id=job.job_id,
            status=Status.IN_PROGRESS,
            owner=owner,
            attempts=old.attempts + 1 if old else 1,
            lease_until=now + lease,
            expires_at=self._end(lease),
            fingerprint=job.fingerprint,
            last_error=old.last_error if old else None,
            first_seen=old.first_seen if old else now,
            last_seen=now,
            epoch=old.epoch if old else 1,
            life=replace(life, unended=life.unended + 1),
        )
        new = self.records[job.key]
        return Acquired(Claim(job.key, owner, new.attempts, new.epoch, new.life), new.last_error, verified)

    def _held(self, claim: Claim, write: str) -> Record:
        old = self.records.get(claim.key)
        held = old and (old.status, old.owner, old.attempts) == (Status.IN_PROGRESS, claim.owner, claim.attempt)
        if old is None or not held:
            self.situations[f"{write}: refused"] += 1
            raise LeaseLostError
        assert old.lease_until is not None
        self.situations[f"{write}: landed{' late' if self.now() > old.lease_until else ''}"] += 1
        return old

    def _end(self, lease: timedelta) -> datetime:
        return self.kept_until(self.now() + max(self.retention, lease))


def _scheme(fingerprint: str) -> str:
    return fingerprint.split(":")[0]


SITUATIONS = {
    "claim: acquired, no record",
    "claim: acquired, completed and expired",
    "claim: acquired, lapsed and expired",
    "claim: acquired, lapsed, verified False",
    "claim: acquired, lapsed, verified True",
    "claim: acquired, released, verified False",
    "claim: acquired, released, verified True",
    "claim: at the very end of a lease",
    "claim: at the very end of a retention",
    "claim: busy, verified False",
    "claim: busy, verified True",
    "claim: completed, verified False",
    "claim: completed, verified True",
    "claim: foreign record",
    "claim: found itself",
    "claim: mismatch, COMPLETED",
    "claim: mismatch, INPROGRESS",
    "claim: mismatch, lapsed",
    *(
        f"{write}: {what}"
        for write in ("begin", "complete", "release", "renew")
        for what in ("landed", "landed late", "refused")
    ),
    "another life has begun",
    "claim: by who has released it",
    "restart: changed",
    "restart: COMPLETED",
    "restart: INPROGRESS",
    "complete: repeated",
    "release: repeated",
    "forget: changed",
    "forget: held",
    "forget: running",
    "forget: COMPLETED",
    "forget: INPROGRESS",
}
"""All that can happen. A run of the machine that has not met each of them has not shown much."""
