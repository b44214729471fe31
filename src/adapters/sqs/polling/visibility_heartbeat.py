"""Keeps messages invisible while this worker holds them: one thread extends them all, ten in a request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import batched
from threading import Condition, Thread
from typing import Final

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message
from adapters.sqs.polling.ports import PollEvents, TryToHide
from adapters.sqs.ports import Queue
from adapters.sqs.queue import BATCH
from adapters.sqs.visibility import LONGEST_INVISIBLE
from domain.ports.clock import Clock

BEATS_PER_TIMEOUT: Final = 3
"""Two extensions may fail before a message is visible."""

LAST_EXTENSION: Final = LONGEST_INVISIBLE - timedelta(minutes=1)
"""From the receive. SQS refuses an extension beyond 12 hours, by its own clock."""

GONE: Final = frozenset({"ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight"})
"""The message is visible, deleted, or another receiver's: SQS will not hide it for this receipt again."""


@dataclass(slots=True, eq=False)
class _Held:
    message: Message
    since: datetime
    due: datetime


class VisibilityHeartbeat:
    """Thread-safe; its thread is started at first use. `timeout` is what messages were received with.

    A failing extension is told, and tried again in half the time.
    """

    def __init__(self, try_to_hide: TryToHide, events: PollEvents, clock: Clock, timeout: timedelta) -> None:
        self._try_to_hide = try_to_hide
        self._events = events
        self._clock = clock
        self._timeout = timeout
        self._interval = timeout / BEATS_PER_TIMEOUT
        self._held: dict[str, _Held] = {}
        self._asked: frozenset[str] = frozenset()
        self._changed = Condition()
        self._thread: Thread | None = None

    def hold(self, messages: Iterable[Message], since: datetime) -> None:
        """Extend these, received at that moment, until they are let go."""
        with self._changed:
            for message in messages:
                self._held[message.receipt_handle] = _Held(message, since, since + self._interval)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="onejob-visibility", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def let_go(self, messages: Iterable[Message]) -> None:
        """When this returns, nothing extends them any more: an extension that landed later would undo what is set."""
        handles = {message.receipt_handle for message in messages}
        with self._changed:
            for handle in handles:
                self._held.pop(handle, None)
            self._changed.wait_for(lambda: not handles & self._asked)

    def beat(self) -> None:
        """Extend what is due, and what soon would be."""
        now = self._clock.now()
        with self._changed:
            due = [held for held in self._held.values() if held.due <= now + self._interval / 2]
            if not any(held.due <= now for held in due):
                return
        for batch in batched(due, BATCH, strict=False):
            self._extend(batch)

    def _extend(self, batch: Iterable[_Held]) -> None:
        now = self._clock.now()
        with self._changed:
            wanted = {held.message.receipt_handle: held for held in batch if self._is_held(held)}
            over = {handle for handle, held in wanted.items() if self._seconds(held, now) <= 0}
            for handle in over:
                del self._held[handle]
            self._asked = frozenset(wanted.keys() - over)
        try:
            for handle in over:
                self._events.held_too_long(wanted[handle].message, wanted[handle].since)
            asked = [wanted[handle] for handle in self._asked]
            refused = self._ask([(held.message, self._seconds(held, now)) for held in asked]) if asked else {}
            self._note(asked, refused, now)
        finally:
            with self._changed:
                self._asked = frozenset()
                self._changed.notify_all()

    def _ask(self, timeouts: list[tuple[Message, int]]) -> dict[str, str]:
        try:
            return {message.receipt_handle: error for message, error in self._try_to_hide(timeouts)}
        except Exception as error:  # what nobody foresaw: the thread serves other messages too
            return {message.receipt_handle: type(error).__name__ for message, _ in timeouts}

    def _note(self, asked: list[_Held], refused: dict[str, str], now: datetime) -> None:
        told = []
        with self._changed:
            for held in asked:
                error = refused.get(held.message.receipt_handle)
                held.due = now + (self._interval if error is None else self._interval / 2)
                if error is not None and self._is_held(held):  # or it was deleted meanwhile
                    told.append(error)
                    if error.rpartition(".")[2] in GONE:
                        del self._held[held.message.receipt_handle]
        if told:
            self._events.settling_failed(visibilities=told)

    def _is_held(self, held: _Held) -> bool:
        return self._held.get(held.message.receipt_handle) is held

    def _seconds(self, held: _Held, now: datetime) -> int:
        return int(min(self._timeout, held.since + LAST_EXTENSION - now).total_seconds())

    def _run(self) -> None:
        while True:
            self.beat()
            with self._changed:
                due = min((held.due for held in self._held.values()), default=None)
                self._changed.wait(None if due is None else max(0.0, (due - self._clock.now()).total_seconds()))


class HeldQueue:
    """A `Queue` of held messages: what is given another visibility is let go first."""

    def __init__(self, queue: Queue, heartbeat: VisibilityHeartbeat) -> None:
        self._queue = queue
        self._heartbeat = heartbeat

    def bury(self, letter: DeadLetter) -> None:
        self._queue.bury(letter)

    def delete(self, messages: Sequence[Message]) -> list[str]:
        return self._queue.delete(messages)

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        self._heartbeat.let_go([message for message, _ in timeouts])
        return self._queue.set_visibility(timeouts)
