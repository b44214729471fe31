"""A worker, its queues on the emulator, and `onejob dlq` over both. Imports AWS."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch
from uuid import uuid4

from adapters.sqs.notes import Notes
from adapters.system import SystemClock, new_secret
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.shared_secret import SharedSecret
from entrypoints.sqs_worker import Handler
from tests.support.aws import TABLE, dynamodb_store, emulated
from tests.support.cli import objects, onejob
from tests.support.sqs_aws import Queues, make_queues
from tests.support.worker import handler


class World:
    """Queues, a worker whose operation fails for as long as it is told to, and the command line over both."""

    def __init__(self, queues: Queues) -> None:
        self.queues = queues
        self.broken = True
        self.ran: list[tuple[str, int]] = []

    def run(self, job: Job, attempt: Attempt) -> object:
        if self.broken:
            raise PermanentError("broken")
        self.ran.append((attempt.effect_key("charge").removeprefix(str(job.key)), attempt.number))
        return {"ran": job.job_id}

    @property
    def handle(self) -> Handler:
        return handler(self.run, clock=SystemClock(), dead_letter_queue_url=self.queues.dead_letter_url)

    def work(self, number: int = 1) -> None:
        """Handle so many messages of the source queue."""
        assert self.queues.invoke(self.handle, self.queues.receive(number)) == []

    def dead_letter(self, *bodies: str, **options: Any) -> None:
        self.queues.send(*bodies, **options)
        self.work(len(bodies))
        self.broken = False

    def letter(self, body: str, first_sent: datetime | None = None, **note: Any) -> None:
        """As an earlier burial left it."""
        if first_sent is not None:
            note["first_sent"] = round(first_sent.timestamp() * 1000)
        self.forged(body, json.dumps(worker_notes().signed({"reason": "broken", **note}, body)))

    def forged(self, body: str, note: str) -> None:
        """In the dead-letter queue, under a note of whoever sent it."""
        attribute: Any = {"onejob": {"DataType": "String", "StringValue": note}}
        url = self.queues.dead_letter_url
        fifo: Any = {"MessageGroupId": "g", "MessageDeduplicationId": uuid4().hex} if url.endswith(".fifo") else {}
        self.queues.sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attribute, **fifo)

    def redrive(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        result = onejob("dlq", "redrive", "--json", *arguments)
        self.stderr = result.stderr
        return result.exit_code, [row for row in objects(result) if "verdict" in row]  # beside the worker's logs

    @property
    def letters(self) -> tuple[int, int]:
        return self.queues.counts(self.queues.dead_letter_url)


def worker_notes() -> Notes:
    """As the worker of these tests signs them."""
    store = dynamodb_store(SystemClock(), timedelta(days=28))
    return Notes(SharedSecret(store.find, store.claim, "test", new_secret))


@contextmanager
def redriven_world(*, fifo: bool = False) -> Iterator[World]:
    """With the environment that the command line is told by; nobody waits for an empty queue."""
    with emulated(), patch("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0):
        queues = make_queues(fifo=fifo)
        with patch.dict("os.environ", environment(queues)):
            yield World(queues)


def environment(queues: Queues) -> dict[str, str]:
    return {
        "QUEUE_URL": queues.url,
        "DEAD_LETTER_QUEUE_URL": queues.dead_letter_url,
        "IDEMPOTENCY_TABLE": TABLE,
        "IDEMPOTENCY_NAMESPACE": "test",
    }
