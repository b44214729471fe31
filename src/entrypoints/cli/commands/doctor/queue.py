"""What `onejob doctor` looks at in the queue, its dead-letter queue, and between them and the records."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from entrypoints.cli.commands.doctor.finding import Finding, Level, ask, fail, judged, ok, warn
from entrypoints.cli.tables import length

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

LEAST_RECEIVES: Final = 20
VISIBILITY_PER_TIMEOUT: Final = 6
"""AWS: at least six times the function's time-out, plus the batching window."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Who reads the queue: time-out and batching window of its function in seconds."""

    name: str
    timeout: int
    window: int = 0


@dataclass(frozen=True, slots=True)
class QueueCheck:
    """One worker's queues. `dead_letter_url` is the setting DEAD_LETTER_QUEUE_URL."""

    client: "SQSClient"
    url: str
    dead_letter_url: str | None
    retention: timedelta
    max_attempts: int
    reader: Reader | None

    def findings(self) -> Iterator[Finding]:
        subject = f"queue {_name(self.url)}"
        source = self._attributes(subject, self.url)
        if source.trouble:
            yield source.trouble
            return
        attributes: dict[str, str] = source.answer
        visible, in_flight = attributes.get("ApproximateNumberOfMessages"), _in_flight(attributes)
        yield ok(subject, f"about {visible} messages visible, {in_flight} in flight")
        yield from self._visibility(subject, attributes)
        policy = _policy(attributes)
        if not policy:
            yield fail(
                subject,
                "has no redrive policy: a message that nobody answers is received for ever",
                "set a RedrivePolicy with maxReceiveCount of at least 20 (aws sqs set-queue-attributes)",
            )
        else:
            yield self._receives(subject, int(policy["maxReceiveCount"]))
        yield from self._dead_letters(subject, attributes, policy.get("deadLetterTargetArn"))

    def _attributes(self, subject: str, url: str) -> Any:
        return ask(
            subject, lambda: self.client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        )

    def _visibility(self, subject: str, attributes: dict[str, str]) -> Iterator[Finding]:
        visibility = int(attributes.get("VisibilityTimeout", 0))
        if self.reader is None:
            yield ok(subject, f"visibility timeout {visibility} s (--function NAME compares it with the time-out)")
            return
        least = VISIBILITY_PER_TIMEOUT * self.reader.timeout + self.reader.window
        yield judged(
            subject,
            visibility >= least,
            f"visibility timeout {visibility} s, {self.reader.name} takes up to {self.reader.timeout} s",
            f"set VisibilityTimeout to at least {least} (6 x time-out + batching window)",
        )

    def _receives(self, subject: str, most: int) -> Finding:
        return judged(
            subject,
            most >= LEAST_RECEIVES and most > self.max_attempts,
            f"maxReceiveCount {most}",
            f"set maxReceiveCount to at least {max(LEAST_RECEIVES, self.max_attempts + 1)}: a receive is not an "
            "attempt, and SQS would bury jobs without their reason",
        )

    def _dead_letters(self, subject: str, source: dict[str, str], target: str | None) -> Iterator[Finding]:
        url = self.dead_letter_url
        if url is None:
            yield fail(
                subject,
                "DEAD_LETTER_QUEUE_URL is not set: what is rejected comes back until SQS moves it, without its reason",
                "set DEAD_LETTER_QUEUE_URL (or --dead-letter-url)",
            )
            url = self._url_of(target)
        if url is None:
            return
        dead = f"dead-letter queue {_name(url)}"
        asked = self._attributes(dead, url)
        if asked.trouble:
            yield asked.trouble
            return
        letters: dict[str, str] = asked.answer
        yield from self._pair(dead, source, letters, target)
        yield self._records_outlive(source, letters)
        count = int(letters.get("ApproximateNumberOfMessages", 0))
        if count:
            yield warn(dead, f"about {count} letters wait", f"onejob dlq list --dead-letter-url {url}")
        elif held := int(letters.get("ApproximateNumberOfMessagesNotVisible", 0)):
            yield warn(dead, f"about {held} letters wait, all held by somebody", "look again in a minute")
        else:
            yield ok(dead, "is empty")

    def _pair(
        self, dead: str, source: dict[str, str], letters: dict[str, str], target: str | None
    ) -> Iterator[Finding]:
        if target is not None and letters.get("QueueArn") != target:
            yield fail(
                dead,
                f"the redrive policy names another one: {target}",
                "let DEAD_LETTER_QUEUE_URL and the redrive policy name the same queue",
            )
        fifo, dead_fifo = (queue.get("FifoQueue") == "true" for queue in (source, letters))
        kinds = {True: "FIFO", False: "standard"}
        yield judged(
            dead,
            fifo == dead_fifo,
            f"is {kinds[dead_fifo]}, its source is {kinds[fifo]}",
            "a FIFO queue needs a FIFO dead-letter queue, a standard one a standard one",
        )
        keeps, dead_keeps = (_retention(queue) for queue in (source, letters))
        yield judged(
            dead,
            dead_keeps > keeps or (fifo and dead_keeps == keeps),
            f"keeps letters {length(dead_keeps)}, its source messages {length(keeps)}",
            "raise its MessageRetentionPeriod above the source's: what SQS moves keeps its age",
        )
        if _policy(letters):
            yield warn(
                dead, "has a redrive policy of its own: each look counts as a receive", "take the RedrivePolicy off it"
            )

    def _records_outlive(self, source: dict[str, str], letters: dict[str, str]) -> Finding:
        messages = _retention(source) + _retention(letters)
        return judged(
            "retention of records",
            self.retention >= messages,
            f"{length(self.retention)}, a message lives up to {length(messages)} in both queues",
            f"set IDEMPOTENCY_EXPIRES_AFTER_SECONDS to at least {int(messages.total_seconds())}: a redriven message "
            "would find its record gone, and run again",
        )

    def _url_of(self, arn: str | None) -> str | None:
        if arn is None:
            return None
        asked = ask(arn, lambda: url_of(self.client, arn), level=Level.WARN)
        return None if asked.trouble else str(asked.answer)


def url_of(client: "SQSClient", arn: str) -> str:
    """The URL of a queue."""
    account, name = arn.split(":")[-2:]
    return client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)["QueueUrl"]


def _name(url: str) -> str:
    return url.rpartition("/")[2]


def _policy(attributes: dict[str, str]) -> dict[str, Any]:
    return dict(json.loads(attributes.get("RedrivePolicy") or "{}"))


def _retention(attributes: dict[str, str]) -> timedelta:
    return timedelta(seconds=int(attributes.get("MessageRetentionPeriod", 0)))


def _in_flight(attributes: dict[str, str]) -> str:
    return attributes.get("ApproximateNumberOfMessagesNotVisible", "0")
