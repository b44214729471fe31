"""The `Queue` port on boto3, one client made at first use: most batches never need it."""

from collections.abc import Callable, Sequence
from itertools import batched
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from adapters.aws import CallFailedError, NoEvidenceError, call, check_sent
from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.groups import is_fifo, kept_group
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from adapters.threads.seam import SYSTEM_THREADS, Threads

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

REFUSALS: Final = (ClientError, BotoCoreError)
"""All that `adapters.aws.call` raises."""

BATCH: Final = 10
"""Entries that SQS takes in one request."""


class SqsQueue:
    """Thread-safe. `make_client` is called once. Without a dead-letter URL nothing can be buried."""

    def __init__(
        self, make_client: "Callable[[], SQSClient]", dead_letter_url: str | None, threads: Threads = SYSTEM_THREADS
    ) -> None:
        self._make_client = make_client
        self._dead_letter_url = dead_letter_url
        self._made: SQSClient | None = None
        self._lock = threads.lock()

    def dead_letter(self, letter: DeadLetter) -> None:
        url = self._dead_letter_url
        if url is None:
            raise QueueUnavailableError("DEAD_LETTER_QUEUE_URL is not set")
        message = letter.message
        options: dict[str, Any] = {"MessageAttributes": letter.attributes} if letter.attributes else {}
        options |= kept_group(message, url)
        if is_fifo(url):
            # Dropped is only the same message rejected once more, as after a failed deletion. A redrive makes another
            # message, with an id of its own, so that what SQS drops here is in the dead-letter queue, or was sent back.
            options["MessageDeduplicationId"] = message.message_id
        try:
            answer = call(lambda: self._client.send_message(QueueUrl=url, MessageBody=message.body, **options))
            check_sent("SendMessage", message.body, answer)
        except REFUSALS as error:
            raise QueueUnavailableError(f"SQS SendMessage: {error_name(error)}") from error

    def delete(self, messages: Sequence[Message]) -> list[str]:
        return [error for _, error in self.try_to_delete(messages)]

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        return [error for _, error in self.try_to_hide(timeouts)]

    def try_to_delete(self, messages: Sequence[Message]) -> list[tuple[Message, str]]:
        """As `delete`, for who tries again: which were not deleted, and the error's name for each."""
        return self._in_batches("delete_message_batch", [(message, {}) for message in messages])

    def try_to_hide(self, timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        """As `set_visibility`, for who tries again: for which it was not set, and the error's name for each."""
        return self._in_batches(
            "change_message_visibility_batch",
            [(message, {"VisibilityTimeout": seconds}) for message, seconds in timeouts],
        )

    def _in_batches(self, request: str, entries: Sequence[tuple[Message, dict[str, Any]]]) -> list[tuple[Message, str]]:
        errors: list[tuple[Message, str]] = []
        for batch in batched(entries, BATCH, strict=False):
            try:
                answer = call(lambda: self._request(request, batch))  # noqa: B023 (called at once)
            except REFUSALS as error:
                errors += [(message, error_name(error)) for message, _ in batch]
            else:
                failed = failures(answer, len(batch))
                errors += [(batch[number][0], code) for number, code in failed.items()]
        return errors

    def _request(self, request: str, batch: Sequence[tuple[Message, dict[str, Any]]]) -> Any:
        return getattr(self._client, request)(
            QueueUrl=self._source_url(batch[0][0].queue_arn),
            Entries=[
                {"Id": str(number), "ReceiptHandle": message.receipt_handle, **options}
                for number, (message, options) in enumerate(batch)
            ],
        )

    def _source_url(self, arn: str) -> str:
        account, name = arn.split(":")[-2:]
        return f"{self._client.meta.endpoint_url.rstrip('/')}/{account}/{name}"

    @property
    def _client(self) -> "SQSClient":
        with self._lock:
            if self._made is None:
                self._made = self._make_client()
            return self._made


def failures(answer: Any, count: int) -> dict[int, str]:
    """By its place in a batch request of so many: why an entry failed. Only what SQS names as successful is."""
    told = answer if isinstance(answer, dict) else {}
    landed = {entry.get("Id") for entry in told.get("Successful") or ()}
    codes = {entry.get("Id"): str(entry.get("Code") or "unknown") for entry in told.get("Failed") or ()}
    return {
        number: codes.get(str(number), NoEvidenceError.__name__)
        for number in range(count)
        if str(number) in codes or str(number) not in landed
    }


def error_name(error: Exception) -> str:
    """AWS's code, or the type of what kept the request from AWS."""
    match error:
        case ClientError():
            return str(error.response["Error"]["Code"])
        case CallFailedError():
            return str(error)
        case _:
            return type(error).__name__
