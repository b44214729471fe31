"""One scenario with one peer: a queue, a table and worker processes of its own, and an event source mapping.

The mapping does what Lambda's does: it receives, invokes, deletes what is not reported, and nothing after a crash, an
error or a time-out; the queue's redrive policy does the rest.
"""

import itertools
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

from adapters.sqs.received import lambda_event
from benchmarks.peers.counts import Counts, Job, count
from benchmarks.peers.peers import Peer
from benchmarks.peers.sandbox import Sandbox, SandboxDiedError
from benchmarks.peers.scenarios import RECEIVES, TIMEOUT, VISIBILITY, Scenario
from benchmarks.peers.store_proxy import StoreProxy
from benchmarks.peers.workers.operation import Script

POLL_SECONDS: Final = 0.2
SETTLED_WITHIN_SECONDS: Final = 200


@dataclass(slots=True)
class Trial:
    """Run it once. `clients` are (SQS, DynamoDB), shared and thread-safe; `environment` leads a worker to AWS."""

    number: int
    scenario: Scenario
    peer: Peer
    clients: tuple[Any, Any]
    port: int
    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    versions: dict[str, str] = field(default_factory=dict)
    _url: str = ""
    _dead_url: str = ""
    _sandboxes: list[Sandbox | None] = field(default_factory=list)
    _running: int = 0
    _receives: int = 0
    _error: Exception | None = None
    _over: Event = field(default_factory=Event)
    _lock: Any = field(default_factory=Lock)
    _numbers: Any = field(default_factory=itertools.count)

    def run(self) -> Counts:
        """Raises what went wrong in the harness, never for a peer."""
        proxy = StoreProxy(self.port)
        try:
            self._make()
            environment = self._worker_environment(proxy.url)
            self._sandboxes = [self._start(environment) for _ in range(self.scenario.workers)]
            mappings = [Thread(target=self._map, args=(i, environment)) for i in range(self.scenario.workers)]
            if self.scenario.store:
                proxy.start(*self.scenario.store)
            for mapping in mappings:
                mapping.start()
            for bodies in (*self.scenario.rounds, tuple(self.scenario.healthy)):
                self._send(bodies)
                self._settle()
            self._over.set()
            for mapping in mappings:
                mapping.join()
            if self._error:
                raise self._error
            return self._counted()
        finally:
            self._over.set()
            for sandbox in self._sandboxes:
                if sandbox:
                    sandbox.kill()
            proxy.close()

    def _make(self) -> None:
        sqs, dynamodb = self.clients
        self._dead_url = sqs.create_queue(QueueName=f"dead-{self.number}")["QueueUrl"]
        arn = self._queue(self._dead_url)["QueueArn"]
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": RECEIVES})
        attributes = {"VisibilityTimeout": str(VISIBILITY), "RedrivePolicy": redrive}
        self._url = sqs.create_queue(QueueName=f"jobs-{self.number}", Attributes=attributes)["QueueUrl"]
        dynamodb.create_table(
            TableName=f"records-{self.number}",
            KeySchema=[{"AttributeName": self.peer.key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": self.peer.key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def _worker_environment(self, store_url: str) -> dict[str, str]:
        return {
            **self.environment,
            **self.peer.environment,
            **self.scenario.environment,
            "AWS_ENDPOINT_URL_DYNAMODB": store_url,
            "PEER_LEDGER": str(self._ledger),
            "PEER_TABLE": f"records-{self.number}",
            "PEER_DEAD_LETTER_URL": self._dead_url,
            "PEER_VISIBILITY": str(VISIBILITY),
            "PEER_RECEIVES": str(RECEIVES),
        }

    @property
    def _ledger(self) -> Path:
        return self.folder / f"{self.number}.ledger"

    def _start(self, environment: Mapping[str, str]) -> Sandbox:
        sandbox = Sandbox(self.command, environment, self.folder / f"{self.number}.log")
        self.versions = sandbox.versions
        return sandbox

    def _map(self, worker: int, environment: Mapping[str, str]) -> None:
        arn = self._queue(self._url)["QueueArn"]
        try:
            while not self._over.is_set():
                sandbox = self._sandboxes[worker]
                if sandbox is None:
                    sandbox = self._sandboxes[worker] = self._start(environment)
                messages = self._receive()
                if messages:
                    try:
                        self._invoke(sandbox, messages, arn)
                    except SandboxDiedError:
                        self._sandboxes[worker] = None
                    finally:
                        with self._lock:
                            self._running -= 1
                else:
                    self._over.wait(POLL_SECONDS)
        except Exception as error:
            self._error = error
            self._over.set()

    def _receive(self) -> list[Any]:
        with self._lock:
            answer = self.clients[0].receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=self.scenario.batch,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages: list[Any] = answer.get("Messages", [])
            self._running += bool(messages)
            for message in messages:
                self._receives = max(self._receives, int(message["Attributes"]["ApproximateReceiveCount"]))
            return messages

    def _invoke(self, sandbox: Sandbox, messages: list[Any], arn: str) -> None:
        number = next(self._numbers)
        script = self.scenario.scripts[number] if number < len(self.scenario.scripts) else self.scenario.always
        limit = SETTLED_WITHIN_SECONDS if _is_suspended(script) else TIMEOUT
        answer = sandbox.invoke(lambda_event(messages, arn), script, seconds=TIMEOUT, limit=limit)
        if "raised" in answer:
            return
        failed = {item["itemIdentifier"] for item in (answer["returned"] or {}).get("batchItemFailures", ())}
        for message in messages:
            if message["MessageId"] not in failed:
                with suppress(self.clients[0].exceptions.ReceiptHandleIsInvalid):  # a late worker's
                    self.clients[0].delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])

    def _send(self, bodies: Sequence[Job]) -> None:
        if not bodies:
            return
        entries = [{"Id": str(number), "MessageBody": json.dumps(body)} for number, body in enumerate(bodies)]
        with self._lock:
            self.clients[0].send_message_batch(QueueUrl=self._url, Entries=entries)

    def _settle(self) -> None:
        """Until the queue is empty and every worker, also a suspended one, has answered; or time is over."""
        deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
        while not self._over.wait(POLL_SECONDS) and time.monotonic() < deadline:
            if self._left():
                continue
            for sandbox in self._sandboxes:
                if sandbox:
                    sandbox.go_on()
            if not self._running:
                return

    def _left(self) -> int:
        attributes = self._queue(self._url)
        names = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        return sum(int(attributes[name]) for name in names)

    def _queue(self, url: str) -> dict[str, str]:
        attributes: dict[str, str] = self.clients[0].get_queue_attributes(QueueUrl=url, AttributeNames=["All"])[
            "Attributes"
        ]
        return attributes

    def _counted(self) -> Counts:
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        letters = []
        while (
            received := self.clients[0].receive_message(QueueUrl=self._dead_url, MaxNumberOfMessages=10).get("Messages")
        ):
            letters += [json.loads(message["Body"]) for message in received]
        return count(
            healthy=self.scenario.healthy,
            bad=self.scenario.bad,
            ledger=[json.loads(line) for line in lines],
            letters=letters,
            queued=self._left(),
            receives=self._receives,
        )


def _is_suspended(script: Script) -> bool:
    return any(step[0] == "stop" for steps in script.values() for step in steps)
