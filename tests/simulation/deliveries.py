"""What must hold of each message that a sandbox is handed: when it is back, why it is buried, that it is settled."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil
from typing import Final

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, MAC
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.events import Trace
from tests.simulation.plan import MARGIN, Plan, PlannedMessage
from tests.simulation.sqs import SentMessage
from tests.simulation.world import Process, Violation, World, moment

HELD_FOR: Final = 40
"""Ticks for which a worker that polls keeps a message at least, if it does not settle it."""

OUTAGE: Final = (60, 90)
UNSTARTED: Final = (1, 10)


@dataclass(frozen=True, slots=True)
class Polled:
    """What a worker that polls received, and at which tick it became invisible: before the answer was read."""

    at: int
    receives: Sequence[int]


@dataclass(slots=True)
class Delivered:
    """One receive of a message. `ahead` is what stands before it in its lane of the batch, `began` its invocation's
    start on the clock of the sandbox, `ended_at` the tick at which it was decided. `is_told`: the queue was asked to
    delete it, or to show it again. `is_polled`: received by a worker that polls; `is_broken`: interrupted there.
    """

    sent: SentMessage
    receives: int
    lane: object
    ahead: "Delivered | None"
    began: datetime
    request_id: str
    is_running: bool = False
    outcome: Outcome | None = None
    is_done: bool = False
    decided: datetime | None = None
    ended_at: int | None = None
    is_told: bool = False
    is_polled: bool = False
    holder: Process | None = None
    received_at: int = 0
    extended_at: int = 0
    is_extended: bool = True
    """False once an extension has failed."""

    is_broken: bool = False

    @property
    def planned(self) -> PlannedMessage:
        return self.sent.planned


@dataclass(slots=True)
class Deliveries:
    """By message and receive. The rules of a batch, its lanes and its letters."""

    world: World
    plan: Plan
    reasons: Counter[str] = field(default_factory=Counter)
    known: dict[tuple[str, int], Delivered] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Names of messages that were done or buried."""

    def fail(self, what: str) -> None:
        raise Violation(what)

    def received(
        self, batch: Sequence[SentMessage], began: datetime, request_id: str, *, polled: "Polled | None" = None
    ) -> list[Delivered]:
        """By an invocation; or by a worker that polls, which may have slept since."""
        last: dict[object, Delivered] = {}
        received = []
        for number, sent in enumerate(batch):
            lane = self._lane(sent.planned, began)
            receives = sent.receives if polled is None else polled.receives[number]
            one = Delivered(sent, receives, lane, last.get(lane), began, request_id, is_polled=polled is not None)
            if polled is None:
                self._is_not_held(sent, receives)
            else:
                one.holder = self.world.current.process
                one.received_at = one.extended_at = polled.at
            self.known[sent.planned.name, receives] = last[lane] = one
            received.append(one)
        return received

    def of(self, message: Message) -> Delivered:
        return self.known[message.message_id, message.receives]

    def is_stale(self, planned: PlannedMessage, began: datetime) -> bool:
        """Older than the retention when its batch was read, by the clock of who read it."""
        return (began - moment(planned.born_at)).total_seconds() > self.plan.retention

    def _lane(self, planned: PlannedMessage, began: datetime) -> object:
        if self.plan.fifo:
            return planned.group
        if not planned.is_job or self.is_stale(planned, began):
            return planned.name
        return planned.job.identity, planned.unknown_operation

    # What became of it.

    def begins(self, one: Delivered, now: datetime) -> None:
        one.is_running = True
        if not one.planned.is_job or self.is_stale(one.planned, one.began):
            self.fail(f"{one.planned.name} is no job, or too old for one, and was handled")
        if not one.is_polled and (now - one.began).total_seconds() >= self.plan.timeout - MARGIN:
            self.fail(f"{one.planned.name} was begun within the deadline margin")
        self._is_its_turn(one)

    def _is_its_turn(self, one: Delivered) -> None:
        """In a lane nothing begins before what is ahead of it is done."""
        if one.ahead is not None and not one.ahead.is_done:
            self.fail(f"{one.planned.name} began, and {one.ahead.planned.name} ahead of it in its lane is not done")

    def finished(self, trace: Trace, now: datetime) -> None:
        one = self.known.get((trace.delivery.message_id or "", trace.delivery.receives))
        if one is not None:
            one.is_running = False
            self.decided(one, trace.outcome, now)

    def decided(self, one: Delivered, outcome: Outcome, now: datetime) -> None:
        one.outcome, one.decided, one.ended_at = outcome, now, self.world.now
        if isinstance(outcome, Executed | Skipped):
            self._done(one)
            if self.plan.fifo and not self.plan.hostile:
                self._in_order(one.planned)

    def nothing_to_do(self, one: Delivered, now: datetime) -> None:
        if not one.planned.test_event:
            self.fail(f"{one.planned.name} was taken for S3's test event")
        self._is_its_turn(one)
        one.decided, one.ended_at = now, self.world.now
        self._done(one)

    def rejected_unread(self, one: Delivered, rejected: Rejected, now: datetime) -> None:
        """Before anything was looked up."""
        planned = one.planned
        is_right = planned.broken if rejected.reason == "not_json" else False
        if rejected.reason == "stale":
            is_stale = self.is_stale(planned, one.began) or self.is_stale(planned, now)  # a note is judged at the start
            is_right = planned.is_job and is_stale
        if not is_right:
            self.fail(f"{planned.name} was turned away as {rejected.reason}")
        self._is_its_turn(one)
        self.decided(one, rejected, now)

    def _done(self, one: Delivered) -> None:
        one.is_done = True
        self.ended.add(one.planned.name)

    def _in_order(self, mine: PlannedMessage) -> None:
        """Nothing of a FIFO group is done before what was sent before it has ended."""
        for other in self.plan.messages:
            if other.group == mine.group and other.sent_at < mine.sent_at and other.name not in self.ended:
                self.fail(f"{mine.name} was done before {other.name} of its group")

    # The dead-letter queue.

    def buried(self, one: Delivered, letter: DeadLetter) -> None:
        """The message as it was sent, and why it was given up."""
        rejected, planned = one.outcome, one.planned
        if not isinstance(rejected, Rejected):
            return self.fail(f"{planned.name} was buried as {rejected}")
        told = {**json.loads(letter.attributes[ATTRIBUTE]["StringValue"])}
        if not told.pop(MAC, None):
            self.fail(f"the letter of {planned.name} is not signed")
        wanted = {
            "reason": rejected.reason,
            "detail": rejected.detail,
            "error_type": rejected.error_type,
            "attempts": rejected.attempts,
            "receives": one.receives,
            "first_sent": round(moment(planned.born_at).timestamp() * 1000),
            "message_id": planned.name,
            "request_id": one.request_id,
            "operation": _operation(planned, rejected),
        }
        if told != wanted:
            self.fail(f"expected a letter that tells {wanted}, got {told}")
        if letter.message.body != one.sent.body:
            self.fail(f"the letter of {planned.name} has another body")
        self.reasons[rejected.reason] += 1
        self._done(one)
        return None

    def not_buried(self, one: Delivered, now: datetime) -> None:
        """As far as the worker knows: it may have landed."""
        one.is_done = False
        self.decided(one, Failed(Failure.UNEXPECTED), now)

    # The source queue.

    def deleted(self, message: SentMessage) -> None:
        if not self.known[message.planned.name, message.receives].is_done:
            self.fail(f"{message.planned.name} left the queue, neither done nor buried")

    def told_to_delete(self, messages: Sequence[Message]) -> None:
        for message in messages:
            one = self.of(message)
            if not one.is_polled:  # who polls deletes again what could not be deleted
                self._is_told(one)

    def extended(self, message: Message) -> None:
        """It is kept invisible. Nothing may do that once the queue was told when it is back."""
        one = self.of(message)
        one.extended_at = self.world.now
        if one.is_told:
            self.fail(f"{message.message_id} was given a time to be back, and extended then")

    def _is_not_held(self, sent: SentMessage, receives: int) -> None:
        """What a worker that polls has in work is received by no other while its extensions land."""
        one = self.known.get((sent.planned.name, receives - 1))
        if one is None or one.holder is None or one.is_told or one.is_done or one.is_broken or one.holder.dead:
            return
        is_over = self.world.now >= one.received_at + HELD_FOR
        if one.is_extended and one.holder.asleep_until <= one.extended_at and not is_over:
            self.fail(f"{one.planned.name} was received by another, and nothing kept its holder from an extension")

    def _is_told(self, one: Delivered) -> None:
        if one.is_told:
            self.fail(f"the queue was told twice what becomes of {one.planned.name}")
        one.is_told = True

    def told_to_hide(self, timeouts: Sequence[tuple[Message, int]], now: datetime, suspended_at: int) -> None:
        """All in one call, as they were decided. Who slept between the two comes later than it counted."""
        heads: dict[object, int] = {}
        for message, seconds in timeouts:
            one = self.of(message)
            self._is_told(one)
            if one.is_done:
                self.fail(f"{one.planned.name} is done and was sent back")
            if one.outcome is not None:
                assert one.ended_at is not None
                self._is_back_in_time(one, seconds, now, slept=suspended_at >= one.ended_at)
                heads[one.lane] = seconds
        for message, seconds in timeouts:
            one = self.of(message)
            if one.outcome is not None:
                continue
            one.ended_at = self.world.now
            head = heads.get(one.lane)
            is_given_back = one.is_polled and seconds == 0
            if head is None and not is_given_back and not UNSTARTED[0] <= seconds <= UNSTARTED[1]:
                self.fail(f"{one.planned.name} was not started, and is back after {seconds} s")
            if head is not None and seconds != head:
                self.fail(f"{one.planned.name} is back after {seconds} s, and the head of its lane after {head}")

    def _is_back_in_time(self, one: Delivered, seconds: int, now: datetime, *, slept: bool) -> None:
        assert one.decided is not None
        if one.is_polled and slept:  # or its clock was set
            return
        least, most = _bounds(one.outcome, one.receives, one.decided)
        after = (now - one.decided).total_seconds() + seconds
        if after < least or (seconds > 0 and after > most and not (slept or one.is_polled)):
            self.fail(f"{one.planned.name} is back after {after} s instead of {least} to {most}: {one.outcome}")

    # The end of an invocation.

    def all_settled(self, batch: Sequence[Delivered], how: str) -> None:
        """What was decided before this tick has been told to the queue; what still runs cannot be."""
        for one in batch:
            is_just_decided = one.ended_at == self.world.now
            if not (one.is_told or one.is_running or is_just_decided):
                self.fail(f"{one.planned.name} was decided or not started, and not settled before {how}")

    def returned(self, batch: Sequence[Delivered], failed: Sequence[str]) -> None:
        """Lambda reads the answer: the rest is deleted."""
        for one in batch:
            if one.planned.name in failed and not one.is_told:
                self.fail(f"{one.planned.name} goes back and nobody said when")


def _operation(planned: PlannedMessage, rejected: Rejected) -> str | None:
    if planned.broken:
        return None
    return "not_deployed" if planned.unknown_operation else "default"


def _bounds(outcome: Outcome | None, receives: int, decided: datetime) -> tuple[float, float]:
    """After how many seconds it may be back: at the least, at the most."""
    least, most = min(450, 5 * 2 ** min(receives - 1, 10)), min(900, 10 * 2 ** min(receives - 1, 10))
    match outcome:
        case Failed(Failure.STORE_UNAVAILABLE):
            return max(OUTAGE[0], least), max(OUTAGE[1], most)
        case Failed(Failure.NOT_STARTED):
            return UNSTARTED
        case Deferred(until, since):
            doubled = min(43_200, 2 ** min(receives - 1, 20))
            has_run = (decided - since).total_seconds() if since else 0
            lease = max(0, ceil((until - decided).total_seconds()) + 1, has_run / 2 if has_run > 960 else 0)
            return min(doubled / 2, lease), min(doubled, lease) + 1
        case _:
            return least, most
