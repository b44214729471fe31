"""Deletes what is done: at once, as many messages in a request as have gathered, and again where SQS fails."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from adapters.sqs.message import Message
from adapters.sqs.polling.ports import PollEvents, TryToDelete
from adapters.sqs.polling.visibility_heartbeat import GONE
from adapters.sqs.queue import BATCH
from adapters.threads.due import DueHeap
from adapters.threads.periodic import Periodic
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.backoff import backoff
from domain.ports.clock import Clock

TRIES: Final = 8
FIRST_PAUSE: Final = timedelta(milliseconds=200)
LONGEST_PAUSE: Final = timedelta(seconds=10)
"""Half a minute in all, at most. A message that is not deleted then comes back, and is skipped: its job is done."""

THREADS: Final = 2
"""At most: while one request hangs, others are deleted."""


@dataclass(slots=True, eq=False)
class _Deletion:
    message: Message
    tries: int = 0


class Deletions:
    """Thread-safe, and a `Helper`. `gone` is told the messages that are deleted or given up."""

    name = "deletions"

    def __init__(
        self,
        try_to_delete: TryToDelete,
        gone: Callable[[Iterable[Message]], None],
        events: PollEvents,
        clock: Clock,
        jitter: Callable[[], float],
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._try_to_delete = try_to_delete
        self._gone = gone
        self._events = events
        self._clock = clock
        self._jitter = jitter
        self._waiting: DueHeap[_Deletion] = DueHeap()
        self._unfinished = 0
        self._ended = threads.condition()
        self._periodic: Periodic[list[_Deletion]] = Periodic(
            self.name,
            due=self._waiting.first_due,
            take=self._take,
            work=self._delete,
            clock=clock,
            threads=threads,
            most=THREADS,
        )

    def add(self, message: Message) -> None:
        """Delete it soon."""
        with self._ended:
            self._unfinished += 1
        self._wait_until(self._clock.monotonic(), [_Deletion(message)])

    def finish(self, seconds: float) -> bool:
        """Wait until nothing is left to delete, but no longer than that."""
        with self._ended:
            return self._ended.wait_for(lambda: not self._unfinished, seconds)

    def supervise(self) -> bool:
        return self._periodic.supervise()

    def is_healthy(self) -> bool:
        return self._periodic.is_healthy()

    def work_off(self) -> None:
        """Ask for what is due, in the caller's thread."""
        self._periodic.work_off()

    def _wait_until(self, due: timedelta, deletions: Iterable[_Deletion]) -> None:
        with self._periodic.changed:
            for one in deletions:
                self._waiting.push(one, due)
            self._periodic.expect(due)  # without a thread they wait until one can be had

    def _take(self) -> list[_Deletion] | None:
        now = self._clock.monotonic()
        due: list[_Deletion] = []
        while len(due) < BATCH and (one := self._waiting.pop(now)) is not None:
            due.append(one)
        return due or None

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
        for one in again:
            pause = backoff(one.tries, FIRST_PAUSE, LONGEST_PAUSE, self._jitter)
            self._wait_until(self._clock.monotonic() + pause, [one])
        with self._ended:
            self._unfinished -= len(due) - len(again)
            self._ended.notify_all()
