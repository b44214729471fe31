"""One run of a plan: who is there, when they come, and what must be so at the end."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from traceback import extract_tb

from tests.simulation.backends import MakeBackend, memory_backend
from tests.simulation.dead_letters import SimulatedDeadLetters
from tests.simulation.deliveries import Deliveries
from tests.simulation.operators import Operators, audited
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, PAYLOADS, Plan, PlannedMessage
from tests.simulation.polling import PollingWorker
from tests.simulation.probe import Probe
from tests.simulation.runner import Runner
from tests.simulation.sandbox import Sandbox
from tests.simulation.sqs import SentMessage, SimulatedQueue
from tests.simulation.workers import Shared
from tests.simulation.world import Violation, World

LAST_TICK = 60_000
STOPPED = 0.4
"""The share of polling workers that are told to stop."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run came to. `violation` is None if every rule held."""

    plan: Plan
    violation: str | None
    trace: tuple[str, ...]
    outcomes: Counter[str]
    faults: Counter[str]
    windows: Counter[str]
    reasons: Counter[str]


def simulate(plan: Plan, make_backend: MakeBackend = memory_backend) -> Result:
    """Deterministic: the same plan gives the same trace over every store."""
    world = World(Random(plan.seed * 7919 + 1), LAST_TICK)
    oracle = Oracle(world, plan, Deliveries(world, plan))
    queue = SimulatedQueue(world, plan.fifo)
    jobs = {job.identity: job for job in plan.jobs}
    backend = make_backend(world, plan)
    lambdas = _Lambda(world, plan, queue, oracle)
    lambdas.shared = shared = Shared(
        world, plan, oracle, backend, queue, jobs, count(1), lambdas.send, lambdas.look_again
    )
    operators = Operators(shared, SimulatedDeadLetters(world, plan.fifo))
    shared.dead_letter = operators.buried
    for message in plan.messages:
        queue.announced.add(message.name)
        sent = SentMessage(message, _body(message), message.sent_at, receives=message.lost_receives)
        world.at(message.sent_at, partial(lambdas.send, sent))
    runner = Runner(shared, plan.skews[-1], plan.runner_jobs)
    if plan.runner_jobs:
        world.spawn(runner, runner.work)

    def start_poller(number: int) -> PollingWorker:
        def replace() -> None:
            if plan.supervised:
                world.at(world.now + 2, partial(start_poller, number))

        poller = PollingWorker(shared, plan.skews[number % len(plan.skews)], plan.threads + 1, replace)
        world.spawn(poller, poller.work)
        return poller

    for number in range(plan.pollers):
        poller = start_poller(number)
        if world.chance.random() < STOPPED:
            stop = partial(poller.stop, world.chance.choice((0, 5, 30)))
            world.at(world.chance.randint(5, 200), partial(world.spawn, poller, stop))
    for number in range(plan.probes):
        probe = Probe(shared, plan.skews[number % len(plan.skews)])
        world.spawn(probe, probe.work)
    operators.plan_commands()
    violation = None
    try:
        with audited(oracle):
            world.run(lambda: lambdas.is_done)
        if queue.waiting() or len(queue.messages) < len(queue.announced):
            raise Violation(f"stuck: {[message.planned.name for message in queue.waiting()]} never ended")
        if queue.buried_by_sqs:
            raise Violation(f"buried by SQS without a reason: {queue.buried_by_sqs[0].planned.name}")
    except Violation as error:
        violation = f"{error} at {world.now}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also what an operation is not allowed to raise
        place = extract_tb(error.__traceback__)[-1]
        violation = f"{type(error).__name__} in {Path(place.filename).name}, {place.name}: {error} at {world.now}"
    finally:
        backend.close()
    reasons = oracle.deliveries.reasons
    return Result(plan, violation, tuple(world.trace), oracle.outcomes, oracle.faults, oracle.windows, reasons)


def _body(message: PlannedMessage) -> str:
    if message.broken:
        return '{"job_id":'
    if message.test_event:
        return '{"Service": "Amazon S3", "Event": "s3:TestEvent"}'
    body: dict[str, object] = {"job_id": message.job.job_id, **PAYLOADS[message.other_payload]}
    if message.job.tenant is not None:
        body["tenant"] = message.job.tenant
    if message.unknown_operation:
        body["operation"] = "not_deployed"
    return json.dumps(body)


class _Lambda:
    """The event source mapping: receives what is visible, calls a sandbox, at most so many at a time."""

    shared: Shared

    def __init__(self, world: World, plan: Plan, queue: SimulatedQueue, oracle: Oracle) -> None:
        self.world, self.plan, self.queue, self.oracle = world, plan, queue, oracle
        self.sandboxes: list[Sandbox] = []
        self.is_done = False
        self._planned = 0

    def poll(self, number: int = 0) -> None:
        """When something becomes visible or a place becomes free. Only the last one planned counts."""
        if number != self._planned or self.is_done:
            return
        world, plan, queue = self.world, self.plan, self.queue
        self.sandboxes = [sandbox for sandbox in self.sandboxes if not sandbox.dead]
        busy = sum(sandbox.busy for sandbox in self.sandboxes)
        while busy < plan.invocations and queue.is_something_visible():
            batch = queue.receive(plan.batch_size)
            if not batch:
                break
            queue.hide(batch, 6 * plan.timeout)
            self._redeliver_some(batch)
            self._sandbox().invoke(batch)
            busy += 1
        visible = queue.next_visible()
        if visible is not None:
            if busy < plan.invocations:  # else whoever becomes free looks again
                self._poll_at(max(world.now + 1, visible))
        elif len(queue.messages) == len(queue.announced) and not busy:
            self.is_done = True

    def send(self, message: SentMessage) -> None:
        self.queue.send(message)
        self.look_again()

    def _poll_at(self, tick: int) -> None:
        self._planned += 1
        self.world.at(tick, partial(self.poll, self._planned))

    def look_again(self) -> None:
        """A place became free."""
        self._poll_at(self.world.now)

    def _sandbox(self) -> Sandbox:
        idle = [sandbox for sandbox in self.sandboxes if not sandbox.busy]
        if idle and self.world.chance.random() < 0.8:
            return self.world.chance.choice(idle)
        made = Sandbox(self.shared, self.look_again, self.plan.skews[len(self.sandboxes) % len(self.plan.skews)])
        self.sandboxes.append(made)
        return made

    def _redeliver_some(self, batch: list[SentMessage]) -> None:
        """At least once: what is in flight comes again."""
        plan, world = self.plan, self.world
        if plan.fifo or not plan.redeliveries or world.now >= FAULTS_UNTIL:
            return
        for message in batch:
            if world.chance.random() * 1000 < plan.redeliveries:
                world.at(world.now + world.chance.randint(0, 15), partial(self._redeliver, message, message.receives))

    def _redeliver(self, message: SentMessage, receives: int) -> None:
        if message.receives == receives and not message.is_gone and message.is_in_flight(self.world.now):
            self.oracle.faults["redelivered"] += 1
            message.visible_at = self.world.now
            message.redelivered += 1
            self.look_again()
