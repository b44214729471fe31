"""A batch of messages from event to answer: in lanes, within the deadline, each message settled once.

    outcome                          message
    ------------------------------------------------------------------------------------------------------
    Executed, Skipped                done
    Rejected, unreadable, too old    sent to the dead-letter queue, then done; not done while that fails
    Deferred                         not done; visible again after 1, 2, 4, ... s, at the latest when that lease is over
    Failed                           not done; visible again after its backoff
    not started                      not done; visible again within 1 to 10 s (also where the claim took too long)

A body is read once for its key, and its payload is dropped; each attempt reads a payload of its own. A FIFO queue's is
read at its turn.

A job in whose life a worker died runs alone (`domain.service`): after everything else of its batch has ended and left
the queue, and lane by lane. Should it end the process too, no other message has a claim. A worker that polls runs such
a lane when its other lanes have ended (`polling.worker`).

A lane is the records of one key (standard queue) or of one message group (FIFO). The first record of a lane that is
not done ends it; the rest goes back with that record.

A Lambda hands over a batch and deletes what is done (`run`). A worker that polls starts each lane by itself and deletes
each message as it is done (`lanes`, `run_lane`, `give_back`); the table is the same.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from adapters.sqs.dead_letter import DeadLetter, make_dead_letter
from adapters.sqs.entry import Ack, BatchEntry, Content, Invalid, NothingToDo, Retry, Unreadable, in_lanes
from adapters.sqs.envelope import NothingToDoError, unwrap
from adapters.sqs.message import Message
from adapters.sqs.notes import Notes
from adapters.sqs.ports import BatchEvents, Crew, Queue, QueueUnavailableError
from adapters.sqs.visibility import soon, timeout_seconds, visible_again
from domain.errors import InvalidJobError, StoreUnavailableError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.clock import Clock
from domain.service import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsBatchProcessor:
    """Handles the batches of one worker. `grace` is added to a lease that ends with its invocation, for clocks that
    differ; nothing starts with less than `margin` left; messages older than `retention` are refused, since their
    record may be gone. `notes` tells which age was written by a worker or an operator.
    """

    factory: JobFactory
    process: Process
    queue: Queue
    events: BatchEvents
    crew: Crew
    notes: Notes
    clock: Clock
    jitter: Callable[[], float]
    retention: timedelta
    margin: timedelta
    grace: timedelta

    def run(self, messages: Sequence[Message], *, invocation_end: datetime, request_id: str) -> list[str]:
        """Handle a batch; the ids of the messages that are not done, in order.

        Does not raise for a message, and does not return while an operation runs: a thread that outlives its
        invocation would wake up in the next one. What an operation raises beyond `Exception` is raised again,
        after everything else has been settled.
        """
        invocation = _Invocation(self.clock.now(), invocation_end, request_id)
        last_start = invocation_end - self.margin
        if invocation.began >= last_start:
            self.events.no_time_to_start(len(messages))
        entries = self._entries(messages)
        if len(entries) == 1:
            return self._run_alone(entries, invocation)
        lanes = in_lanes(entries)
        beside = replace(invocation, is_alone=len(lanes) == 1, not_alone=[])
        error = self._run_beside(lanes, entries, beside)
        while error is None and beside.not_alone and self.clock.now() < last_start:
            self._settle(entries, invocation, delete=True)
            self.events.flush()
            # any of them: the one that kills is not to be the first each time
            lane = beside.not_alone.pop(int(self.jitter() * len(beside.not_alone)))
            error = self._run_beside([lane], entries, invocation)
        self._return_unstarted(entries)
        self._settle(entries, invocation, delete=error is not None)
        if error is not None:
            raise error
        return _not_done(entries)

    def _run_beside(
        self, lanes: Sequence[Sequence[BatchEntry]], entries: Sequence[BatchEntry], invocation: "_Invocation"
    ) -> BaseException | None:
        """Run these lanes of the batch to their end, side by side; what one of them raised."""
        running = self.crew.start([partial(self._run_lane, lane, invocation) for lane in lanes])
        all_ended = running.wait(invocation.end - self.margin)
        if not all_ended:
            self._return_unstarted(entries)
        while not all_ended:  # the time-out may come at any moment: what has ended is settled at once
            self._settle(entries, invocation, delete=True)
            self.events.flush()
            all_ended = running.wait_for_next()
        return running.error()

    def _run_alone(self, entries: Sequence[BatchEntry], invocation: "_Invocation") -> list[str]:
        """A message that is the whole batch, in the caller's thread: there is nothing else to settle while it runs."""
        self._run_lane(entries, invocation)
        self._return_unstarted(entries)
        self._settle(entries, invocation, delete=False)
        return _not_done(entries)

    def lanes(self, messages: Iterable[Message]) -> list[list[BatchEntry]]:
        """For `run_lane`: what was received, in its lanes."""
        return in_lanes(self._entries(messages))

    def run_lane(
        self,
        lane: Sequence[BatchEntry],
        *,
        end: datetime,
        lease: timedelta,
        request_id: str,
        done: Callable[[Message], None],
        longest: timedelta | None = None,
        on_start: Callable[[Message, datetime], None] = lambda _message, _deadline: None,
        is_alone: bool = True,
    ) -> Sequence[BatchEntry]:
        """Handle one lane in the caller's thread. `done` is told each message that may be deleted, as soon as it may;
        the rest is given its visibility. A claim is exclusive for `lease`, which the service's heartbeat renews;
        nothing starts with less than the margin left to `end`. An attempt may run for `longest`, and the margin
        follows to write its answer; `on_start` is told when that is over, before the attempt begins.

        Return what is left of the lane where its next job must run alone and `is_alone` is False: it is to be run
        again with nothing beside it, or given back.

        Does not raise for a message. What an operation raises beyond `Exception` is raised again; its message comes
        back when its visibility ends.
        """
        invocation = _Invocation(self.clock.now(), end, request_id, lease, done, longest, on_start, is_alone)
        left: Sequence[BatchEntry] = ()
        try:
            self._run_lane(lane, invocation)
            left = [entry for rest in invocation.not_alone for entry in rest]
        finally:
            self._return_unstarted(lane[: len(lane) - len(left)])
            self._settle(lane, invocation, delete=False)
        return left

    def give_back(self, lanes: Iterable[Sequence[BatchEntry]]) -> None:
        """Return every unstarted message of these lanes to the queue with visibility 0. Thread-safe."""
        self._give_back(lanes, lambda _head: Retry(self.clock.now()))

    def put_off(self, lanes: Iterable[Sequence[BatchEntry]]) -> None:
        """Return lanes that cannot run alone here; each comes back after its first message's backoff. Thread-safe."""
        self._give_back(lanes, lambda head: self._retry(head, Failed(Failure.NOT_ALONE)))

    def _give_back(self, lanes: Iterable[Sequence[BatchEntry]], back: Callable[[Message], Retry]) -> None:
        timeouts = []
        for lane in lanes:
            taken = [entry for entry in lane if entry.try_start()]
            if not taken:
                continue
            end = back(taken[0].message)
            for entry in taken:
                entry.settled = True  # before its lane can see where it ended, and tell the queue too
                entry.end = end
            now = self.clock.now()
            timeouts += [(entry.message, timeout_seconds(end.visible_at, now, now)) for entry in taken]
        errors = self.queue.set_visibility(timeouts) if timeouts else []
        if errors:
            self.events.settling_failed(visibilities=errors)

    def _entries(self, messages: Iterable[Message]) -> list[BatchEntry]:
        return [BatchEntry(message, None if message.is_fifo else self._read(message)) for message in messages]

    def _read(self, message: Message) -> Content:
        try:
            job = self.factory.waiting_job(partial(unwrap, message.body))
            is_stale = self._is_stale(message.sent_at)
        except NothingToDoError:
            return NothingToDo()
        except InvalidJobError as error:
            return Invalid(Rejected(error.reason, error.detail))
        except Exception as error:
            return Unreadable(error)
        return Invalid(Rejected("stale"), job) if is_stale else job

    def _is_stale(self, sent: datetime | None) -> bool:
        return sent is not None and self.clock.now() - sent > self.retention

    def _run_lane(self, lane: Sequence[BatchEntry], invocation: "_Invocation") -> None:
        for number, entry in enumerate(lane):
            if self.clock.now() >= invocation.end - self.margin or not entry.try_start():
                return
            entry.end = self._handle(entry, invocation)
            if entry.end is None:
                entry.undo_start()
                invocation.not_alone.append(lane[number:])
                return
            if isinstance(entry.end, Retry):
                for behind in lane[number + 1 :]:
                    if behind.try_start():
                        behind.end = entry.end
                return
            invocation.done(entry.message)

    def _handle(self, entry: BatchEntry, invocation: "_Invocation") -> Ack | Retry | None:
        """None: not run, since it is to be alone."""
        message = entry.message
        try:
            return self._settlement(entry, self._outcome(entry, invocation), invocation)
        except Exception as error:
            self.events.crashed(message, error)
            is_away = isinstance(error, StoreUnavailableError)
            failure = Failure.STORE_UNAVAILABLE if is_away else Failure.UNEXPECTED
            return self._retry(message, Failed(failure, type(error).__name__))

    def _outcome(self, entry: BatchEntry, invocation: "_Invocation") -> Outcome | None:
        if entry.content is None:
            entry.content = self._read(entry.message)
        content = entry.content
        if isinstance(content, Job) and self._is_stale(self.notes.first_sent(entry.message)):
            content = Invalid(Rejected("stale"), content)
        match content:
            case Job() as job:
                lease = invocation.end + self.grace - self.clock.now()
                deadline = invocation.end
                if invocation.longest is not None:
                    deadline = min(deadline, self.clock.now() + invocation.longest + self.margin)
                if invocation.lease is not None:
                    lease = min(invocation.lease, deadline - self.clock.now())
                invocation.on_start(entry.message, deadline)
                delivery = replace(entry.message.delivery, is_alone=invocation.is_alone)
                return self.process(job, lease=lease, deadline=deadline, delivery=delivery)
            case Invalid(rejected, job):
                self.events.rejected_unread(entry.message, job, rejected)
                return rejected
            case NothingToDo():
                self.events.test_event(entry.message)
                return None
            case Unreadable(error):
                raise error
            case _:
                assert_never(content)

    def _settlement(self, entry: BatchEntry, outcome: Outcome | None, invocation: "_Invocation") -> Ack | Retry | None:
        message = entry.message
        match outcome:
            case Failed(Failure.NOT_ALONE):
                return None
            case Executed() | Skipped() | None:
                return Ack()
            case Deferred() | Failed():
                return self._retry(message, outcome)
            case Rejected():
                try:
                    self.queue.dead_letter(self._letter(entry, outcome, invocation.request_id))
                except QueueUnavailableError as error:
                    self.events.dead_letter_failed(message, error)
                    return self._retry(message, Failed(Failure.UNEXPECTED))
                except StoreUnavailableError as error:
                    self.events.dead_letter_failed(
                        message, QueueUnavailableError(f"its note cannot be signed: {error}")
                    )
                    return self._retry(message, Failed(Failure.STORE_UNAVAILABLE))
                return Ack()
            case _:
                assert_never(outcome)

    def _letter(self, entry: BatchEntry, rejected: Rejected, request_id: str) -> DeadLetter:
        """With a note that is signed; where there is no job, nothing depends on it, and no store keeps it from leaving.

        Raises `StoreUnavailableError`.
        """
        try:
            return make_dead_letter(entry.message, rejected, request_id, entry.operation, self.notes)
        except StoreUnavailableError:
            if entry.operation is not None:
                raise
            return make_dead_letter(entry.message, rejected, request_id)

    def _retry(self, message: Message, outcome: Deferred | Failed) -> Retry:
        return Retry(visible_again(outcome, message.receives, self.clock.now(), self.jitter))

    def _return_unstarted(self, entries: Iterable[BatchEntry]) -> None:
        for entry in entries:
            if entry.try_start():
                entry.end = Retry(soon(self.clock.now(), self.jitter))

    def _settle(self, entries: Iterable[BatchEntry], invocation: "_Invocation", *, delete: bool) -> None:
        """Tell the queue, once for each message, what has been decided so far."""
        decided = [entry for entry in entries if entry.end is not None and not entry.settled]
        now = self.clock.now()
        done = [entry.message for entry in decided if isinstance(entry.end, Ack)]
        timeouts = [
            (entry.message, timeout_seconds(entry.end.visible_at, now, invocation.began))
            for entry in decided
            if isinstance(entry.end, Retry)
        ]
        deletions = self.queue.delete(done) if delete and done else []
        visibilities = self.queue.set_visibility(timeouts) if timeouts else []
        for entry in decided:
            entry.settled = True
        if deletions or visibilities:
            self.events.settling_failed(deletions=deletions, visibilities=visibilities)


@dataclass(frozen=True, slots=True)
class _Invocation:
    began: datetime
    end: datetime
    request_id: str
    lease: timedelta | None = None
    """None: until the end, and the grace."""
    done: Callable[[Message], None] = lambda _message: None
    longest: timedelta | None = None
    on_start: Callable[[Message, datetime], None] = lambda _message, _deadline: None
    is_alone: bool = True
    """Whether nothing of this worker runs beside its lane."""
    not_alone: list[Sequence[BatchEntry]] = field(default_factory=list)
    """Where that is False: what is left of lanes that are to run alone."""


def _not_done(entries: Iterable[BatchEntry]) -> list[str]:
    return [entry.message.message_id for entry in entries if not isinstance(entry.end, Ack)]
