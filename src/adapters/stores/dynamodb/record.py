"""The record that Powertools and onejob share, and the units of its times."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import ceil
from typing import Any, Final, Self

from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from domain.life import NEW, Life

EPOCH = datetime.fromtimestamp(0, UTC)
LARGEST: Final = 10**16 - 1
"""Of a count; the stores agree on it."""

_MS = timedelta(milliseconds=1)


class FencedRecord(DataRecord):
    """A `DataRecord` with its fence (`owner`, `attempts`) and what an operator asks about.

    `scheme` takes part in a claim only: the fingerprint's scheme, or None where payloads are not compared.
    `first_seen` and `last_seen` are in milliseconds, `last_error` and `omitted` are short texts.
    """

    def __init__(
        self,
        *,
        owner: str | None = None,
        attempts: int = 0,
        job_id: str | None = None,
        operation: str | None = None,
        first_seen: int | None = None,
        last_seen: int | None = None,
        epoch: int = 1,
        life: Life = NEW,
        released_by: str | None = None,
        last_error: str | None = None,
        omitted: str | None = None,
        scheme: str | None = None,
        **stock: Any,
    ) -> None:
        super().__init__(**stock)
        self.owner = owner
        self.attempts = attempts
        self.job_id = job_id
        self.operation = operation
        self.first_seen = first_seen
        self.last_seen = last_seen
        self.epoch = epoch
        self.life = life
        self.released_by = released_by
        self.last_error = last_error
        self.omitted = omitted
        self.scheme = scheme

    @classmethod
    def of(cls, record: DataRecord, **added: Any) -> Self:
        """A stock record with what onejob adds to it."""
        return cls(
            idempotency_key=record.idempotency_key,
            status=record._status,  # `status` compares the expiry with a clock of its own
            expiry_timestamp=record.expiry_timestamp,
            in_progress_expiry_timestamp=record.in_progress_expiry_timestamp,
            response_data=record.response_data,
            payload_hash=record.payload_hash,
            sort_key=record.sort_key,
            **added,
        )

    @property
    def stored_status(self) -> str:
        """The status as written, whatever the time."""
        return self._status

    def is_released_by(self, other: "FencedRecord") -> bool:
        """Whether that attempt gave it back, and nothing has happened since."""
        return (self.owner, self.released_by, self.attempts, self.in_progress_expiry_timestamp) == (
            None,
            other.owner,
            other.attempts,
            0,
        )

    def has_fence_of(self, other: "FencedRecord") -> bool:
        """Whether both carry the same (owner, attempts)."""
        return (self.owner, self.attempts) == (other.owner, other.attempts)


def check(record: FencedRecord) -> None:
    """Raises `TypeError`, `ValueError` or `ArithmeticError` for what neither onejob nor Powertools writes."""
    texts = record.idempotency_key, record.response_data, record.payload_hash, record.owner, record.job_id
    for text in (*texts, record.operation, record.last_error, record.omitted):
        if not isinstance(text, str | None):
            raise TypeError("expected string")
    if record.stored_status not in ("INPROGRESS", "COMPLETED"):
        raise ValueError("unknown status")
    from_seconds(_count(record.expiry_timestamp))
    for milliseconds in (record.in_progress_expiry_timestamp, record.first_seen, record.last_seen):
        if milliseconds is not None:
            from_ms(_count(milliseconds))
    if record.epoch < 1:
        raise ValueError("epochs are counted from 1")


def whole(value: object) -> int:
    """A stored number as a count. Raises `TypeError`, `ValueError`."""
    number = _count(value)
    if number != int(number) or number > LARGEST:
        raise ValueError("expected whole number")
    return int(number)


def life_of(item: Mapping[str, Any]) -> Life:
    """The count of runs; as of a new record where somebody else wrote into it."""
    try:
        rejected_at = item.get("rejected_at")
        return Life(
            max(1, whole(item.get("life", 1))),
            whole(item.get("runs", 0)),
            whole(item.get("unended", 0)),
            None if rejected_at is None else from_ms(whole(rejected_at)),
        )
    except (TypeError, ValueError, ArithmeticError):
        return NEW


def _count(value: object) -> int | Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError("expected number")
    if value < 0:
        raise ValueError("expected number from 0")
    return value


def to_ms(moment: datetime) -> int:
    """Milliseconds since 1970, rounded up: an end is never stored too early."""
    return -((EPOCH - moment) // _MS)


def from_ms(milliseconds: int | Decimal) -> datetime:
    """The moment of a time in milliseconds."""
    return EPOCH + int(milliseconds) * _MS


def to_seconds(moment: datetime) -> int:
    """Seconds since 1970, rounded up: a record is never forgotten too early."""
    return ceil(moment.timestamp())


def from_seconds(seconds: int | Decimal) -> datetime:
    """The moment of a time in seconds."""
    return EPOCH + timedelta(seconds=int(seconds))
