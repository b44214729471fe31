"""The state machine: what becomes of one delivery of one job.

    seen at claim                                        outcome
    -----------------------------------------------------------------------------------------------------------
    no record; retention over; lease lapsed or released  run
    in progress, lease live                              Deferred(until)
    completed                                            Skipped(answer)
    live record, other fingerprint                       Rejected(payload_mismatch)
    unknown operation (nothing is claimed)               Failed(unknown_operation); Rejected from the 10th receive on
    runs of this life at the limit, redelivered message  released unrun, Rejected(attempts_exhausted)
    a worker died in this life, others run beside it     not run, Failed(not_alone): again when it is alone
    claimed, but the lease is over already               released unrun, Failed(lease_lost)
    claimed, but the margin before the deadline is gone  released unrun, Failed(not_started)
    claimed, but nothing would renew the lease           released unrun, Failed(not_started)
    the store cannot answer, after bounded retries       Failed(store_unavailable)

    after running                                        then                     outcome
    -----------------------------------------------------------------------------------------------------------
    returned, stored                                                              Executed(answer)
    returned or raised, someone else owns the record     nothing                  Failed(lease_lost)
    returned, cannot be written until the margin         nothing: it happened     Failed(completion_lost)
    raised PermanentError                                release, forget payload  Rejected(code)
    raised anything else, a BaseException too            release                  Failed(operation_raised)
    a signal ends the process, or it is killed           nothing                  propagates; the lease lapses

A `SystemExit`, a cancellation or a `KeyboardInterrupt` that no signal raised ends no process: it fails its own job, as
any other error does (`ends_process` tells them apart).

A rejection counts only when its release has landed; where that cannot be written it is Failed(store_unavailable): there
was no effect, so that nothing is lost by trying again. The heartbeat renews the lease until the record is written.

A run is counted when it is released. It is counted before it begins where it may end otherwise: once a worker has died
in this life of the job, and where it is the last run that the limit allows. So a new job costs two requests, and a
claim whose answer was lost never counts. The first run whose worker dies cannot be told from such a claim, and is not
counted: a job that kills its workers has one run more.

A job in whose life a worker died may be what killed it. It runs with nothing beside it, so that the next death is its
own alone: jobs beside it would lose runs, or have their effect twice. `not_alone` is no end, and no event: the caller
runs the delivery again. A worker that dies before it claims leaves no trace.

A redelivered message is looked up before it is claimed: a duplicate of a job that is done or runs costs one cheap read.
"""

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Final, Protocol, Self, assert_never

from domain.answer import Answer
from domain.attempt import Attempt
from domain.backoff import backoff
from domain.delivery import Delivery
from domain.errors import HeartbeatUnavailableError, LeaseLostError, PermanentError, StoreUnavailableError
from domain.job import Job
from domain.lease import Lease
from domain.life import Life
from domain.operation import Operation, Operations
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.clock import Clock, Moment
from domain.ports.events import JobEvents, Trace
from domain.ports.heartbeat import Heartbeat
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Busy, Claim, Claimable, ClaimAnswer, Completed, Mismatch, judge

UNKNOWN_OPERATION_RECEIVES: Final = 10
"""Producers deploy first: for so many receives an unknown operation may still become known."""

STORE_TRIES: Final = 3
FIRST_PAUSE: Final = timedelta(milliseconds=100)
LONGEST_PAUSE: Final = timedelta(seconds=2)


class Process(Protocol):
    """`JobService.process`, for what needs no more of it."""

    def __call__(self, job: Job, *, lease: timedelta, deadline: datetime | None, delivery: Delivery) -> Outcome: ...


def no_heartbeat(
    _lease: Lease, _length: timedelta, _until: datetime | None, _overdue: Callable[[], None]
) -> AbstractContextManager[None]:
    """For workers whose lease outlasts them, such as Lambda."""
    return nullcontext()


def no_signal(_error: BaseException) -> bool:
    """For workers whose operations run in threads: Python handles signals in the main thread only."""
    return False


