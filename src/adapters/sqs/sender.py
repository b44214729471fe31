"""Sending many messages: in full batches, none twice, and what is not known to have arrived is told apart.

A request whose answer is lost may have landed. It is made again only where SQS recognises the repeat (a FIFO queue, by
its deduplication ids), so the client that is given must not try again by itself (`total_max_attempts=1`).

A FIFO queue that drops a message as a repeat answers as if it took it, and nothing in its answer tells: `sent` says
that SQS has taken this message or, within the last five minutes, one with the same deduplication id.

SQS may refuse one entry of a batch and take those behind it. So a request holds one message of a FIFO queue's group,
and nothing of the group is sent before that one has landed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    ProxyConnectionError,
    SSLError,
)
from botocore.exceptions import ConnectionError as NoConnectionError

from adapters.aws import CallFailedError, NoEvidenceError, call, check_sent
from adapters.sqs.dead_letter import MAX_BYTES
from adapters.sqs.groups import is_fifo
from adapters.sqs.ports import QueueUnavailableError
from domain.backoff import backoff
from domain.ports.clock import Clock

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

BATCH: Final = 10
TRIES: Final = 8
FIRST_PAUSE: Final = timedelta(milliseconds=200)
LONGEST_PAUSE: Final = timedelta(seconds=10)
_NEVER_ARRIVED: Final = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, SSLError)
_THROTTLED: Final = (
    "Throttling",
    "ThrottlingException",
    "RequestThrottled",
    "TooManyRequestsException",
    "KmsThrottled",
)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send. `number` is whatever its sender knows it by."""

    number: int
    body: str
    group_id: str | None = None
    deduplication_id: str | None = None


@dataclass(slots=True)
class BatchSent:
    """What became of a batch. `uncertain` may have arrived; `unsent` did not, for `error`; `refused` never will; `held`
    was not sent, since something before it in its FIFO group did not land.
    """

    sent: list[Outgoing] = field(default_factory=list)
    refused: list[tuple[Outgoing, str]] = field(default_factory=list)
    uncertain: list[Outgoing] = field(default_factory=list)
    unsent: list[Outgoing] = field(default_factory=list)
    held: list[Outgoing] = field(default_factory=list)
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class SqsSender:
    """Sends to one queue, from one thread."""

    client: "SQSClient"
    url: str
    clock: Clock
    jitter: Callable[[], float]

    def send(self, messages: Iterable[Outgoing]) -> Iterator[BatchSent]:
        """Each batch as soon as it is done with. Raises `QueueUnavailableError` where no batch could be sent."""
        blocked: set[str | None] = set()
        for batch in batches(messages, in_order=self._is_fifo):
            free = [message for message in batch if message.group_id not in blocked]
            done = self._send(free) if free else BatchSent()
            done.held = [message for message in batch if message.group_id in blocked]
            if self._is_fifo:
                blocked |= {message.group_id for message in done.unsent}
                blocked |= {message.group_id for message, _ in done.refused}
            yield done

    @property
    def _is_fifo(self) -> bool:
        return is_fifo(self.url)

    def _send(self, batch: Sequence[Outgoing]) -> BatchSent:
        done = BatchSent()
        waiting = list(batch)
        for number in range(TRIES):
            if number:
                self.clock.sleep(backoff(number, FIRST_PAUSE, LONGEST_PAUSE, self.jitter))
            try:
                waiting = self._try(waiting, done)
            except (ClientError, HTTPClientError, NoConnectionError, CallFailedError) as error:
                done.error = error
                if may_have_landed(error) and not self._is_fifo:
                    done.uncertain += waiting
                    return done
                if not (may_have_landed(error) or is_passing(error)):
                    raise QueueUnavailableError(f"SQS SendMessageBatch: {type(error).__name__}") from error
            except BotoCoreError as error:
                raise QueueUnavailableError(f"SQS SendMessageBatch: {type(error).__name__}") from error
            if not waiting:
                done.error = None
                return done
        done.unsent = waiting
        return done

    def _try(self, waiting: Sequence[Outgoing], done: BatchSent) -> list[Outgoing]:
        """One request; those that are to be tried again."""
        answer = call(
            self.client.send_message_batch,
            QueueUrl=self.url,
            Entries=[_entry(str(number), message) for number, message in enumerate(waiting)],
        )
        failed = {entry.get("Id"): entry for entry in answer.get("Failed", ())}
        landed = {entry.get("Id") for entry in answer.get("Successful", ()) if _is_sent(entry, waiting)}
        if not (failed or landed):
            raise NoEvidenceError(operation="SendMessageBatch", lacks="its entries")
        again = []
        for number, message in enumerate(waiting):
            if str(number) in landed:
                done.sent.append(message)
            elif (why := failed.get(str(number))) is None and not self._is_fifo:
                done.uncertain.append(message)
            elif why is None:
                done.error = QueueUnavailableError("SQS: an answer that says nothing of a message")
                again.append(message)
            elif why.get("SenderFault") and not why.get("Code", "").endswith(_THROTTLED):
                done.refused.append((message, why.get("Code", "unknown")))
            else:
                done.error = QueueUnavailableError(f"SQS: {why.get('Code', 'unknown')}")
                again.append(message)
        return again


def may_have_landed(error: Exception) -> bool:
    """Whether a request that ended so may have been carried out all the same."""
    if isinstance(error, ClientError):
        return _status(error) >= 500
    if isinstance(error, CallFailedError):
        return not error.is_no_url
    return isinstance(error, HTTPClientError | NoConnectionError) and not isinstance(error, _NEVER_ARRIVED)


def is_passing(error: Exception) -> bool:
    """Whether a request that was not carried out may be, a little later."""
    if isinstance(error, ClientError):
        return str(error.response["Error"].get("Code", "")).endswith(_THROTTLED)
    return isinstance(error, _NEVER_ARRIVED)


def batches(messages: Iterable[Outgoing], *, in_order: bool = False) -> Iterator[list[Outgoing]]:
    """As many as one request takes: ten, and 1 MiB in all; `in_order`, one of each group."""
    batch: list[Outgoing] = []
    room = MAX_BYTES
    for message in messages:
        size = len(message.body.encode())
        is_behind = in_order and any(other.group_id == message.group_id for other in batch)
        if batch and (len(batch) == BATCH or size > room or is_behind):
            yield batch
            batch, room = [], MAX_BYTES
        batch.append(message)
        room -= size
    if batch:
        yield batch


def _is_sent(entry: Mapping[str, Any], waiting: Sequence[Outgoing]) -> bool:
    """Whether SQS shows that it took the message of that entry."""
    number = str(entry.get("Id", ""))
    if not (number.isdecimal() and int(number) < len(waiting)):
        return False
    try:
        check_sent("SendMessageBatch", waiting[int(number)].body, entry)
    except NoEvidenceError:
        return False
    return True


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _entry(name: str, message: Outgoing) -> dict[str, Any]:
    entry = {"Id": name, "MessageBody": message.body}
    if message.group_id is not None:
        entry["MessageGroupId"] = message.group_id
    if message.deduplication_id is not None:
        entry["MessageDeduplicationId"] = message.deduplication_id
    return entry
