"""The queue as a worker has it: failing, watched, and switching before each request lands and after it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.entry import BatchEntry
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from domain.outcome import Failed, Failure, Outcome
from tests.simulation.deliveries import Delivered
from tests.simulation.plan import FAULTS_UNTIL
from tests.simulation.sqs import SentMessage
from tests.simulation.workers import Shared, Worker
from tests.simulation.world import moment

ARN = "arn:aws:sqs:us-east-1:000000000000:jobs"
REFUSED = "told to fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedBatches(SqsBatchProcessor):
    """The real batch code. `reads` is called before messages are read, and is a place to die."""

    reads: Callable[[], None]

    def _entries(self, messages: Iterable[Message]) -> list[BatchEntry]:
        self.reads()
        return SqsBatchProcessor._entries(self, messages)


class QueueWorker(Worker):
    """A worker with the `Queue` port."""

    def __init__(self, shared: Shared, skew: int) -> None:
        super().__init__(shared, skew)
        self.deliveries = self.oracle.deliveries

    def message(self, sent: SentMessage) -> Message:
        """As it is received."""
        planned = sent.planned
        return Message(
            message_id=planned.name,
            receipt_handle=sent.receipt,
            body=sent.body,
            queue_arn=f"{ARN}.fifo" if self.plan.fifo else ARN,
            receives=sent.receives,
            sent_at=moment(planned.sent_at),
            group_id=planned.group,  # on a standard queue a tenant, which orders nothing
            attributes=sent.attributes,
        )

    def unless_not_alone(self, one: Delivered, outcome: Outcome) -> Outcome:
        """Not to run beside others is no end: nothing ran."""
        if outcome == Failed(Failure.NOT_ALONE):
            one.is_running = False
            self.oracle.faults["put off to run alone"] += 1
        return outcome

    def dead_letter(self, letter: DeadLetter) -> None:
        if self.queue_fails():
            raise QueueUnavailableError(REFUSED)
        one = self.deliveries.of(letter.message)
        self.deliveries.buried(one, letter)
        self.shared.dead_letter(one.planned, letter)
        if self.queue_fails():
            raise QueueUnavailableError("it landed, the answer is lost")

    def delete(self, messages: Sequence[Message]) -> list[str]:
        return [error for _, error in self.try_to_delete(messages)]

    def try_to_delete(self, messages: Sequence[Message]) -> list[tuple[Message, str]]:
        self.deliveries.told_to_delete(messages)
        if self.queue_fails():
            return [(message, REFUSED) for message in messages]
        for message in messages:
            self.deletes(message.receipt_handle)
        return []

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        self.deliveries.told_to_hide(timeouts, self.clock.now(), self.suspended_at)
        if self.queue_fails():
            return [REFUSED] * len(timeouts)
        for message, seconds in timeouts:
            sent = self.shared.queue.by_receipt(message.receipt_handle)
            if sent is not None:
                sent.visible_at = self.world.now + seconds
        self.is_looked_at_again()
        return []

    def is_looked_at_again(self) -> None:
        """Something may be visible."""
        self.shared.look_again()

    def deletes(self, receipt: str) -> None:
        """As SQS does."""
        message = self.shared.queue.by_receipt(receipt)
        if message is not None:
            self.deliveries.deleted(message)
            message.is_gone = True

    def queue_fails(self) -> bool:
        """Whether a request to the queue fails just now."""
        world = self.world
        world.pause()
        self.crash_point()
        if self.is_cut_off("queue"):
            self.oracle.faults["cut off from the queue"] += 1
            return True
        fails = world.now < FAULTS_UNTIL and world.chance.random() * 1000 < self.plan.queue_faults
        if fails:
            self.oracle.faults["queue"] += 1
        return fails
