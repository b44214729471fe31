"""The `IdempotencyStore` over the fenced layer: it builds the records, keeps the time, and translates the errors."""

from datetime import datetime, timedelta
from typing import Final

from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyItemAlreadyExistsError
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.dynamodb.mapping import to_record, translate_errors
from adapters.stores.dynamodb.record import FencedRecord, to_ms, to_seconds
from domain.answer import Answer
from domain.errors import ForeignRecordError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.ports.clock import Clock
from domain.record import Acquired, Claim, Claimable, ClaimAnswer, Record, Status, judge, kept_until

MAX_ANSWER_BYTES: Final = 400_000
"""DynamoDB takes 409,600 bytes an item; the rest of it stays under 1,024."""

MAX_ERROR_BYTES: Final = 100


class DynamoDBIdempotencyStore:
    """An `IdempotencyStore` in one DynamoDB table. Thread-safe. Retention is written as the table's TTL attribute."""

    max_answer_bytes: int | None = MAX_ANSWER_BYTES

    def __init__(self, layer: FencedDynamoDBPersistenceLayer, clock: Clock, retention: timedelta) -> None:
        self._layer = layer
        self._clock = clock
        self._retention = retention

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        now = self._now()
        wanted = FencedRecord(
            idempotency_key=str(job.key),
            in_progress_expiry_timestamp=to_ms(now + lease),
            expiry_timestamp=to_seconds(kept_until(now, lease, self._retention)),
            payload_hash=job.fingerprint,
            scheme=job.fingerprint.partition(":")[0],
            owner=owner,
            job_id=job.job_id,
            operation=job.operation,
        )
        with translate_errors(job.key):
            try:
                before = self._layer.claim_record(wanted, now)
            except IdempotencyItemAlreadyExistsError as refused:
                return self._stands_in_the_way(refused.old_data_record, job, owner, now)
            claim = Claim(job.key, owner, wanted.attempts, before.epoch if before else 1, wanted.life)
            if before is None:
                return Acquired(claim)
            return Acquired(claim, before.last_error, self._was_verified(before, job, owner, now))

    def _was_verified(self, before: FencedRecord, job: Job, owner: str, now: datetime) -> bool:
        try:
            with translate_errors(job.key):
                seen = judge(to_record(before, job.key), job, owner, now)
        except ForeignRecordError:  # nobody of ours wrote it, and its time was over
            return False
        return not isinstance(seen, Claimable) or seen.verified

    def begin(self, claim: Claim, life: Life) -> None:
        record = self._held(claim)
        record.life = life
        with translate_errors(claim.key):
            self._layer.begin_record(record)

    def complete(self, claim: Claim, answer: Answer) -> None:
        record, now = self._held(claim), self._now()
        record.response_data = answer.text
        record.omitted = answer.omitted
        record.expiry_timestamp = to_seconds(now + self._retention)
        record.last_seen = to_ms(now)
        with translate_errors(claim.key):
            self._layer.complete_record(record)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        record = self._held(claim)
        record.life = life or claim.life.ended()
        record.last_error = error.encode("ascii", "replace")[:MAX_ERROR_BYTES].decode()
        record.last_seen = to_ms(self._now())
        with translate_errors(claim.key):
            self._layer.release_record(record, forget_payload=forget_payload)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        record = self._held(claim)
        now = self._now()
        record.in_progress_expiry_timestamp = to_ms(now + lease)
        record.expiry_timestamp = to_seconds(kept_until(now, lease, self._retention))
        with translate_errors(claim.key):
            self._layer.renew_record(record)

    def find(self, key: JobKey) -> Record | None:
        """Eventually consistent; a completed record of a job that was forgotten once is read again, consistently.

        An old copy of it may be from before a later `forget`, and be answered although the job is to run. The copy
        from before the first one (epoch 1) looks like any other: for about a second it may be answered.
        """
        with translate_errors(key):
            found = self._layer.find_record(str(key), consistent=False)
            if found is not None and found.stored_status == Status.COMPLETED and found.epoch > 1:
                found = self._layer.find_record(str(key), consistent=True)
            return None if found is None else to_record(found, key)

    def close(self) -> None:
        """Nothing to give back: the layer and its client are its maker's."""

    def _stands_in_the_way(self, found: DataRecord | None, job: Job, owner: str, now: datetime) -> ClaimAnswer:
        if not isinstance(found, FencedRecord):
            raise StoreUnavailableError(f"{job.key}: a claim was refused, but there is no record")
        record = to_record(found, job.key)
        seen = judge(record, job, owner, now)
        if isinstance(seen, Claimable):  # it became free between the refusal and the reading of it
            raise StoreUnavailableError(f"{job.key}: a claim was refused, but the record is free")
        return seen

    def _held(self, claim: Claim) -> FencedRecord:
        return FencedRecord(idempotency_key=str(claim.key), owner=claim.owner, attempts=claim.attempt)

    def _now(self) -> datetime:
        """In whole milliseconds, as DynamoDB will compare it."""
        now = self._clock.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000)
