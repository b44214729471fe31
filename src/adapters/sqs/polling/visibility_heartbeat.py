"""Keeps messages invisible while this worker holds them: a few threads extend them all, ten in a request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message
from adapters.sqs.polling.ports import PollEvents, TryToHide
from adapters.sqs.ports import Queue
from adapters.sqs.queue import BATCH
from adapters.sqs.visibility import LONGEST_INVISIBLE
from adapters.threads.due import DueHeap
from adapters.threads.periodic import Periodic
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.ports.clock import Clock, Moment

BEATS_PER_TIMEOUT: Final = 3
"""Two extensions may fail before a message is visible."""

LAST_EXTENSION: Final = LONGEST_INVISIBLE - timedelta(minutes=1)
"""From the receive. SQS refuses an extension beyond 12 hours, by its own clock."""

GONE: Final = frozenset({"ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"})
"""The message is visible, deleted, or another receiver's: SQS will not hide it for this receipt again."""

THREADS: Final = 4
"""At most: while one request hangs, other messages are extended."""


@dataclass(slots=True, eq=False)
class _Held:
    message: Message
    since: Moment
    bound: timedelta | None = None
    """On the monotonic clock: where its attempt's time ends, it is extended no further."""

    @property
    def end(self) -> timedelta:
        last = self.since.monotonic + LAST_EXTENSION
        return last if self.bound is None else min(last, self.bound)


class VisibilityHeartbeat:
    """Thread-safe, and a `Helper`. `timeout` is what messages were received with.

    A failing extension is told, and tried again in half the time.
    """

    name = "visibility"

    def __init__(
        self,
        try_to_hide: TryToHide,
        events: PollEvents,
        clock: Clock,
        timeout: timedelta,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._try_to_hide = try_to_hide
        self._events = events
        self._clock = clock
        self._timeout = timeout
        self._interval = timeout / BEATS_PER_TIMEOUT
        self._held: dict[str, _Held] = {}
        self._waiting: DueHeap[_Held] = DueHeap()
        self._answered = threads.condition()
        self._asked: set[str] = set()
        """Receipts in requests that are under way; `_answered` guards it."""
        self._periodic: Periodic[list[_Held]] = Periodic(
            self.name,
            due=self._waiting.first_due,
            take=self._take,
            work=self._extend,
            clock=clock,
            threads=threads,
            most=THREADS,
        )

    def hold(self, messages: Iterable[Message], since: Moment) -> None:
        """Extend these, received at that moment, until they are let go."""
        due = since.monotonic + self._interval
        with self._periodic.changed:
            for message in messages:
                self._forget(message.receipt_handle)
                held = self._held[message.receipt_handle] = _Held(message, since)
                self._waiting.push(held, due)
            self._periodic.expect(due)  # without a thread they wait until one can be had

    def bound(self, message: Message, end: timedelta | None) -> None:
        """Extend this one no further than to that time of the monotonic clock; None: for as long as it is held."""
        with self._periodic.changed:
            held = self._held.get(message.receipt_handle)
            if held is not None:
                held.bound = end

    def let_go(self, messages: Iterable[Message]) -> None:
        """When this returns, nothing extends them any more: an extension that landed later would undo what is set."""
        handles = {message.receipt_handle for message in messages}
        with self._periodic.changed:
            for handle in handles:
                self._forget(handle)
        with self._answered:
            self._answered.wait_for(lambda: not handles & self._asked)

    def supervise(self) -> bool:
        return self._periodic.supervise()

    def is_healthy(self) -> bool:
        return self._periodic.is_healthy()

    def beat(self) -> None:
        """Extend what is due, in the caller's thread, and what would be due soon."""
        self._periodic.work_off()

    def _forget(self, handle: str) -> None:
        held = self._held.pop(handle, None)
        if held is not None:
            self._waiting.discard(held)

    def _take(self) -> list[_Held] | None:
        now, first = self._clock.monotonic(), self._waiting.first_due()
        if first is None or first > now:
            return None
        taken: list[_Held] = []
        while len(taken) < BATCH and (held := self._waiting.pop(now + self._interval / 2)) is not None:
            taken.append(held)
        with self._answered:
            self._asked |= {held.message.receipt_handle for held in taken}
        return taken

    def _extend(self, batch: list[_Held]) -> None:
        now = self._clock.monotonic()
        try:
            with self._periodic.changed:
                held = [one for one in batch if self._is_held(one)]
                over = [one for one in held if self._seconds(one, now) <= 0]
                for one in over:
                    self._forget(one.message.receipt_handle)
            for one in over:
                if one.end != one.bound:
                    self._events.visibility_limit_reached(one.message, one.since.wall)
            asked = [one for one in held if one not in over]
            refused = self._ask([(one.message, self._seconds(one, now)) for one in asked]) if asked else {}
            self._note(asked, refused, now)
        finally:
            with self._answered:
                self._asked -= {one.message.receipt_handle for one in batch}
                self._answered.notify_all()

    def _ask(self, timeouts: list[tuple[Message, int]]) -> dict[str, str]:
        try:
            return {message.receipt_handle: error for message, error in self._try_to_hide(timeouts)}
        except Exception as error:  # what nobody foresaw: the thread serves other messages too
            return {message.receipt_handle: type(error).__name__ for message, _ in timeouts}

    def _note(self, asked: list[_Held], refused: dict[str, str], now: timedelta) -> None:
        told = []
        with self._periodic.changed:
            for held in asked:
                error = refused.get(held.message.receipt_handle)
                if not self._is_held(held):  # it was deleted meanwhile
                    continue
                if error is not None:
                    told.append(error)
                if error is not None and error.rpartition(".")[2] in GONE:
                    self._forget(held.message.receipt_handle)
                else:
                    self._waiting.push(held, now + (self._interval if error is None else self._interval / 2))
        if told:
            self._events.settling_failed(visibilities=told)

    def _is_held(self, held: _Held) -> bool:
        return self._held.get(held.message.receipt_handle) is held

    def _seconds(self, held: _Held, now: timedelta) -> int:
        return int(min(self._timeout, held.end - now).total_seconds())


class HeldQueue:
    """A `Queue` of held messages: what is given another visibility is let go first."""

    def __init__(self, queue: Queue, heartbeat: VisibilityHeartbeat) -> None:
        self._queue = queue
        self._heartbeat = heartbeat

    def dead_letter(self, letter: DeadLetter) -> None:
        self._queue.dead_letter(letter)

    def delete(self, messages: Sequence[Message]) -> list[str]:
        return self._queue.delete(messages)

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        self._heartbeat.let_go([message for message, _ in timeouts])
        return self._queue.set_visibility(timeouts)
