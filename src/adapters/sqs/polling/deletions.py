"""Deletes what is done: at once, as many messages in a request as have gathered, and again where SQS fails."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from typing import Final

from adapters.sqs.message import Message
from adapters.sqs.polling.ports import PollEvents, TryToDelete
from adapters.sqs.polling.visibility_heartbeat import GONE
from adapters.sqs.queue import BATCH
from domain.backoff import backoff
from domain.ports.clock import Clock

TRIES: Final = 8
FIRST_PAUSE: Final = timedelta(milliseconds=200)
LONGEST_PAUSE: Final = timedelta(seconds=10)
"""Half a minute in all, at most. A message that is not deleted then comes back, and is skipped: its job is done."""


@dataclass(order=True, slots=True)
class _Deletion:
    due: datetime
    number: int
    message: Message = field(compare=False)
    tries: int = field(default=0, compare=False)


class Deletions:
    """Thread-safe; its thread is started at first use. `gone` is told the messages that are deleted or given up."""

    def __init__(
        self,
        try_to_delete: TryToDelete,
        gone: Callable[[Iterable[Message]], None],
        events: PollEvents,
        clock: Clock,
        jitter: Callable[[], float],
    ) -> None:
        self._try_to_delete = try_to_delete
        self._gone = gone
        self._events = events
        self._clock = clock
        self._jitter = jitter
        self._waiting: list[_Deletion] = []
        self._unfinished = 0
        self._numbers = count()
        self._changed = Condition()
        self._thread: Thread | None = None

    def add(self, message: Message) -> None:
        """Delete it soon."""
        with self._changed:
            heappush(self._waiting, _Deletion(self._clock.now(), next(self._numbers), message))
            self._unfinished += 1
            if self._thread is None:
                self._thread = Thread(target=self._run, name="onejob-deletions", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def finish(self, seconds: float) -> bool:
        """Wait until nothing is left to delete, but no longer than that."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._unfinished, seconds)

    def work_off(self) -> None:
        """Ask for what is due, once."""
        now = self._clock.now()
        with self._changed:
            due: list[_Deletion] = []
            while self._waiting and len(due) < BATCH and self._waiting[0].due <= now:
                due.append(heappop(self._waiting))
        if due:
            self._delete(due)

    def _delete(self, due: list[_Deletion]) -> None:
        try:
            refused = {
                message.receipt_handle: error for message, error in self._try_to_delete([one.message for one in due])
            }
        except Exception as error:  # what nobody foresaw: the thread serves other messages too
            refused = {one.message.receipt_handle: type(error).__name__ for one in due}
        again, given_up = [], []
        for one in due:
            error_name = refused.get(one.message.receipt_handle)
            one.tries += 1
            if error_name is not None and error_name.rpartition(".")[2] not in GONE and one.tries < TRIES:
                again.append(one)
            elif error_name is not None:
                given_up.append(error_name)
        if given_up:
            self._events.settling_failed(deletions=given_up)
        self._gone([one.message for one in due if one not in again])
        with self._changed:
            for one in again:
                one.due = self._clock.now() + backoff(one.tries, FIRST_PAUSE, LONGEST_PAUSE, self._jitter)
                heappush(self._waiting, one)
            self._unfinished -= len(due) - len(again)
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            self.work_off()
            with self._changed:
                due = self._waiting[0].due if self._waiting else None
                self._changed.wait(None if due is None else max(0.0, (due - self._clock.now()).total_seconds()))
