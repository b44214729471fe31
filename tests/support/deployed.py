"""A deployed worker, seen through the AWS API only. Nothing here sleeps for a time: it looks until a deadline."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3

from entrypoints.emulator.deployment import DeployedWorker
from entrypoints.emulator.launcher import Emulator, only_environment

WITHIN_SECONDS = 60


@dataclass(frozen=True)
class Watched:
    """Sends, receives and reads what was logged."""

    aws: Emulator
    worker: DeployedWorker

    def client(self, service: str) -> Any:
        with only_environment(self.aws.environment()):
            return boto3.client(service)  # type: ignore[call-overload]

    def send(self, *bodies: str) -> list[str]:
        """As one batch; the message ids."""
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        answer = self.client("sqs").send_message_batch(QueueUrl=self.worker.queue_url, Entries=entries)
        return [one["MessageId"] for one in sorted(answer["Successful"], key=lambda one: int(one["Id"]))]

    def lines(self, job_id: str | None = None) -> list[dict[str, Any]]:
        """The worker's log lines, of one job or all, oldest first."""
        pages = self.client("logs").get_paginator("filter_log_events").paginate(logGroupName=self.worker.log_group)
        texts = [event["message"] for page in pages for event in page["events"] if '"event"' in event["message"]]
        told: list[dict[str, Any]] = [json.loads(text) for text in texts]
        return sorted(
            (line for line in told if job_id is None or line.get("job_id") == job_id),
            key=lambda line: str(line["timestamp"]),
        )

    def events(self, job_id: str) -> list[str]:
        return [line["event"] for line in self.lines(job_id)]

    def until(self, passed: Callable[[], bool], what: Callable[[], object] = lambda: "") -> None:
        deadline = time.monotonic() + WITHIN_SECONDS
        while not passed():
            assert time.monotonic() < deadline, what()
            time.sleep(0.1)

    def until_events(self, job_id: str, *expected: str) -> None:
        """In any order: who skips a job may tell so before the one that ran it. Deferrals aside: they only say that
        somebody was quicker.
        """

        def told() -> list[str]:
            return [event for event in self.events(job_id) if event != "job_deferred"]

        self.until(lambda: sorted(told()) == sorted(expected), told)

    def counts(self) -> tuple[int, int]:
        """Of the source queue: (visible, in flight)."""
        told = self.client("sqs").get_queue_attributes(QueueUrl=self.worker.queue_url, AttributeNames=["All"])
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        visible, in_flight = (int(told["Attributes"][name]) for name in names)
        return visible, in_flight

    def dead_letter(self, body: str) -> dict[str, Any]:
        """What the worker wrote on the dead letter with that body, once it is there."""
        sqs = self.client("sqs")
        found: list[dict[str, Any]] = []

        def received() -> bool:
            answer = sqs.receive_message(
                QueueUrl=self.worker.dead_letter_queue_url,
                MaxNumberOfMessages=10,
                MessageAttributeNames=["All"],
                VisibilityTimeout=0,
            )
            found.extend(one for one in answer.get("Messages", []) if one["Body"] == body)
            return bool(found)

        self.until(received)
        told: dict[str, Any] = json.loads(found[0]["MessageAttributes"]["onejob"]["StringValue"])
        return told

    def records(self) -> dict[str, dict[str, Any]]:
        """By job id, everything in the table."""
        with only_environment(self.aws.environment()):
            items = boto3.resource("dynamodb").Table(self.worker.table).scan()["Items"]
        return {str(item["job_id"]): dict(item) for item in items}
