"""Polls a queue for as long as it is let: receives what can start, runs each lane in a thread, deletes what is done.

    a message                        is
    ------------------------------------------------------------------------------------------------------
    received                         invisible, and kept so by the visibility heartbeat, up to SQS's 12 hours
    done                             deleted at once, and again where that fails
    not done                         back as the batch code says (see `batch`)
    not started when told to stop    back at once
    running when time to stop ends   left alone: its lease lapses, its visibility ends, another worker takes over
    running after its longest time   left alone likewise; what waits behind it in its lane goes back at once
    of a job with which a worker     run alone: nothing more is received, and when the other lanes have ended it runs;
    died                             back after its backoff where they take too long, or one of them does not end

A lane takes one thread, so that one long job holds up neither its neighbours nor their deletion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.entry import Ack, BatchEntry
from adapters.sqs.message import Message
from adapters.sqs.polling.deletions import Deletions
from adapters.sqs.polling.lanes import Lane, Staff
from adapters.sqs.polling.ports import PollEvents, Receive
from adapters.sqs.polling.visibility_heartbeat import VisibilityHeartbeat
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import BATCH
from adapters.sqs.visibility import LONGEST_INVISIBLE
from adapters.threads.asking import Refusals
from adapters.threads.periodic import Helper
from adapters.threads.pool import ThreadPool
from adapters.threads.seam import SYSTEM_THREADS, Condition, Running, ThreadRefusedError, Threads
from domain.backoff import backoff
from domain.ports.clock import Clock, Moment

FIRST_PAUSE: Final = timedelta(seconds=1)
LONGEST_PAUSE: Final = timedelta(seconds=30)

BEYOND_DEADLINE: Final = timedelta(seconds=2)
"""So much longer than an attempt's time is its message invisible: then its lease is over too."""

FIRST_PATIENCE: Final = timedelta(seconds=30)
LONGEST_PATIENCE: Final = timedelta(hours=1)
"""So long is waited for other lanes to end, doubling with each receive of the job that is to run alone: its turn comes
beside long jobs too, and a single receive does not stop the worker for long.
"""

LIVENESS_INTERVAL_SECONDS: Final = 1.0
"""Interval between two signs of life of the receive loop while it waits."""

GATHERING_SECONDS: Final = 0.01
"""Where a thread is free, so long is waited for others: a request for ten messages costs no more than one for one.
Measured: jobs of 0 to 200 ms were no slower for it, and took a half to a quarter of the requests.
"""


