"""Powertools' DynamoDB layer with a fence: no write lands unless its writer still holds the claim.

Each `*_record` method is one request (`claim_record` a second one where a retention is over) and keeps nothing between
calls: one instance serves all threads.
The item keeps Powertools' schema; what fencing needs is added to it.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, Literal
from uuid import uuid4

from aws_lambda_powertools.utilities.idempotency.config import IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyPersistenceConfigError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord
from aws_lambda_powertools.utilities.idempotency.persistence.dynamodb import DynamoDBPersistenceLayer
from botocore.exceptions import ClientError

from adapters.aws import NoEvidenceError, call, require_evidence
from adapters.stores.dynamodb import expressions
from adapters.stores.dynamodb.record import FencedRecord, life_of, to_ms, whole
from domain.life import NEW, Life

LONGEST_INVOCATION: Final = timedelta(minutes=15)
"""The lease where Powertools knows none: Lambda runs nothing for longer."""

_fences: ContextVar[Mapping[tuple[str, str], FencedRecord]] = ContextVar("fences", default=MappingProxyType({}))
"""By table and key: what this context has claimed under a bare decorator."""

_configuring: Final = Lock()


class FenceLostError(Exception):
    """The record is not in progress under this fence: nothing was written. `found` is what stands there."""

    def __init__(self, record: FencedRecord, found: FencedRecord | None) -> None:
        super().__init__(f"{record.idempotency_key}: held by another, finished or gone")
        self.found = found


class FencedDynamoDBPersistenceLayer(DynamoDBPersistenceLayer):
    """Takes what `DynamoDBPersistenceLayer` takes. Errors of the SDK pass through as they are; an answer without
    evidence is one of them (`NoEvidenceError`).

    Also fit for a bare `@idempotent_function`. There the fence travels in a context variable from the claim to
    its end, a claim without a registered Lambda context gets a lease of 15 minutes, and a failed function
    releases its record where the stock layer would delete it. All functions over one layer have one configuration.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        require_evidence(self.client)

    def claim_record(self, record: FencedRecord, now: datetime) -> FencedRecord | None:
        """Take the record if it is free at `now`, and count the attempt on `record`. Answers what stood there before.

        `record.life` is then what the record counts. Raises `IdempotencyItemAlreadyExistsError`, with
        the record that stands in the way.
        """
        before, same_life = self._take(record, now)
        record.attempts = (before.attempts if before else 0) + 1
        life = before.life if before else NEW
        record.life = (life if same_life else life.following()).claimed()
        return before

    def _take(self, record: FencedRecord, now: datetime) -> tuple[FencedRecord | None, bool]:
        """What stood there before, and whether its retention still ran."""
        try:
            return self._claimed(record, expressions.claim(record, now)), True
        except FenceLostError as refused:
            if refused.found is None or (refused.found.expiry_timestamp or 0) >= to_ms(now) / 1000:
                raise IdempotencyItemAlreadyExistsError(old_data_record=refused.found) from refused
        try:
            return self._claimed(record, expressions.claim_expired(record, now)), False
        except FenceLostError as refused:
            raise IdempotencyItemAlreadyExistsError(old_data_record=refused.found) from refused

    def _claimed(self, record: FencedRecord, write: expressions.Write) -> FencedRecord | None:
        """What stood there. That nothing did is believed only beside what the request cost: an answer without the old
        item would be taken for a new job's, and its attempt for the first one.
        """
        answer = self._asked(record, write, "ALL_OLD", ReturnConsumedCapacity="TOTAL")
        if "Attributes" not in answer and "ConsumedCapacity" in answer:
            return None
        return self._of_key(record.idempotency_key, "UpdateItem", answer.get("Attributes"))

    def begin_record(self, record: FencedRecord) -> None:
        """Count a run as `record.life`; nothing changes where another life has begun. Raises `FenceLostError`."""
        try:
            self._write(record, expressions.begin(record, record.life))
        except FenceLostError as lost:
            if not _is_of(record, lost.found, "INPROGRESS"):
                raise

    def complete_record(self, record: FencedRecord) -> None:
        """Store the answer; once more under the same fence is no error. Raises `FenceLostError`."""
        try:
            self._write(record, expressions.complete(record))
        except FenceLostError as lost:
            if not _is_of(record, lost.found, "COMPLETED"):
                raise

    def release_record(self, record: FencedRecord, *, forget_payload: bool = False) -> None:
        """Give the record back, and count `record.life` where no other life has begun; once more by the same attempt is
        no error. Raises `FenceLostError`.
        """
        try:
            self._release(record, forget_payload, record.life)
        except FenceLostError as lost:
            if lost.found is not None and lost.found.is_released_by(record):
                return
            if not _is_of(record, lost.found, "INPROGRESS"):
                raise
            self._release(record, forget_payload, None)  # another life has begun

    def _release(self, record: FencedRecord, forget_payload: bool, life: Life | None) -> None:
        self._write(record, expressions.release(record, forget_payload=forget_payload, life=life))

    def renew_record(self, record: FencedRecord) -> None:
        """Move the ends of lease and retention to those of `record`, never backwards. Raises `FenceLostError`."""
        try:
            self._write(record, expressions.renew(record))
        except FenceLostError as lost:
            if not _is_of(record, lost.found, "INPROGRESS"):
                raise

    def find_record(self, idempotency_key: str, *, consistent: bool) -> FencedRecord | None:
        """The record, or None."""
        answer = call(
            self.client.get_item,
            TableName=self.table_name,
            Key=self._get_key(idempotency_key),
            ConsistentRead=consistent,
            **({"ReturnConsumedCapacity": "TOTAL"} if consistent else {}),
        )
        if "Item" in answer:
            return self._of_key(idempotency_key, "GetItem", answer["Item"])
        if consistent and "ConsumedCapacity" not in answer:  # a copy of a moment ago decides nothing by its absence
            raise NoEvidenceError(operation="GetItem", lacks="ConsumedCapacity")
        return None

    def forget_record(self, seen: FencedRecord, expiry: int, *, force: bool) -> FencedRecord:
        """Release what is as it was seen, for another epoch; the record as it then is. Raises `FenceLostError`."""
        write = expressions.forget(seen, expiry, force=force)
        return self._write(seen, write, "ALL_NEW")

    def restart_record(self, seen: FencedRecord) -> None:
        """Begin another life of what is as it was seen. Raises `FenceLostError`."""
        self._write(seen, expressions.restart(seen))

    def purge_record(self, idempotency_key: str, now: datetime) -> bool:
        """Delete a record whose retention is over; whether it still was."""
        condition = expressions.purge(now)
        try:
            call(
                self.client.delete_item,
                TableName=self.table_name,
                Key=self._get_key(idempotency_key),
                ConditionExpression=condition.condition,
                ExpressionAttributeNames=condition.names(self._schema),
                ExpressionAttributeValues=condition.values,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def scan_items(self, after: str | None, limit: int) -> tuple[list[dict[str, Any]], str | None]:
        """A page of the table, read consistently, and the key to go on after; None at the end."""
        start: dict[str, Any] = {} if after is None else {"ExclusiveStartKey": self._get_key(after)}
        answer = call(self.client.scan, TableName=self.table_name, Limit=limit, ConsistentRead=True, **start)
        if "Items" not in answer:
            raise NoEvidenceError(operation="Scan", lacks="Items")
        last = answer.get("LastEvaluatedKey")
        return answer["Items"], None if last is None else last[self.key_attr]["S"]

    def to_record(self, item: dict[str, Any]) -> FencedRecord:
        """Parse an item. Raises `KeyError`, `TypeError` or `ValueError` for an item of another tool."""
        return self._item_to_data_record(item)

    def _write(
        self, record: FencedRecord, write: expressions.Write, returns: Literal["ALL_OLD", "ALL_NEW"] = "ALL_OLD"
    ) -> FencedRecord:
        """Write what is there already; the item before or after it, which shows that it landed."""
        answer = self._asked(record, write, returns)
        return self._of_key(record.idempotency_key, "UpdateItem", answer.get("Attributes"))

    def _asked(
        self, record: FencedRecord, write: expressions.Write, returns: Literal["ALL_OLD", "ALL_NEW"], **options: Any
    ) -> Mapping[str, Any]:
        try:
            return call(
                self.client.update_item,
                TableName=self.table_name,
                Key=self._get_key(record.idempotency_key),
                UpdateExpression=write.update,
                ConditionExpression=write.condition,
                ExpressionAttributeNames=write.names(self._schema),
                ExpressionAttributeValues=write.values,
                ReturnValues=returns,
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
                **options,
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item = error.response.get("Item")  # not every emulator returns it
            found = (
                self._of_key(record.idempotency_key, "UpdateItem", item)
                if item
                else self.find_record(record.idempotency_key, consistent=True)
            )
            raise FenceLostError(record, found) from error

    def _of_key(self, idempotency_key: str, operation: str, item: object) -> FencedRecord:
        """The record in an answer. Raises `NoEvidenceError` where it is not the one that was asked for."""
        key = self._get_key(idempotency_key)
        if not isinstance(item, dict) or any(item.get(name) != part for name, part in key.items()):
            raise NoEvidenceError(operation=operation, lacks="the item")
        return self._item_to_data_record(item)

    @property
    def _schema(self) -> dict[str, str]:
        return {
            "id": self.key_attr,
            "expiration": self.expiry_attr,
            "lease": self.in_progress_expiry_attr,
            "status": self.status_attr,
            "data": self.data_attr,
            "fingerprint": self.validation_key_attr,
        }

    def _item_to_data_record(self, item: dict[str, Any]) -> FencedRecord:
        read = self._deserializer.deserialize({"M": item})
        return FencedRecord(
            idempotency_key=read[self.key_attr],
            status=read[self.status_attr],
            expiry_timestamp=read[self.expiry_attr],
            in_progress_expiry_timestamp=read.get(self.in_progress_expiry_attr),
            response_data=read.get(self.data_attr),
            payload_hash=read.get(self.validation_key_attr),
            sort_key=read[self.sort_key_attr] if self.sort_key_attr is not None else None,
            owner=read.get("owner"),
            attempts=whole(read.get("attempts", 0)),
            job_id=read.get("job_id"),
            operation=read.get("operation"),
            first_seen=read.get("first_seen"),
            last_seen=read.get("last_seen"),
            epoch=whole(read.get("epoch", 1)),
            life=life_of(read),
            released_by=read.get("released_by"),
            last_error=read.get("last_error"),
            omitted=read.get("omitted"),
        )

    # What a bare decorator calls.

    @property
    def function_name(self) -> str:
        """The prefix of the keys: of the function that this context called last, or else of the last one called."""
        return self._prefix.get(self._last_prefix)

    @function_name.setter
    def function_name(self, name: str) -> None:
        self._last_prefix = name
        self._prefix.set(name)

    @cached_property
    def _prefix(self) -> ContextVar[str]:
        return ContextVar("prefix")  # made with the layer, which begins with an empty one

    def configure(
        self, config: IdempotencyConfig, function_name: str | None = None, key_prefix: str | None = None
    ) -> None:
        """Take the first configuration. Raises `IdempotencyPersistenceConfigError` for a later one that differs:
        Powertools would go on with the first one's keys, validation, strictness and expiry.
        """
        told = _told(config)
        with _configuring:
            if not self.configured:
                try:
                    super().configure(config, function_name, key_prefix)
                except BaseException:
                    self.configured = False  # or the next call would go on with half of it
                    raise
                self._configured_with = told
                return
        if different := [name for name, value in told.items() if value != self._configured_with[name]]:
            raise IdempotencyPersistenceConfigError(
                f"this persistence layer already serves a function with another configuration ({', '.join(different)}"
                " differs); give each configuration a FencedDynamoDBPersistenceLayer of its own"
            )
        super().configure(config, function_name, key_prefix)

    def _put_record(self, data_record: DataRecord) -> None:
        now = datetime.now(UTC)
        record = FencedRecord.of(data_record, owner=uuid4().hex)
        if record.in_progress_expiry_timestamp is None:
            record.in_progress_expiry_timestamp = to_ms(now + LONGEST_INVOCATION)
        claimed = record
        try:
            self.claim_record(record, now)
        except IdempotencyItemAlreadyExistsError as refused:
            found = refused.old_data_record
            if not (isinstance(found, FencedRecord) and found.owner == record.owner):
                self._check_found(record, found)
                raise
            claimed = found  # our own claim had landed, and its answer was lost
        _fences.set({**_fences.get(), (self.table_name, record.idempotency_key): claimed})

    def _update_record(self, data_record: DataRecord) -> None:
        self.complete_record(self._under_fence(data_record))

    def _delete_record(self, data_record: DataRecord) -> None:
        self.release_record(self._under_fence(data_record))

    def _check_found(self, record: FencedRecord, found: DataRecord | None) -> None:
        if found is not None:
            self._validate_payload(data_payload=record, stored_data_record=found)
            self._save_to_cache(data_record=found)

    def _under_fence(self, data_record: DataRecord) -> FencedRecord:
        """The record under the fence that this context claimed, which it gives up with that."""
        fences = dict(_fences.get())
        claimed = fences.pop((self.table_name, data_record.idempotency_key), None)
        _fences.set(fences)
        record = FencedRecord.of(data_record)
        if claimed is None:
            raise FenceLostError(record, None)
        record.owner, record.attempts = claimed.owner, claimed.attempts
        return record


def _is_of(record: FencedRecord, found: FencedRecord | None, status: str) -> bool:
    """Whether what was found has that status, under the fence of `record`."""
    return found is not None and found.stored_status == status and found.has_fence_of(record)


def _told(config: IdempotencyConfig) -> dict[str, object]:
    """What a layer keeps of a configuration, as it is now."""
    return {
        "event_key_jmespath": config.event_key_jmespath,
        "payload_validation_jmespath": config.payload_validation_jmespath,
        "jmespath_options": dict(config.jmespath_options or {}),
        "raise_on_no_idempotency_key": config.raise_on_no_idempotency_key,
        "expires_after_seconds": config.expires_after_seconds,
        "use_local_cache": config.use_local_cache,
        "local_cache_max_items": config.local_cache_max_items if config.use_local_cache else None,
        "hash_function": config.hash_function,
    }
