"""Long polling of the source queue on boto3."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError, HTTPClientError, MetadataRetrievalError
from botocore.exceptions import ConnectionError as BotoConnectionError

from adapters.aws import CallFailedError, NoEvidenceError, call
from adapters.sqs.message import Message, read_event
from adapters.sqs.polling.ports import QueueUnusableError
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import REFUSALS, error_name
from adapters.sqs.received import lambda_event

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

SERVER_ERROR: Final = 500
PASSING: Final = ("Throttl", "Expired", "RequestLimitExceeded", "TooManyRequests", "SlowDown", "RequestTimeTooSkewed")
"""What is in the name of a refusal that waiting, or new credentials, may mend."""

UNREACHABLE: Final = (BotoConnectionError, HTTPClientError, MetadataRetrievalError, CallFailedError)
"""SQS, or where a role's credentials come from; but not that there are no credentials, no region, or no such URL."""


@dataclass(frozen=True, slots=True)
class ReceivedMessages:
    """What one request brought; `request_id` is SQS's."""

    messages: Sequence[Message]
    request_id: str


class SqsReceiver:
    """`client` must wait longer for an answer than `poll`. What is received is invisible for `visibility`."""

    def __init__(self, client: "SQSClient", url: str, *, visibility: timedelta, poll: timedelta) -> None:
        self._client = client
        self._url = url
        self._visibility = int(visibility.total_seconds())
        self._poll = int(poll.total_seconds())
        self._arn: str | None = None

    def find(self) -> str:
        """The queue's ARN. Raises `QueueUnusableError` if there is none to be used, else `QueueUnavailableError`."""
        try:
            answer = call(self._client.get_queue_attributes, QueueUrl=self._url, AttributeNames=["QueueArn"])
            arn = answer.get("Attributes", {}).get("QueueArn")
            if not arn:
                raise NoEvidenceError(operation="GetQueueAttributes", lacks="QueueArn")
        except REFUSALS as error:
            raise _told("GetQueueAttributes", error) from error
        self._arn = str(arn)
        return self._arn

    def receive(self, number: int, /) -> ReceivedMessages:
        try:
            answer = call(
                self._client.receive_message,
                QueueUrl=self._url,
                MaxNumberOfMessages=number,
                VisibilityTimeout=self._visibility,
                WaitTimeSeconds=self._poll,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            request_id = answer.get("ResponseMetadata", {}).get("RequestId")
            if not request_id:
                raise NoEvidenceError(operation="ReceiveMessage", lacks="RequestId")
        except REFUSALS as error:
            raise _told("ReceiveMessage", error) from error
        received = answer.get("Messages", [])
        messages = read_event(lambda_event(received, self._arn or self.find())) if received else []
        return ReceivedMessages(messages, request_id)


def _told(request: str, error: Exception) -> QueueUnavailableError:
    kind = QueueUnavailableError if _may_pass(error) else QueueUnusableError
    text = str(error) if isinstance(error, NoEvidenceError) else f"{request}: {error_name(error)}"
    return kind(f"SQS {text}")


def _may_pass(error: Exception) -> bool:
    if not isinstance(error, ClientError):
        return isinstance(error, UNREACHABLE) and not (isinstance(error, CallFailedError) and error.is_no_url)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return status >= SERVER_ERROR or any(part in error_name(error) for part in PASSING)
