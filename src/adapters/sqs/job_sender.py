"""Sends job messages to a queue, for a door that takes jobs in and leaves them to a worker."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@dataclass(frozen=True, slots=True)
class SqsJobSender:
    """Thread-safe. `client` answers the same one each time, and is called when a job is first sent."""

    client: "Callable[[], SQSClient]"
    queue_url: str
    new_id: Callable[[], str]

    def send(self, message: Mapping[str, Any], group: str) -> str | None:
        """Send one message, in ASCII, which SQS takes whatever is in it; on a FIFO queue in that group.

        Answers the error's name if it was not sent, or may not have been. The queue deduplicates nothing: a job that
        was rejected or forgotten may be sent again at once, and what is sent twice runs once. Only the SDK's own second
        try carries the same id.
        """
        options: dict[str, Any] = {}
        if self.queue_url.endswith(".fifo"):
            options = {"MessageGroupId": group, "MessageDeduplicationId": self.new_id()}
        body = json.dumps(message, separators=(",", ":"))
        try:
            self.client().send_message(QueueUrl=self.queue_url, MessageBody=body, **options)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        except (BotoCoreError, ValueError) as error:  # the last for an endpoint that is no URL
            return type(error).__name__
        return None
