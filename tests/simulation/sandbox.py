"""A Lambda execution environment with the real batch code in it, and the queue as that code has it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from adapters.sqs.message import Message
from domain.delivery import Delivery
from domain.job import Job
from domain.outcome import Outcome
from tests.simulation.crew import GreenCrew, GreenRunning, RealCrew
from tests.simulation.deliveries import Delivered
from tests.simulation.plan import FAULTS_UNTIL, MARGIN
from tests.simulation.queue_port import QueueWorker, WatchedBatches
from tests.simulation.sqs import SentMessage
from tests.simulation.workers import Interrupted, Shared
from tests.support.notes import NOTES


class Sandbox(QueueWorker):
    """A Lambda execution environment, warm between invocations."""

    def __init__(self, shared: Shared, is_free: Callable[[], None], skew: int) -> None:
        super().__init__(shared, skew)
        self.is_free = is_free
        self.cut_off()
        self.busy = False
        self.running: GreenRunning | None = None
        self.batch: list[Delivered] = []
        self.invocation = self.began_at = 0
        self.process_job = self.service().process
        self.crew = RealCrew(self, self.plan.threads) if self.plan.real_pool else self._green_crew()
        self.batches = WatchedBatches(
            factory=self.factory,
            process=self._process,
            queue=self,
            events=self,
            crew=self.crew,
            notes=NOTES,
            clock=self.clock,
            jitter=self.world.chance.random,
            retention=shared.backend.retention,
            margin=timedelta(seconds=MARGIN),
            grace=timedelta(seconds=self.plan.grace),
            reads=self.parsing_point,
        )

    def invoke(self, batch: list[SentMessage]) -> None:
        """As the event source mapping does: call, delete what is not reported, and kill at the time-out."""
        world, plan = self.world, self.plan
        self.busy, self.began_at, self.running = True, world.now, None
        self.invocation = number = next(self.shared.number)
        end = world.now + plan.timeout
        if plan.late_kills and world.now < FAULTS_UNTIL and world.chance.random() * 1000 < plan.late_kills:
            self.oracle.faults["killed late"] += 1
            end += world.chance.randint(1, 90)
        world.at(end, partial(self._time_out, number))
        messages = [self.message(sent) for sent in batch]
        self.batch = self.deliveries.received(batch, self.clock.now(), f"request-{number}")
        world.spawn(self, partial(self._handle, messages, number))

    def _handle(self, batch: list[Message], number: int) -> None:
        invocation_end = self.clock.now() + timedelta(seconds=self.plan.timeout)
        self.store.last_try = invocation_end - timedelta(seconds=MARGIN)
        self.store.lease_end = invocation_end + timedelta(seconds=self.plan.grace)
        try:
            failed = self.batches.run(batch, invocation_end=invocation_end, request_id=f"request-{number}")
        except Interrupted:
            self._ended_by_interruption()
            return
        if any(one.is_running for one in self.batch):
            self.oracle.fail("the handler returned while an operation runs, or was interrupted")
        is_running = self.running is not None and self.running.left
        if is_running or (isinstance(self.crew, RealCrew) and self.crew.running):
            self.oracle.fail("the handler returned while a lane runs")
        self.deliveries.returned(self.batch, failed)
        self.busy = False
        for message in batch:
            if message.message_id not in failed:
                self.deletes(message.receipt_handle)
        self.is_free()

    def _ended_by_interruption(self) -> None:
        """Lambda ends the process, and deletes nothing: what was done must have been deleted."""
        self.deliveries.all_settled(self.batch, "an interruption ended it")
        self.died_at = self.world.now
        self.is_free()

    def _process(self, job: Job, *, lease: timedelta, deadline: datetime | None, delivery: Delivery) -> Outcome:
        one = self.deliveries.known[delivery.message_id or "", delivery.receives]
        self.deliveries.begins(one, self.clock.now())
        return self.unless_not_alone(one, self.process_job(job, lease=lease, deadline=deadline, delivery=delivery))

    def _green_crew(self) -> GreenCrew:
        return GreenCrew(self, self.plan.threads, self._started)

    def is_looked_at_again(self) -> None:
        self.is_free()

    def _started(self, running: GreenRunning) -> None:
        self.running = running

    def died(self) -> None:
        self.is_free()

    def _time_out(self, number: int) -> None:
        if self.busy and self.invocation == number and not self.dead:
            self.oracle.faults["timed out"] += 1
            if self.suspended_at < self.began_at:
                self.deliveries.all_settled(self.batch, "the time-out")
            self.died_at = self.world.now
            self.is_free()