@dataclass(slots=True)
class _Run:
    """One call of `process`, and what it has come to."""

    job: Job
    delivery: Delivery
    execution_id: str
    lease: timedelta
    began: Moment
    deadline: datetime | None
    last_try: timedelta | None
    """On the monotonic clock."""
    attempt: int | None = None
    error: BaseException | None = None

    @property
    def lease_end(self) -> datetime:
        return self.began.wall + self.lease


@dataclass(frozen=True, slots=True)
class _Count:
    """What the runs before an attempt mean for it, by the rule at the top, and what is counted at its end."""

    are_exhausted: bool
    first: Life | None
    """To be counted before it runs."""
    run: Life
    """At its release, where it ran."""
    unrun: Life

    @classmethod
    def of(cls, claim: Claim, delivery: Delivery, limit: int) -> Self:
        before, sent_at = claim.life, delivery.sent_at
        unrun = before.ended()
        if not delivery.counts_runs:
            return cls(are_exhausted=False, first=None, run=unrun, unrun=unrun)
        is_sent_anew = before.rejected_at is not None and sent_at is not None and sent_at > before.rejected_at
        life = before.anew() if is_sent_anew else before
        is_exhausted = life.runs >= limit and delivery.is_redelivery
        counted = life.counted()
        may_end_otherwise = before.unended > 1 or counted.runs >= limit
        return cls(is_exhausted, counted if may_end_otherwise else None, counted.ended(), unrun)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobService:
    """Runs jobs over a store. Thread-safe as far as its parts are.

    `new_id` gives a fresh execution id for each call, `jitter` a number in [0, 1). `max_attempts` bounds the runs
    of a job whose message keeps coming back (`domain.life`).
    `margin` is the time before a deadline that a last write may take.
    """

    store: IdempotencyStore
    operations: Operations
    events: JobEvents
    clock: Clock
    new_id: Callable[[], str]
    jitter: Callable[[], float]
    max_attempts: int
    margin: timedelta
    heartbeat: Heartbeat = no_heartbeat
    ends_process: Callable[[BaseException], bool] = no_signal
    """Whether a signal that ends this process raised it. That is no failure of the job during which it came."""

    def process(self, job: Job, *, lease: timedelta, deadline: datetime | None, delivery: Delivery) -> Outcome:
        """One delivery of one job, to its end. Returns for everything foreseeable.

        The claim is exclusive for `lease`; no try of a write starts later than `deadline` less the margin
        (None: one lease length after the operation returned).
        """
        began = Moment.of(self.clock)
        last_try = None if deadline is None else began.monotonic + (deadline - began.wall) - self.margin
        run = _Run(job, delivery, self.new_id(), lease, began, deadline, last_try)
        outcome = self._outcome(run)
        if outcome == Failed(Failure.NOT_ALONE):
            return outcome
        took = self.clock.monotonic() - began.monotonic
        self.events.finished(Trace(job, delivery, run.execution_id, run.attempt, outcome, took, run.error))
        return outcome

    def _outcome(self, run: _Run) -> Outcome:
        operation = self.operations.find(run.job.operation)
        if operation is None:
            given_up = run.delivery.receives >= UNKNOWN_OPERATION_RECEIVES
            return Rejected("unknown_operation") if given_up else Failed(Failure.UNKNOWN_OPERATION)
        try:
            seen = self._look_up(run) or self._claim(run)
        except StoreUnavailableError as error:
            run.error = error
            return Failed(Failure.STORE_UNAVAILABLE, type(error).__name__)
        match seen:
            case Acquired():
                run.attempt = seen.claim.attempt
                self._note_unverified(run.job, seen.verified)
                return self._acquired(run, operation, seen)
            case Busy(until, verified, since):
                self._note_unverified(run.job, verified)
                return Deferred(until, since)
            case Completed(answer, verified):
                self._note_unverified(run.job, verified)
                return Skipped(answer)
            case Mismatch():
                return Rejected("payload_mismatch")
            case Failed():
                return seen
            case _:
                assert_never(seen)

    def _look_up(self, run: _Run) -> Completed | Mismatch | Busy | Failed | None:
        """What an old copy of the record may decide. COMPLETED never changes; and who is told too late that a job runs
        only looks again.
        """
        if not run.delivery.is_redelivery:
            return None
        record = self._ask(lambda: self.store.find(run.job.key), run.last_try, STORE_TRIES)
        seen = judge(record, run.job, run.execution_id, self.clock.now())
        match seen:
            case Completed() | Busy():
                return seen
            case Mismatch() if record is not None and not record.in_progress:
                return seen
            case Claimable() if record is not None and not record.retention_is_over(self.clock.now()):
                return _beside_others(run.delivery, record.life.unended)
            case _:
                return None

    def _claim(self, run: _Run) -> ClaimAnswer:
        return self._ask(
            lambda: self.store.claim(run.job, owner=run.execution_id, lease=run.lease_end - self.clock.now()),
            run.last_try,
            STORE_TRIES,
        )

    def _acquired(self, run: _Run, operation: Operation, acquired: Acquired) -> Outcome:
        claim, last_error = acquired.claim, acquired.last_error or ""
        lease = Lease(claim, run.began, run.lease, self.clock)
        count = _Count.of(claim, run.delivery, self.max_attempts)
        if count.are_exhausted:
            detail = "" if last_error else "killed or timed out"
            rejected = Rejected("attempts_exhausted", detail, acquired.last_error, claim.attempt)
            return self._release(run, lease, last_error, rejected, count.unrun)
        if not_alone := _beside_others(run.delivery, claim.life.unended - 1):
            return self._release(run, lease, last_error, not_alone, count.unrun)
        if prevented := self._prevented(run, lease):
            return self._release(run, lease, last_error, prevented, count.unrun)
        try:
            with self.heartbeat(lease, run.lease, run.deadline, lambda: self.events.overdue(run.job, claim)):
                return self._held(run, operation, lease, count, last_error)
        except HeartbeatUnavailableError as error:
            run.error = error
            failed = Failed(Failure.NOT_STARTED, type(error).__name__)
            return self._release(run, lease, last_error, failed, count.unrun)

    def _prevented(self, run: _Run, lease: Lease) -> Failed | None:
        """Why the operation may not start any more: the claim, or the waiting for it, took too long."""
        if lease.lost():
            return Failed(Failure.LEASE_LOST)
        is_over = run.last_try is not None and self.clock.monotonic() >= run.last_try
        is_over_by_date = run.deadline is not None and self.clock.now() >= run.deadline - self.margin
        return Failed(Failure.NOT_STARTED) if is_over or is_over_by_date else None

    def _held(self, run: _Run, operation: Operation, lease: Lease, count: _Count, last_error: str) -> Outcome:
        """While the lease is renewed, until the record is written."""
        if count.first is not None:
            try:
                self._begin(run, lease.claim, count.first)
            except LeaseLostError as error:
                run.error = error
                return Failed(Failure.LEASE_LOST)
        if prevented := self._prevented(run, lease):
            return self._release(run, lease, last_error, prevented, count.unrun)
        return self._run(run, operation, lease, count)

    def _begin(self, run: _Run, claim: Claim, life: Life) -> None:
        """Count the run. Where that cannot be written it runs all the same: the claim is held."""
        with suppress(StoreUnavailableError):
            self._ask(lambda: self.store.begin(claim, life), run.last_try, STORE_TRIES)

    def _run(self, run: _Run, operation: Operation, lease: Lease, count: _Count) -> Outcome:
        claim = lease.claim
        last_try = None if run.deadline is None else run.deadline - self.margin
        attempt = Attempt(claim.attempt, claim.owner, last_try, lease.lost, claim.key, claim.epoch)
        try:
            value = operation.run(run.job.for_one_attempt(), attempt)
            _refuse_unrun(value)
        except PermanentError as error:
            run.error = error
            error_type = type(error).__name__
            code, detail = _short(error, "code", 100), _short(error, "detail", 300)
            rejected = Rejected(code, detail, error_type, claim.attempt)
            return self._release(run, lease, error_type, rejected, count.run, forget_payload=True)
        except BaseException as error:
            if self.ends_process(error):
                raise
            run.error = error
            failed = Failed(Failure.OPERATION_RAISED, type(error).__name__)
            return self._release(run, lease, type(error).__name__, failed, count.run)
        return self._complete(run, claim, self._answer(value))

    def _answer(self, value: object) -> Answer:
        """The effect has happened: whatever the value's own code raises, it is an answer that is omitted."""
        try:
            return Answer.of(value, self.store.max_answer_bytes)
        except BaseException as error:
            if self.ends_process(error):
                raise
            return Answer("null", f"unserializable: {type(error).__name__}")

    def _complete(self, run: _Run, claim: Claim, answer: Answer) -> Outcome:
        last_try = self.clock.monotonic() + run.lease if run.last_try is None else run.last_try
        try:
            self._ask(lambda: self.store.complete(claim, answer), last_try)
        except LeaseLostError as error:
            run.error = error
            return Failed(Failure.LEASE_LOST)
        except StoreUnavailableError as error:
            run.error = error
            return Failed(Failure.COMPLETION_LOST, type(error).__name__)
        return Executed(answer)

    def _release(
        self,
        run: _Run,
        lease: Lease,
        error_type: str,
        outcome: Rejected | Failed,
        life: Life,
        *,
        forget_payload: bool = False,
    ) -> Outcome:
        if isinstance(outcome, Rejected) and run.delivery.counts_runs:
            life = life.rejected(self.clock.now())
        raised = type(run.error).__name__ if run.error else None
        try:
            self._ask(
                lambda: self.store.release(lease.claim, error_type, forget_payload=forget_payload, life=life),
                run.last_try,
                STORE_TRIES,
            )
        except LeaseLostError:
            return Failed(Failure.LEASE_LOST, raised)
        except StoreUnavailableError as error:
            self.events.release_failed(run.job, error)
            if lease.refused:  # a renewal was told so: whoever has the job now answers for it
                return Failed(Failure.LEASE_LOST, raised)
            if isinstance(outcome, Rejected):
                run.error = error
                return Failed(Failure.STORE_UNAVAILABLE, raised or type(error).__name__)
        return outcome

    def _ask[T](self, question: Callable[[], T], last_try: timedelta | None, tries: int | None = None) -> T:
        """Ask the store, again after a jittered pause while tries and time allow.

        Whatever it raises beside `LeaseLostError` is no answer, and may have landed.
        """
        tried = 0
        while True:
            try:
                return question()
            except LeaseLostError:
                raise
            except Exception as error:
                tried += 1
                pause = backoff(tried, FIRST_PAUSE, LONGEST_PAUSE, self.jitter)
                if tried == tries or (last_try is not None and self.clock.monotonic() + pause > last_try):
                    if isinstance(error, StoreUnavailableError):
                        raise
                    raise StoreUnavailableError(type(error).__name__) from error
                self.clock.sleep(pause)

    def _note_unverified(self, job: Job, verified: bool) -> None:
        if not verified:
            self.events.fingerprint_unverified(job)


def _beside_others(delivery: Delivery, unended: int) -> Failed | None:
    """Why a job may not run here: so many attempts of its life nobody ended, and it is not alone."""
    return Failed(Failure.NOT_ALONE) if unended > 0 and not delivery.is_alone else None


def _short(error: PermanentError, name: str, longest: int) -> str:
    try:
        return str(getattr(error, name))[:longest]
    except BaseException:  # a property of the user's, which may raise what it likes
        return type(error).__name__


def _refuse_unrun(value: object) -> None:
    """A coroutine or a generator that never began is the operation itself, unrun: as an answer it would lose the job.

    A generator expression is no operation; like anything else that is not JSON, it is an answer that is omitted.
    """
    match value:
        case CoroutineType() if inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
            value.close()
        case GeneratorType() if value.gi_code.co_name != "<genexpr>":
            value.close()
        case AsyncGeneratorType() if value.ag_code.co_name != "<genexpr>":
            pass
        case _:
            return
    raise TypeError(f"the operation returned a {type(value).__name__} that was never run")
