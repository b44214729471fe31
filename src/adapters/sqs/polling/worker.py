"""Polls a queue for as long as it is let: receives what can start, runs each lane in a thread, deletes what is done.

    a message                        is
    ------------------------------------------------------------------------------------------------------
    received                         invisible, and kept so by the visibility heartbeat, up to SQS's 12 hours
    done                             deleted at once, and again where that fails
    not done                         back as the batch code says (see `batch`)
    not started when told to stop    back at once
    running when time to stop ends   left alone: its lease lapses, its visibility ends, another worker takes over

A lane takes one thread, so that one long job holds up neither its neighbours nor their deletion.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Condition, Thread
from typing import Final

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.message import Message
from adapters.sqs.place import Done, Place
from adapters.sqs.polling.deletions import Deletions
from adapters.sqs.polling.ports import PollEvents, Receive
from adapters.sqs.polling.visibility_heartbeat import VisibilityHeartbeat
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import BATCH
from adapters.sqs.visibility import LONGEST_INVISIBLE
from domain.backoff import backoff
from domain.ports.clock import Clock

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=30)

LOOKS_UP_SECONDS: Final = 1.0
"""While no thread is free, or SQS is left alone, the loop shows so often that it lives."""

GATHERING_SECONDS: Final = 0.01
"""Where a thread is free, so long is waited for others: a request for ten messages costs no more than one for one.
Measured: jobs of 0 to 200 ms were no slower for it, and took a half to a quarter of the requests.
"""


@dataclass(kw_only=True)
class PollWorker:
    """One worker. `threads` run at most `concurrency` lanes; `lease` is how long a claim lasts without a heartbeat."""

    batches: SqsBatchProcessor
    receive: Receive
    visibility: VisibilityHeartbeat
    deletions: Deletions
    events: PollEvents
    threads: Executor
    concurrency: int
    lease: timedelta
    clock: Clock
    jitter: Callable[[], float]

    moved_at: datetime = field(init=False)
    """When the receive loop was last seen to live."""
    stopping: bool = field(default=False, init=False)
    _lanes: list[Sequence[Place]] = field(default_factory=list, init=False)
    _receiving: bool = field(default=False, init=False)
    _changed: Condition = field(default_factory=Condition, init=False)

    def __post_init__(self) -> None:
        self.moved_at = self.clock.now()

    def start(self) -> None:
        """Receive from now on."""
        self._receiving = True
        Thread(target=self._poll, name="onejob-receiver", daemon=True).start()

    def stop(self) -> None:
        """Receive no more, and give back what has not started. Not for signal handlers: it waits for locks and SQS."""
        with self._changed:
            self.stopping = True
            lanes = list(self._lanes)
            self._changed.notify_all()
        self.batches.give_back(lanes)

    def wait(self, until: datetime) -> list[Message]:
        """After `stop`: wait until everything has ended, but no longer than that; the messages still in work."""
        with self._changed:
            self._changed.wait_for(lambda: not self._lanes and not self._receiving, self._seconds_to(until))
        self.deletions.finish(self._seconds_to(until))
        with self._changed:
            return [place.message for lane in self._lanes for place in lane if place.end is None]

    def _poll(self) -> None:
        failures = 0
        while not self.stopping:
            self.moved_at = self.clock.now()
            free = self._wait_for_threads()
            if not free:
                continue
            since = self.clock.now()
            try:
                received = self.receive(free)
                failures = 0
                if received.messages:
                    self._take(received.messages, received.request_id, since)
            except QueueUnavailableError as error:
                failures += 1
                self._pause(error, failures)
            except Exception as error:
                failures += 1
                self.events.broke((), error)
                self._pause(None, failures)
        with self._changed:
            self._receiving = False
            self._changed.notify_all()

    def _wait_for_threads(self) -> int:
        """How many messages to receive; 0 if nothing is free for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopping or self._free, LOOKS_UP_SECONDS)
            enough = min(BATCH, self.concurrency)
            if 0 < self._free < enough:
                self._changed.wait_for(lambda: self.stopping or self._free >= enough, GATHERING_SECONDS)
            return 0 if self.stopping else min(enough, self._free)

    @property
    def _free(self) -> int:
        return self.concurrency - len(self._lanes)

    def _take(self, messages: Sequence[Message], request_id: str, since: datetime) -> None:
        self.visibility.hold(messages, since)
        lanes = self.batches.lanes(messages)
        with self._changed:
            is_late = self.stopping
            if not is_late:
                self._lanes += lanes
        if is_late:
            self.batches.give_back(lanes)
            return
        for lane in lanes:
            self.threads.submit(self._run, lane, request_id, since)

    def _run(self, lane: Sequence[Place], request_id: str, since: datetime) -> None:
        try:
            self.batches.run_lane(
                lane,
                end=since + LONGEST_INVISIBLE,
                lease=self.lease,
                request_id=request_id,
                done=self.deletions.add,
            )
        except BaseException as error:  # as the table of `JobService` says: its lease lapses
            self.events.broke([place.message for place in lane if place.end is None], error)
        finally:
            self.visibility.let_go([place.message for place in lane if not isinstance(place.end, Done)])
            with self._changed:
                self._lanes = [other for other in self._lanes if other is not lane]
                self._changed.notify_all()

    def _pause(self, error: QueueUnavailableError | None, failures: int) -> None:
        pause = backoff(failures, FIRST_PAUSE, LONGEST_PAUSE, self.jitter)
        if error is not None:
            self.events.receive_failed(error, pause)
        again_at = self.clock.now() + pause
        with self._changed:
            while not self.stopping and (left := self._seconds_to(again_at)) > 0:
                self.moved_at = self.clock.now()
                self._changed.wait(min(left, LOOKS_UP_SECONDS))

    def _seconds_to(self, moment: datetime) -> float:
        return max(0.0, (moment - self.clock.now()).total_seconds())
