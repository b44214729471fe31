"""Looking into a dead-letter queue: letters are received, held for a while, and put back or sent on.

SQS has no other way to look. On a FIFO queue it gives out nothing more of a message group while a letter of it is held.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import batched
from typing import TYPE_CHECKING, Any, Final

from adapters.aws import call
from adapters.sqs.envelope import NothingToDoError, unwrap
from adapters.sqs.message import Message, read_event
from adapters.sqs.notes import Notes, claimed, earliest
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import REFUSALS, error_name, failures
from adapters.sqs.received import lambda_event
from domain.errors import InvalidJobError
from domain.job import Job
from domain.job_factory import JobFactory

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

HOLD_SECONDS: Final = 60
"""For which others do not see a letter that was received, should nobody put it back."""

LOOK_SECONDS: Final = 1
"""A long poll asks every server of the queue: an empty answer means that nothing is visible."""

BATCH: Final = 10


@dataclass(frozen=True, slots=True)
class ReceivedDeadLetter:
    """A dead letter that is held. `attributes` are as SendMessage takes them.

    `note` has the facts that a worker or a redrive wrote; `claim` those of a note that neither is known to have
    written, which decide nothing. One of the two is empty.
    """

    message: Message
    attributes: dict[str, Any]
    note: dict[str, Any]
    claim: dict[str, Any] = field(default_factory=dict)

    @property
    def reason(self) -> str | None:
        """Why the worker gave it up; None where SQS itself moved it there, or nobody knows who wrote it."""
        return _text(self.note, "reason")

    @property
    def claimed_reason(self) -> str | None:
        """The reason in an unsigned note: a claim of its author."""
        return _text(self.claim, "reason")

    @property
    def detail(self) -> str | None:
        return _text(self.note, "detail")

    @property
    def error_type(self) -> str | None:
        return _text(self.note, "error_type")

    @property
    def attempts(self) -> int | None:
        return self._count("attempts")

    @property
    def receives(self) -> int | None:
        return self._count("receives")

    @property
    def source_message_id(self) -> str:
        """Of the message that was given up. What SQS moves keeps its id."""
        return _text(self.note, "message_id") or self.message.message_id

    @property
    def first_sent(self) -> datetime | None:
        return earliest(self.note, self.message)

    def job(self, factory: JobFactory) -> Job | None:
        """The job inside, as the worker that gave it up made it; None where there is none."""
        default = _text(self.note, "operation") or factory.default_operation
        try:
            return replace(factory, default_operation=default).job(unwrap(self.message.body))
        except (InvalidJobError, NothingToDoError):
            return None

    def _count(self, name: str) -> int | None:
        value = self.note.get(name)
        return value if type(value) is int else None


@dataclass(slots=True)
class DeadLetterQueue:
    """One dead-letter queue. Raises `QueueUnavailableError`, and `StoreUnavailableError` where the secret of `notes`
    cannot be had. `held` maps the ids of letters to receipt handles.
    """

    client: "SQSClient"
    url: str
    arn: str
    notes: Notes
    held: dict[str, str] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def letters(self) -> Iterator[ReceivedDeadLetter]:
        """Each letter once, held from then on, until none is visible any more."""
        without_news = 0
        while received := self._receive():
            new = [message for message in received if message["MessageId"] not in self._seen]
            self.held.update({message["MessageId"]: message["ReceiptHandle"] for message in received})
            self._seen.update(message["MessageId"] for message in new)
            without_news = 0 if new else without_news + 1
            if without_news > len(self._seen) // BATCH + 1:  # the first ones are visible again, and all were read twice
                return
            if not new:
                continue
            for message, raw in zip(read_event(lambda_event(new, self.arn)), new, strict=True):
                yield read_dead_letter(message, dict(raw.get("MessageAttributes", {})), self.notes)

    def _receive(self) -> list[Any]:
        with _translated("ReceiveMessage"):
            answer = call(
                self.client.receive_message,
                QueueUrl=self.url,
                MaxNumberOfMessages=BATCH,
                VisibilityTimeout=HOLD_SECONDS,
                WaitTimeSeconds=LOOK_SECONDS,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        return list(answer.get("Messages", ()))

    def delete(self, letter: ReceivedDeadLetter) -> None:
        """It was sent on."""
        handle = self.held[letter.message.message_id]
        with _translated("DeleteMessage"):
            call(self.client.delete_message, QueueUrl=self.url, ReceiptHandle=handle)
        del self.held[letter.message.message_id]

    def put_back(self) -> int:
        """Make every held letter visible at once; how many were not: they are within `HOLD_SECONDS`."""
        failed = 0
        handles, self.held = list(self.held.values()), {}
        for batch in batched(handles, BATCH, strict=False):
            try:
                answer = call(
                    self.client.change_message_visibility_batch,
                    QueueUrl=self.url,
                    Entries=[
                        {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 0}
                        for number, handle in enumerate(batch)
                    ],
                )
                failed += len(failures(answer, len(batch)))
            except REFUSALS:
                failed += len(batch)
        return failed


def read_dead_letter(message: Message, attributes: dict[str, Any], notes: Notes) -> ReceivedDeadLetter:
    """The letter, with its note told from a claim. Raises `StoreUnavailableError`."""
    note = notes.of(message)
    return ReceivedDeadLetter(message, attributes, note, {} if note else claimed(message))


def _text(facts: dict[str, Any], name: str) -> str | None:
    value = facts.get(name)
    return value if isinstance(value, str) and value else None


@contextmanager
def _translated(request: str) -> Iterator[None]:
    try:
        yield
    except REFUSALS as error:
        raise QueueUnavailableError(f"SQS {request}: {error_name(error)}") from error
