"""An SQS message as Lambda hands it over, and the check that an event is a batch of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from domain.delivery import Delivery

ARN_COLONS: Final = 5
MAX_DIGITS: Final = 15
_REQUIRED: Final = ("messageId", "receiptHandle", "body", "eventSourceARN")


class NotAnSqsBatchError(Exception):
    """The event is not what an SQS event source mapping sends. An answer to it could delete messages unread."""


@dataclass(frozen=True, slots=True)
class Message:
    """One record. `attributes` are its message attributes in Lambda's shape, `sent_at` is when SQS took it."""

    message_id: str
    receipt_handle: str
    body: str
    queue_arn: str
    receives: int = 1
    sent_at: datetime | None = None
    group_id: str | None = None
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_fifo(self) -> bool:
        """By the queue: on a standard queue a group id orders nothing (it marks a tenant of a fair queue)."""
        return self.queue_arn.endswith(".fifo")

    @property
    def delivery(self) -> Delivery:
        return Delivery(self.receives, self.message_id, sent_at=self.sent_at)


def read_event(event: object) -> list[Message]:
    """The messages of a Lambda event, in order. Raises `NotAnSqsBatchError`."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not isinstance(records, list) or not records:
        raise NotAnSqsBatchError('expected an SQS batch: {"Records": [...]} with at least one record')
    return [_message(record) for record in records]


def _message(record: object) -> Message:
    if not isinstance(record, Mapping) or record.get("eventSource") != "aws:sqs":
        raise NotAnSqsBatchError("expected records with eventSource aws:sqs")
    for name in _REQUIRED:
        if not isinstance(record.get(name), str):
            raise NotAnSqsBatchError(f"a record has no {name}")
    if record["eventSourceARN"].count(":") != ARN_COLONS:
        raise NotAnSqsBatchError("a record's eventSourceARN is not the ARN of a queue")
    system = _mapping(record.get("attributes"))
    group_id = system.get("MessageGroupId")
    return Message(
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"],
        queue_arn=record["eventSourceARN"],
        receives=max(1, _whole(system.get("ApproximateReceiveCount")) or 1),
        sent_at=from_timestamp(system.get("SentTimestamp")),
        group_id=group_id if isinstance(group_id, str) else None,
        attributes={
            name: attribute
            for name, attribute in _mapping(record.get("messageAttributes")).items()
            if isinstance(attribute, Mapping)
        },
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def from_timestamp(milliseconds: object) -> datetime | None:
    """The moment of a time in milliseconds since 1970; None for anything else."""
    whole = _whole(milliseconds)
    try:
        return datetime.fromtimestamp(whole / 1000, UTC) if whole else None
    except (ValueError, OverflowError, OSError):
        return None


def _whole(value: object) -> int | None:
    """A count or a time as SQS writes it; None for what it does not."""
    text = str(value) if isinstance(value, str | int) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else None
