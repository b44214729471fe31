"""The `StoreAdmin` of a DynamoDB table."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer, FenceLostError
from adapters.stores.dynamodb.mapping import to_record, translate_errors
from adapters.stores.dynamodb.record import FencedRecord, check, to_ms, to_seconds
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged
from domain.record import Record, record_changed, refusal_to_forget

PAGE: Final = 1000
"""Records a request, or a megabyte: what comes first."""


class DynamoDBStoreAdmin:
    """Looks and pages with consistent reads: a scan of a table costs half a read unit for each 4 KB, twice."""

    def __init__(self, layer: FencedDynamoDBPersistenceLayer, clock: Clock, retention: timedelta) -> None:
        self._layer = layer
        self._clock = clock
        self._retention = retention

    def look(self, key: JobKey) -> Record | None:
        with translate_errors(key):
            found = self._layer.find_record(str(key), consistent=True)
            return None if found is None else to_record(found, key)

    def records(self) -> Iterator[Record]:
        after: str | None = None
        while True:
            page, after = self._page(after, PAGE)
            for found in page:
                record = _of_ours(found)
                if record is not None:
                    yield record
            if after is None:
                return

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        expiry = to_seconds(self._clock.now() + self._retention)
        self.look(seen.key)  # the condition compares a fence: what else is foreign, it would overwrite
        with translate_errors(seen.key):
            try:
                forgotten = self._layer.forget_record(_as_seen(seen), expiry, force=force)
            except FenceLostError as lost:
                found = None if lost.found is None else to_record(lost.found, seen.key)
                raise refusal_to_forget(found, seen) from lost
            return to_record(forgotten, seen.key)

    def restart(self, seen: Record) -> None:
        with translate_errors(seen.key):
            try:
                self._layer.restart_record(_as_seen(seen))
            except FenceLostError as lost:
                raise record_changed(seen) from lost

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        now = self._clock.now()
        page, after = self._page(after, limit)
        over = [record.idempotency_key for record in page if _may_be_over(record, now)]
        with translate_errors("the table"):
            deleted = sum(self._layer.purge_record(key, now) for key in over)
        return Purged(len(page), deleted, after)

    def close(self) -> None:
        """Nothing to give back: the layer and its client are its maker's."""

    def _page(self, after: str | None, limit: int) -> tuple[list[FencedRecord], str | None]:
        """Records of onejob and Powertools; whatever else is there is passed over."""
        with translate_errors("the table"):
            items, after = self._layer.scan_items(after, limit)
        records = []
        for item in items:
            with suppress(ForeignRecordError), translate_errors("an item"):
                record = self._layer.to_record(item)
                check(record)
                records.append(record)
        return records, after


def _as_seen(seen: Record) -> FencedRecord:
    return FencedRecord(
        idempotency_key=str(seen.key),
        status=seen.status,
        owner=seen.owner,
        attempts=seen.attempts,
        epoch=seen.epoch,
    )


def _of_ours(found: FencedRecord) -> Record | None:
    key = JobKey.parse(found.idempotency_key)
    if key is None:
        return None
    with suppress(ForeignRecordError), translate_errors(key):
        return to_record(found, key)
    return None


def _may_be_over(record: FencedRecord, now: datetime) -> bool:
    """Spares a request for most that are not; the condition of the deletion decides."""
    return (record.expiry_timestamp or 0) < to_ms(now) / 1000
