"""Queues on the emulator, and what Lambda's event source mapping does with them. Imports AWS."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3

from adapters.sqs.received import lambda_event
from entrypoints.sqs_worker import Handler
from tests.support.sqs import Context

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

WITHIN_SECONDS = 15


@dataclass
class Queues:
    """A source queue and its dead-letter queue."""

    sqs: "SQSClient"
    url: str
    arn: str
    dead_letter_url: str

    def send(self, *bodies: str, **options: Any) -> list[str]:
        return [self.sqs.send_message(QueueUrl=self.url, MessageBody=body, **options)["MessageId"] for body in bodies]

    def receive(self, number: int = 10, *, url: str | None = None) -> list[Any]:
        """Up to so many messages, in order of arrival; waits until all are there or time is over."""
        received: list[Any] = []
        deadline = time.monotonic() + WITHIN_SECONDS
        while len(received) < number and time.monotonic() < deadline:
            answer = self.sqs.receive_message(
                QueueUrl=url or self.url,
                MaxNumberOfMessages=min(10, number - len(received)),
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
                WaitTimeSeconds=1,
            )
            received += answer.get("Messages", [])
        return received

    def invoke(self, handle: Handler, messages: list[Any], seconds: float = 30) -> list[str]:
        """Call the handler as the event source mapping does, and delete what it does not report."""
        answer = handle(lambda_event(messages, self.arn), Context(seconds))
        failed = [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]
        for message in messages:
            if message["MessageId"] not in failed:
                self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])
        return failed

    def counts(self, url: str | None = None) -> tuple[int, int]:
        """(visible, not visible)"""
        attributes = self.sqs.get_queue_attributes(QueueUrl=url or self.url, AttributeNames=["All"])["Attributes"]
        return (
            int(attributes["ApproximateNumberOfMessages"]),
            int(attributes["ApproximateNumberOfMessagesNotVisible"]),
        )

    def wait_for_counts(self, visible: int, not_visible: int) -> None:
        deadline = time.monotonic() + WITHIN_SECONDS
        while self.counts() != (visible, not_visible):
            assert time.monotonic() < deadline, f"{self.counts()} instead of {(visible, not_visible)}"
            time.sleep(0.02)


def make_queues(*, fifo: bool = False, visibility: int = 30) -> Queues:
    sqs = boto3.client("sqs")
    suffix = ".fifo" if fifo else ""
    attributes: dict[Any, str] = {"VisibilityTimeout": str(visibility)}
    if fifo:
        attributes["FifoQueue"] = "true"
    dead_letter_url = sqs.create_queue(QueueName=f"dead{suffix}", Attributes=attributes)["QueueUrl"]
    url = sqs.create_queue(QueueName=f"jobs{suffix}", Attributes=attributes)["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    return Queues(sqs, url, arn, dead_letter_url)
