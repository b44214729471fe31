"""A trial's source queue with its redrive policy, and what is in the two queues."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self

from benchmarks.peers.counts import Job


@dataclass(slots=True)
class TrialQueues:
    """Thread-safe. What is sent together is received together, as far as a batch goes."""

    sqs: Any
    url: str
    arn: str
    dead_url: str
    receives: int = 0
    """The largest receive count seen."""
    _lock: Any = field(default_factory=Lock)

    @classmethod
    def make(cls, sqs: Any, number: int, *, visibility: int, receives: int) -> Self:
        dead_url = sqs.create_queue(QueueName=f"dead-{number}")["QueueUrl"]
        redrive = {"deadLetterTargetArn": _attributes(sqs, dead_url)["QueueArn"], "maxReceiveCount": receives}
        attributes = {"VisibilityTimeout": str(visibility), "RedrivePolicy": json.dumps(redrive)}
        url = sqs.create_queue(QueueName=f"jobs-{number}", Attributes=attributes)["QueueUrl"]
        return cls(sqs, url, _attributes(sqs, url)["QueueArn"], dead_url)

    def send(self, bodies: Sequence[Job]) -> None:
        entries = [{"Id": str(number), "MessageBody": json.dumps(body)} for number, body in enumerate(bodies)]
        with self._lock:
            self.sqs.send_message_batch(QueueUrl=self.url, Entries=entries)

    def receive(self, most: int) -> list[Any]:
        """At once, whatever is there."""
        with self._lock:
            answer = self.sqs.receive_message(
                QueueUrl=self.url,
                MaxNumberOfMessages=most,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages: list[Any] = answer.get("Messages", [])
            counts = [int(message["Attributes"]["ApproximateReceiveCount"]) for message in messages]
            self.receives = max([self.receives, *counts])
        return messages

    def delete(self, message: Any) -> None:
        with suppress(self.sqs.exceptions.ReceiptHandleIsInvalid):  # a late worker's
            self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=message["ReceiptHandle"])

    def left(self) -> int:
        """Waiting and in flight."""
        attributes = _attributes(self.sqs, self.url)
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(attributes[name]) for name in names)

    def letters(self) -> list[Job]:
        """The bodies in the dead-letter queue; they are in flight then."""
        bodies: list[Job] = []
        while received := self.sqs.receive_message(QueueUrl=self.dead_url, MaxNumberOfMessages=10).get("Messages"):
            bodies += [json.loads(message["Body"]) for message in received]
        return bodies


def _attributes(sqs: Any, url: str) -> dict[str, str]:
    attributes: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return attributes
