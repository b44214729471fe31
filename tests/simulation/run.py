"""One run of a plan: who is there, when they come, and what must be so at the end."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count
from random import Random

from adapters.memory import MemoryIdempotencyStore
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, Plan, PlannedMessage
from tests.simulation.probe import Probe
from tests.simulation.sqs import SentMessage, SimulatedQueue
from tests.simulation.store import Backend, RequestClock
from tests.simulation.workers import Runner, Sandbox, Shared
from tests.simulation.world import Violation, World

LAST_TICK = 60_000
type MakeBackend = Callable[[timedelta], Backend]


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


def memory_backend(retention: timedelta) -> Backend:
    clock = RequestClock()
    store = MemoryIdempotencyStore(clock, retention)
    return Backend(store, clock, retention, lambda record: store._records.__setitem__(record.key, record))


def simulate(plan: Plan, make_backend: MakeBackend = memory_backend) -> Result:
    """Deterministic: the same plan gives the same trace over every store."""
    world = World(Random(plan.seed * 7919 + 1), LAST_TICK)
    oracle = Oracle(world, plan)
    queue = SimulatedQueue(world, plan.fifo)
    jobs = {job.job_id: job for job in plan.jobs}
    shared = Shared(world, plan, oracle, make_backend(timedelta(seconds=plan.retention)), queue, jobs, count(1))
    lambdas = _Lambda(shared)
    for message in plan.messages:
        world.at(message.sent_at, partial(lambdas.send, SentMessage(message, _body(message), message.sent_at)))
    runner = Runner(shared, plan.skews[-1], plan.runner_jobs)
    if plan.runner_jobs:
        world.spawn(runner, runner.work)
    for number in range(plan.probes):
        probe = Probe(shared, plan.skews[number % len(plan.skews)])
        world.spawn(probe, probe.work)
    violation = None
    try:
        world.run(lambda: lambdas.is_done)
        if queue.waiting() or len(queue.messages) + len(queue.buried_by_sqs) < len(plan.messages):
            raise Violation(f"stuck: {[message.planned.name for message in queue.waiting()]} never ended")
        if queue.buried_by_sqs:
            raise Violation(f"buried by SQS without a reason: {queue.buried_by_sqs[0].planned.name}")
    except Violation as error:
        violation = f"{error} at {world.now}"
    return Result(plan, violation, tuple(world.trace), oracle.outcomes, oracle.faults, oracle.windows, oracle.reasons)


def _body(message: PlannedMessage) -> str:
    if message.broken:
        return '{"job_id":'
    body: dict[str, object] = {"job_id": message.job.job_id, "payload": 2 if message.other_payload else 1}
    if message.unknown_operation:
        body["operation"] = "not_deployed"
    return json.dumps(body)


class _Lambda:
    """The event source mapping: receives what is visible, calls a sandbox, at most so many at a time."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.world, self.plan, self.queue = shared.world, shared.plan, shared.queue
        self.sandboxes: list[Sandbox] = []
        self.is_done = False
        self._planned = 0

    def poll(self, number: int = 0) -> None:
        """When something becomes visible or a place becomes free. Only the last one planned counts."""
        if number != self._planned or self.is_done:
            return
        world, plan = self.world, self.plan
        alive = [sandbox for sandbox in self.sandboxes if not sandbox.dead]
        busy = sum(sandbox.busy for sandbox in alive)
        self.sandboxes = alive
        self._redeliver()
        while busy < plan.invocations and self.queue.is_something_visible():
            batch = self.queue.receive(plan.batch_size)
            if not batch:
                break
            self.queue.hide(batch, 6 * plan.timeout)
            self._sandbox().invoke(batch)
            busy += 1
        visible = self.queue.next_visible()
        if visible is None and len(self.queue.messages) == len(plan.messages) and not busy:
            self.is_done = True
            return
        soon = world.now + 1
        is_watched = visible is None or (plan.redeliveries and busy)
        self._poll_at(soon if is_watched or visible is None else max(soon, visible))

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

    def _redeliver(self) -> None:
        """At least once: what is in flight comes again."""
        plan, world = self.plan, self.world
        if plan.redeliveries and not plan.fifo and world.now < FAULTS_UNTIL:
            for message in self.queue.waiting():
                if message.is_in_flight(world.now) and world.chance.random() * 1000 < plan.redeliveries:
                    self.shared.oracle.faults["redelivered"] += 1
                    message.visible_at = world.now
