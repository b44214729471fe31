"""The real poll worker, with its heartbeats and its deletions, beside the Lambda sandboxes."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from adapters.sqs.message import Message
from adapters.sqs.polling.deletions import Deletions
from adapters.sqs.polling.receiver import ReceivedMessages
from adapters.sqs.polling.visibility_heartbeat import HeldQueue, VisibilityHeartbeat
from adapters.sqs.polling.worker import PollWorker
from adapters.sqs.ports import QueueUnavailableError
from adapters.threads.pool import ThreadPool
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.job import Job
from domain.outcome import Failed, Failure, Outcome
from entrypoints.poll_worker import BEYOND_LEASE
from tests.simulation.attempts import AttemptSeen
from tests.simulation.beating import BeatingWorker
from tests.simulation.crew import RealCrew
from tests.simulation.deliveries import Delivered, Polled
from tests.simulation.plan import MARGIN, MAX_ANSWER_BYTES, RUNNER_LEASE
from tests.simulation.queue_port import REFUSED, QueueWorker, WatchedBatches
from tests.simulation.sqs import SentMessage
from tests.simulation.store import WorkerStore
from tests.simulation.workers import Interrupted, Shared
from tests.simulation.world import Task
from tests.support.notes import NOTES

LONGEST: Final = timedelta(seconds=60)
"""An attempt may take so long."""

HANGS: Final = 90
POLL: Final = 20
SUPERVISED_EVERY: Final = 4


class LaneStore(WorkerStore):
    """A store of a worker each of whose lanes has a deadline of its own."""

    deadlines: dict[Task, datetime]
    skews: dict[Task, int]
    """At which the deadline was given: tries are not measured by a clock that is set."""

    @property
    def last_try(self) -> datetime | None:
        return self.deadlines.get(self.world.current)

    @last_try.setter
    def last_try(self, last_try: datetime | None) -> None:
        if last_try is None:
            self.deadlines, self.skews = {}, {}
        else:
            self.deadlines[self.world.current] = last_try
            self.skews[self.world.current] = self.process.skew

    @property
    def tries_until(self) -> datetime | None:
        task, last_try = self.world.current, self.last_try
        return last_try and last_try + timedelta(seconds=self.process.skew - self.skews[task])


class PollingWorker(BeatingWorker, QueueWorker):
    """What `onejob work` is."""

    def __init__(self, shared: Shared, skew: int, size: int, replaced: Callable[[], None] = lambda: None) -> None:
        """`replaced` is called when it dies."""
        super().__init__(shared, skew)
        self.replaced = replaced
        self.cut_off()
        world, clock, jitter = self.world, self.clock, self.world.chance.random
        self.store = LaneStore(
            *(world, self.plan, self.oracle, shared.backend, self, clock.now, self.crash_point, MAX_ANSWER_BYTES)
        )
        self.request_id = ""
        self.process_job = self.service(heartbeat=self.heartbeat).process
        self.visibility = VisibilityHeartbeat(self.try_to_hide, self, clock, RUNNER_LEASE + BEYOND_LEASE, self.threads)
        batches = WatchedBatches(
            factory=self.factory,
            process=self._process,
            queue=HeldQueue(self, self.visibility),
            events=self,
            crew=RealCrew(self, 1),
            notes=NOTES,
            clock=clock,
            jitter=jitter,
            retention=shared.backend.retention,
            margin=timedelta(seconds=MARGIN),
            grace=timedelta(0),
            reads=self._reads,
        )
        self.worker = PollWorker(
            batches=batches,
            receive=self._receive,
            visibility=self.visibility,
            deletions=Deletions(self.try_to_delete, self.visibility.let_go, self, clock, jitter, self.threads),
            events=self,
            pool=ThreadPool(size, self.threads),
            lease=RUNNER_LEASE,
            longest=LONGEST,
            clock=clock,
            jitter=jitter,
            helpers=[self.beating],
            threads=self.threads,
        )
        self.refused_at = -1_000
        self.mine: list[Delivered] = []
        self.batch: list[SentMessage] = []
        self.polled = Polled(0, [])

    def work(self) -> None:
        """Start, and look after what is missing."""
        self.worker.start()
        while not self.worker.stopping:
            self.world.pause(SUPERVISED_EVERY)
            self.worker.supervise()

    def stop(self, longest: int) -> None:
        """As after SIGTERM: wait so long at most, and end."""
        self.oracle.faults["stopped"] += 1
        self.worker.stop()
        left = self.worker.wait(timedelta(seconds=longest))
        if not (left or self.worker._receiving or self.worker._lanes):  # else its visibility ends by itself
            for one in self.mine:
                if not (one.is_done or one.is_told or one.is_broken):
                    self.oracle.fail(f"stopped, and {one.planned.name} is neither done nor given back")
        while self.unrecorded and not self.plan.hostile:
            self.world.pause(1)
        self.died_at = self.world.now
        self.shared.look_again()

    def died(self) -> None:
        self.shared.look_again()
        self.replaced()

    def _receive(self, number: int, /) -> ReceivedMessages:
        queue, world = self.shared.queue, self.world
        if self.queue_fails():
            raise QueueUnavailableError(REFUSED)
        batch = queue.receive(number)
        if not batch:
            visible = queue.next_visible()
            world.pause(POLL if visible is None else min(POLL, max(1, visible - world.now)))
            batch = queue.receive(number)
        queue.hide(batch, int((RUNNER_LEASE + BEYOND_LEASE).total_seconds()))
        polled = Polled(world.now, [sent.receives for sent in batch])
        messages, request_id = [self.message(sent) for sent in batch], f"request-{next(self.shared.number)}"
        if self.queue_fails():
            raise QueueUnavailableError("received, and the answer is lost")
        self.batch, self.polled, self.request_id = batch, polled, request_id
        return ReceivedMessages(messages, request_id)

    def _reads(self) -> None:
        self.parsing_point()
        began = self.clock.now()
        received = self.deliveries.received(self.batch, began, self.request_id, polled=self.polled)
        for one in received:
            one.is_extended = self.refused_at < self.world.now - POLL
        self.mine += received

    def _process(self, job: Job, *, lease: timedelta, deadline: datetime | None, delivery: Delivery) -> Outcome:
        one = self.deliveries.known[delivery.message_id or "", delivery.receives]
        self.deliveries.begins(one, self.clock.now())
        assert deadline is not None
        self.store.last_try = deadline - timedelta(seconds=MARGIN)
        return self.unless_not_alone(one, self.process_job(job, lease=lease, deadline=deadline, delivery=delivery))

    def try_to_hide(self, timeouts: Sequence[tuple[Message, int]], /) -> list[tuple[Message, str]]:
        """An extension of the visibility heartbeat's."""
        if self.queue_fails():
            for message, _ in timeouts:
                self.deliveries.of(message).is_extended = False
            return [(message, REFUSED) for message, _ in timeouts]
        for message, seconds in timeouts:
            sent = self.shared.queue.by_receipt(message.receipt_handle)
            if sent is not None:
                self.deliveries.extended(message)
                sent.visible_at = self.world.now + seconds
        self.oracle.faults["extended"] += 1
        return []

    def deletes(self, receipt: str) -> None:
        super().deletes(receipt)
        self.shared.look_again()

    def hang(self, attempt: Attempt, seen: AttemptSeen) -> None:
        """Past its longest time. In a calm world it asks then whether it may go on."""
        self.world.pause(HANGS)
        if not self.plan.hostile:
            self.stop_if_lost(attempt, seen)

    def thread_is_refused(self) -> bool:
        is_refused = super().thread_is_refused()
        if is_refused:  # perhaps the one that extends
            self.refused_at = self.world.now
            for one in self.mine:
                one.is_extended = False
        return is_refused

    # What `PollEvents` adds.

    def receive_failed(self, error: QueueUnavailableError, again_in: timedelta) -> None:
        self.oracle.faults["receive failed"] += 1

    def visibility_limit_reached(self, message: Message, since: datetime) -> None:
        self.oracle.fail(f"{message.message_id} was held for twelve hours")

    def waits_to_run_alone(self, message: Message, longest: timedelta) -> None:
        self.oracle.faults["waited to run alone"] += 1

    def put_off(self, message: Message) -> None:
        self.oracle.faults["put off, since others ran on"] += 1
        self.deliveries.decided(self.deliveries.of(message), Failed(Failure.NOT_ALONE), self.clock.now())

    def worker_error(self, messages: Sequence[Message], error: BaseException) -> None:
        if not isinstance(error, Interrupted):
            self.oracle.fail(f"unexpected {type(error).__name__}: {error}")
        for message in messages:
            self.deliveries.of(message).is_broken = True