@dataclass(kw_only=True)
class PollWorker:
    """One worker. `pool` runs at most as many lanes as its size; `lease` is how long a claim lasts without a heartbeat,
    `longest` how long an attempt may take (None: up to SQS's 12 hours). `helpers` are what it cannot work without:
    while one of them is missing nothing is received.
    """

    batches: SqsBatchProcessor
    receive: Receive
    visibility: VisibilityHeartbeat
    deletions: Deletions
    events: PollEvents
    pool: ThreadPool
    lease: timedelta
    clock: Clock
    jitter: Callable[[], float]
    longest: timedelta | None = None
    helpers: Sequence[Helper] = ()
    threads: Threads = SYSTEM_THREADS

    moved_at: timedelta = field(init=False)
    """When the receive loop was last seen to live, on the monotonic clock."""
    stopping: bool = field(default=False, init=False)
    _lanes: list[Lane] = field(default_factory=list, init=False)
    _receiving: bool = field(default=False, init=False)
    _is_started: bool = field(default=False, init=False)
    _receiver: Running | None = field(default=None, init=False)
    _refusals: Refusals = field(init=False)
    _staff: Staff = field(init=False)
    _changed: Condition = field(init=False)

    def __post_init__(self) -> None:
        self.moved_at = self.clock.monotonic()
        self._changed = self.threads.condition()
        self._refusals = Refusals(self.clock, self.jitter)
        self._staff = Staff(self.pool, self.clock, self.jitter, partial(self.events.threads_refused, "jobs"))

    def start(self) -> None:
        """Receive from now on."""
        self._is_started = True
        self.supervise()

    def supervise(self) -> None:
        """Start again what is missing. To be called about once a second, from one thread."""
        if not self._is_started or self.stopping:
            return
        self._start_receiver()
        self._staff.keep(len(self._lanes))
        for helper in self._helpers:
            helper.supervise()

    def is_healthy(self) -> bool:
        """Whether it does its work: nothing that it needs is missing, and not every thread is held by an attempt whose
        time is over. True before it starts, and when it stops.
        """
        if not self._is_started or self.stopping:
            return True
        is_receiving = self._receiver is not None and self._receiver.is_alive()
        return is_receiving and not self._is_stuck() and all(helper.is_healthy() for helper in self._helpers)

    def stop(self) -> None:
        """Receive no more, and give back what has not started. Not for signal handlers: it waits for locks and SQS."""
        with self._changed:
            self.stopping = True
            lanes = list(self._lanes)
            self._lanes = self._running
            self._changed.notify_all()
        self.batches.give_back([lane.entries for lane in lanes])

    def wait(self, longest: timedelta) -> list[Message]:
        """After `stop`: wait until everything has ended, but no longer than that; the messages still in work."""
        until = self.clock.monotonic() + longest
        with self._changed:
            self._changed.wait_for(lambda: not self._lanes and not self._receiving, self._seconds_to(until))
        self.deletions.finish(self._seconds_to(until))
        with self._changed:
            return [entry.message for lane in self._lanes for entry in lane.entries if entry.end is None]

    @property
    def _helpers(self) -> Sequence[Helper]:
        return (self.visibility, self.deletions, *self.helpers)

    def _start_receiver(self) -> None:
        with self._changed:
            if (self._receiver is not None and self._receiver.is_alive()) or not self._refusals.is_over:
                return
            self._receiving = True
            try:
                self._receiver = self.threads.start(self._poll, "onejob-receiver")
                self._refusals.clear()
                return
            except ThreadRefusedError:
                self._receiver, self._receiving = None, False
                self._refusals.add()
        self.events.threads_refused("receiver", 0)

    def _is_stuck(self) -> bool:
        with self._changed:
            overdue = sum(lane.is_overdue for lane in self._lanes)
            return self._staff.is_missing or (overdue == len(self._lanes) and 0 < overdue >= self._staff.most)

    def _poll(self) -> None:
        try:
            self._poll_until_stopped()
        finally:
            with self._changed:
                self._receiving = False
                self._changed.notify_all()

    def _poll_until_stopped(self) -> None:
        failures = 0
        while not self.stopping:
            self.moved_at = self.clock.monotonic()
            self._look_for_overdue()
            missing = [helper.name for helper in self._helpers if not helper.supervise()]
            if missing:
                failures += 1
                for name in missing:
                    self.events.threads_refused(name, 0)
                self._pause(None, failures)
                continue
            free = self._wait_for_threads()
            if not free:
                self._see_to_waiting()
                continue
            since = Moment.of(self.clock)
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
                self.events.worker_error((), error)
                self._pause(None, failures)

    def _wait_for_threads(self) -> int:
        """How many messages to receive; 0 if nothing is free for a while."""
        with self._changed:
            self._changed.wait_for(
                lambda: self.stopping or self._free > 0 or self._may_run_alone(), LIVENESS_INTERVAL_SECONDS
            )
            enough = min(BATCH, self.pool.size)
            if 0 < self._free < enough:
                self._changed.wait_for(lambda: self.stopping or self._free >= enough, GATHERING_SECONDS)
            free = 0 if self.stopping else min(enough, self._free)
            busy = len(self._lanes)
        return min(free, self._staff.threads(busy + free) - busy) if free > 0 else 0

    @property
    def _free(self) -> int:
        """How many lanes may begin. None while one runs alone within its time, or waits to."""
        is_closed = any((lane.is_alone and not lane.is_overdue) or lane.waits_until is not None for lane in self._lanes)
        return 0 if is_closed else self._staff.most - len(self._lanes)

    @property
    def _waiting(self) -> list[Lane]:
        return [lane for lane in self._lanes if lane.waits_until is not None]

    @property
    def _running(self) -> list[Lane]:
        return [lane for lane in self._lanes if lane.waits_until is None]

    def _may_run_alone(self) -> bool:
        """Whether lanes that are to run alone wait for nothing any more."""
        return bool(self._waiting) and not self._running

    def _see_to_waiting(self) -> None:
        """Run one of the lanes that are to run alone, if nothing else runs; give them back if that takes too long."""
        if self._may_run_alone():
            self._run_alone()
            return
        now = self.clock.monotonic()
        with self._changed:
            waiting = self._waiting
            is_in_vain = any(lane.is_overdue for lane in self._running) or any(lane.is_over(now) for lane in waiting)
            if self.stopping or not waiting or not is_in_vain:
                return
            self._lanes = self._running
        for lane in waiting:
            self.events.put_off(lane.entries[0].message)
        self.batches.put_off([lane.entries for lane in waiting])

    def _run_alone(self) -> None:
        has_thread = self._staff.threads(1) > 0
        with self._changed:
            waiting = self._waiting
            if self.stopping or not waiting:
                return
            if not has_thread:
                self._changed.wait(LIVENESS_INTERVAL_SECONDS)
                return
            # any of them: the one that kills is not to be the first each time
            lane = waiting[int(self.jitter() * len(waiting))]
            lane.run_alone()
        self._staff.submit(partial(self._run, lane))

    def _look_for_overdue(self) -> None:
        """What waits behind an attempt whose time is over is given back: others may run it after that one's job."""
        now = self.clock.monotonic()
        with self._changed:
            found = [lane for lane in self._lanes if lane.ends_at is not None and lane.ends_at <= now]
            new = [lane for lane in found if not lane.is_overdue]
            for lane in new:
                lane.is_overdue = True
        if new:
            self.batches.give_back([lane.entries for lane in new])

    def _take(self, messages: Sequence[Message], request_id: str, since: Moment) -> None:
        self.visibility.hold(messages, since)
        try:
            lanes = [Lane(entries, request_id, since) for entries in self.batches.lanes(messages)]
        except BaseException:  # or they would stay invisible for as long as this worker lives
            self.visibility.let_go(messages)
            raise
        with self._changed:
            is_late = self.stopping
            if not is_late:
                self._lanes += lanes
        if is_late:
            self.batches.give_back([lane.entries for lane in lanes])
            return
        for lane in lanes:
            self._staff.submit(partial(self._run, lane))

    def _run(self, lane: Lane) -> None:
        left: Sequence[BatchEntry] = ()
        try:
            left = self.batches.run_lane(
                lane.entries,
                end=lane.since.wall + LONGEST_INVISIBLE,
                lease=self.lease,
                longest=self.longest,
                request_id=lane.request_id,
                on_start=partial(self._began, lane),
                done=self.deletions.add,
                is_alone=lane.is_alone or self.pool.size == 1,
            )
        except BaseException as error:  # as the table of `JobService` says: its lease lapses
            self.events.worker_error([entry.message for entry in lane.entries if entry.end is None], error)
        finally:
            ended = lane.entries[: len(lane.entries) - len(left)]
            self.visibility.let_go([entry.message for entry in ended if not isinstance(entry.end, Ack)])
            if not (left and self._waits(lane, left)):
                self._ended(lane)

    def _waits(self, lane: Lane, left: Sequence[BatchEntry]) -> bool:
        """Whether what is left of the lane waits to run alone: not when the worker stops."""
        message = left[0].message
        longest = min(FIRST_PATIENCE * 2 ** min(message.receives - 1, 10), LONGEST_PATIENCE)
        self.visibility.bound(message, None)
        with self._changed:
            is_late = self.stopping
            if not is_late:
                lane.wait_alone(left, self.clock.monotonic() + longest)
                self._changed.notify_all()
        if is_late:
            self.batches.give_back([left])
        else:
            self.events.waits_to_run_alone(message, longest)
        return not is_late

    def _ended(self, lane: Lane) -> None:
        with self._changed:
            self._lanes = [other for other in self._lanes if other is not lane]
            self._changed.notify_all()

    def _began(self, lane: Lane, message: Message, deadline: datetime) -> None:
        self.visibility.bound(message, lane.began(deadline, self.clock) + BEYOND_DEADLINE)

    def _pause(self, error: QueueUnavailableError | None, failures: int) -> None:
        pause = backoff(failures, FIRST_PAUSE, LONGEST_PAUSE, self.jitter)
        if error is not None:
            self.events.receive_failed(error, pause)
        again_at = self.clock.monotonic() + pause
        with self._changed:
            while not self.stopping and (left := self._seconds_to(again_at)) > 0:
                self.moved_at = self.clock.monotonic()
                self._changed.wait(min(left, LIVENESS_INTERVAL_SECONDS))

    def _seconds_to(self, moment: timedelta) -> float:
        return max(0.0, (moment - self.clock.monotonic()).total_seconds())
