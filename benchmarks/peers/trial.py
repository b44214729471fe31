"""One scenario with one peer: a queue, a table and worker processes of its own, and an event source mapping.

The mapping does what Lambda's does: it receives, invokes, deletes what is not reported, and nothing after a crash, an
error or a time-out; the queue's redrive policy does the rest.
"""

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

from adapters.sqs.received import lambda_event
from benchmarks.peers.counts import Counts, count
from benchmarks.peers.peers import Peer
from benchmarks.peers.queues import TrialQueues
from benchmarks.peers.sandbox import Sandbox, SandboxDiedError, TimedOutError
from benchmarks.peers.scenarios import RECEIVES, TIMEOUT, VISIBILITY, Scenario
from benchmarks.peers.store_proxy import StoreProxy
from benchmarks.peers.workers.operation import Script

POLL_SECONDS: Final = 0.2
SETTLED_WITHIN_SECONDS: Final = 200


@dataclass(frozen=True, slots=True)
class Trial:
    """`environment` leads a worker to AWS; the DynamoDB client and the port are the emulator's."""

    number: int
    scenario: Scenario
    peer: Peer
    sqs: Any
    dynamodb: Any
    port: int
    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]

    def run(self) -> tuple[Counts, dict[str, str]]:
        """The counts, and the versions that the worker told. Raises what went wrong here, never for a peer."""
        began, proxy = time.monotonic(), StoreProxy(self.port)
        queues = TrialQueues.make(self.sqs, self.number, visibility=VISIBILITY, receives=RECEIVES)
        self._make_table()
        scripts = itertools.chain(self.scenario.scripts, itertools.repeat(self.scenario.always))
        environment = self._worker_environment(proxy.url, queues.dead_url)
        over, mappings = Event(), list[_Mapping]()
        try:
            for _ in range(self.scenario.workers):
                mappings.append(_Mapping(self, queues, proxy, environment, scripts, over))
            if self.scenario.store:
                proxy.start(*self.scenario.store)
            for mapping in mappings:
                mapping.thread.start()
            for bodies in filter(None, (*self.scenario.rounds, self.scenario.healthy)):
                queues.send(bodies)
                _settle(queues, mappings, over)
        finally:
            over.set()
            for mapping in mappings:
                mapping.end()
            proxy.close()
        counts = count(
            healthy=self.scenario.healthy,
            bad=self.scenario.bad,
            ledger=[json.loads(line) for line in self._ledger.read_text().splitlines()]
            if self._ledger.exists()
            else [],
            letters=queues.letters(),
            queued=queues.left(),
            receives=queues.receives,
            timeouts=sum(mapping.timeouts for mapping in mappings),
            seconds=time.monotonic() - began,
        )
        return counts, mappings[0].sandbox.versions

    @property
    def _ledger(self) -> Path:
        return self.folder / f"{self.number}.ledger"

    def _make_table(self) -> None:
        self.dynamodb.create_table(
            TableName=f"records-{self.number}",
            KeySchema=[{"AttributeName": self.peer.key, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": self.peer.key, "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )

    def _worker_environment(self, store_url: str, dead_url: str) -> dict[str, str]:
        return {
            **self.environment,
            **self.peer.environment,
            **self.scenario.environment,
            "AWS_ENDPOINT_URL_DYNAMODB": store_url,
            "PEER_LEDGER": str(self._ledger),
            "PEER_TABLE": f"records-{self.number}",
            "PEER_DEAD_LETTER_URL": dead_url,
            "PEER_VISIBILITY": str(VISIBILITY),
            "PEER_RECEIVES": str(RECEIVES),
        }


@dataclass(slots=True)
class _Mapping:
    """Polls for one sandbox, and starts another when it died. `scripts` are shared: one for each invocation."""

    trial: Trial
    queues: TrialQueues
    proxy: StoreProxy
    environment: Mapping[str, str]
    scripts: Iterator[Script]
    over: Event
    timeouts: int = 0
    is_busy: bool = False
    error: Exception | None = None
    sandbox: Sandbox = field(init=False)
    thread: Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = Thread(target=self._poll)
        self.sandbox = self._start()

    def end(self) -> None:
        """Raises what went wrong."""
        if self.thread.ident is not None:
            self.thread.join()
        self.sandbox.kill()
        if self.error:
            raise self.error

    def _start(self) -> Sandbox:
        """Outside the fault: a peer that connects at its start is to meet it in an invocation, as the others do."""
        with self.proxy.without_faults():
            return Sandbox(self.trial.command, self.environment, self.trial.folder / f"{self.trial.number}.log")

    def _poll(self) -> None:
        try:
            while not self.over.is_set():
                self.is_busy = True
                messages = self.queues.receive(self.trial.scenario.batch)
                if messages:
                    self._invoke(messages)
                self.is_busy = False
                if not messages:
                    self.over.wait(POLL_SECONDS)
        except Exception as error:
            self.error = error
            self.over.set()

    def _invoke(self, messages: list[Any]) -> None:
        script, event = next(self.scripts), lambda_event(messages, self.queues.arn)
        limit = SETTLED_WITHIN_SECONDS if _is_suspended(script) else TIMEOUT
        try:
            answer = self.sandbox.invoke(event, script, seconds=TIMEOUT, limit=limit)
        except SandboxDiedError as died:
            self.timeouts += isinstance(died, TimedOutError)
            self.sandbox = self._start()
            return
        if "raised" in answer:
            return
        failed = {item["itemIdentifier"] for item in (answer["returned"] or {}).get("batchItemFailures", ())}
        for message in messages:
            if message["MessageId"] not in failed:
                self.queues.delete(message)


def _settle(queues: TrialQueues, mappings: Sequence[_Mapping], over: Event) -> None:
    """Until the queue is empty and every worker, also a suspended one, has answered; or time is over."""
    deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
    while not over.wait(POLL_SECONDS) and time.monotonic() < deadline:
        if queues.left() == 0:
            for mapping in mappings:
                mapping.sandbox.go_on()
            if not any(mapping.is_busy for mapping in mappings):
                return


def _is_suspended(script: Script) -> bool:
    return any(step[0] == "stop" for steps in script.values() for step in steps)
