"""The state machine, every row of its table."""

import asyncio
import concurrent.futures
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from adapters.stores.memory import MemoryIdempotencyStore
from domain.answer import Answer
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import ForeignRecordError, HeartbeatUnavailableError, PermanentError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.lease import Lease
from domain.operation import OperationFunction, Operations
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.record import RELEASED, Acquired, Busy, Claim, Completed, Record, Status
from domain.service import STORE_TRIES, JobService, no_signal
from tests.support.clock import FakeClock
from tests.support.faulty_store import FaultyStore
from tests.support.jobs import RecordedEvents, answer_ok, counting_ids, job, operations

LEASE = timedelta(seconds=60)
RETENTION = timedelta(days=1)
MARGIN = timedelta(seconds=5)
REDELIVERED = Delivery(receives=2, message_id="m")


class Bench:
    """A service over a memory store, with everything in reach."""

    def __init__(
        self,
        run: OperationFunction = answer_ok,
        *,
        known: Operations | None = None,
        max_attempts: int = 5,
        ends_process: Callable[[BaseException], bool] = no_signal,
        **faults: list[object],
    ) -> None:
        self.runs: list[Attempt] = []
        self.clock = FakeClock()
        self.memory = MemoryIdempotencyStore(self.clock, RETENTION)
        self.store = FaultyStore(self.memory, **faults)  # type: ignore[arg-type]
        self.events = RecordedEvents()

        def counted(job: Job, attempt: Attempt) -> object:
            self.runs.append(attempt)
            return run(job, attempt)

        self.service = JobService(
            store=self.store,
            operations=known or operations(counted),
            events=self.events,
            clock=self.clock,
            new_id=counting_ids(),
            jitter=lambda: 0.0,
            max_attempts=max_attempts,
            margin=MARGIN,
            ends_process=ends_process,
        )

    def deliver(self, job: Job | None = None, receives: int = 1, *, within: float | None = 30) -> Outcome:
        return self.service.process(
            job or JOB,
            lease=LEASE,
            deadline=None if within is None else self.clock.now() + timedelta(seconds=within),
            delivery=Delivery(receives, "m"),
        )

    def record(self) -> Record:
        record = self.memory.find(JOB.key)
        assert record is not None
        return record


JOB = job("1", amount=10)


def fail(error: BaseException) -> Callable[[Job, Attempt], object]:
    def run(job: Job, attempt: Attempt) -> object:
        raise error

    return run


# Seen at claim.


def test_a_new_job_runs_and_its_answer_is_stored() -> None:
    bench = Bench()
    outcome = bench.deliver()
    assert outcome == Executed(Answer.of({"job_id": "1", "execution_id": "run-1"}, None))
    assert bench.record().answer == outcome.answer
    assert bench.record().status is Status.COMPLETED
    assert bench.store.calls == {"claim": 1, "complete": 1}


def test_a_duplicate_is_answered_from_the_store_and_equals_the_first_answer() -> None:
    bench = Bench()
    first = bench.deliver()
    assert isinstance(first, Executed)
    assert bench.deliver() == Skipped(first.answer)
    assert len(bench.runs) == 1


def test_a_redelivered_duplicate_costs_one_read() -> None:
    bench = Bench()
    first = bench.deliver()
    assert isinstance(first, Executed)
    bench.store.calls.clear()
    assert bench.deliver(receives=2) == Skipped(first.answer)
    assert bench.store.calls == {"find": 1}


def test_a_redelivered_duplicate_of_a_running_job_costs_one_read_and_no_refused_write() -> None:
    bench = Bench()
    bench.memory.claim(JOB, owner="another", lease=LEASE)
    assert bench.deliver(receives=2) == Deferred(bench.clock.now() + LEASE)
    assert bench.store.calls == {"find": 1}


def test_an_old_copy_of_a_running_job_only_looks_again() -> None:
    bench = Bench()
    bench.memory.claim(JOB, owner="another", lease=LEASE)
    old = bench.record()
    bench.memory.complete(Claim(JOB.key, "another", 1), Answer("1"))
    bench.store.find = lambda key: old  # type: ignore[method-assign]
    assert isinstance(bench.deliver(receives=2), Deferred)
    bench.clock.advance(seconds=61)
    assert bench.deliver(receives=3) == Skipped(Answer("1"))


def test_an_old_copy_of_a_running_job_with_another_payload_rejects_nothing() -> None:
    bench = Bench()
    bench.memory.claim(job("1", amount=11), owner="another", lease=LEASE)
    old = bench.record()
    bench.memory.release(Claim(JOB.key, "another", 1), "PermanentError", forget_payload=True)
    bench.store.find = lambda key: old  # type: ignore[method-assign]
    assert isinstance(bench.deliver(receives=2), Executed)


def test_a_redelivered_job_that_is_not_done_costs_three_round_trips() -> None:
    bench = Bench()
    bench.deliver(receives=2)
    assert bench.store.calls == {"find": 1, "claim": 1, "complete": 1}


def test_a_running_job_is_deferred_to_the_end_of_its_lease() -> None:
    bench = Bench()
    since = bench.clock.now()
    bench.memory.claim(JOB, owner="another", lease=LEASE)
    bench.clock.advance(seconds=20)
    for receives in (1, 2):
        outcome = bench.deliver(receives=receives)
        assert outcome == Deferred(since + LEASE)
        assert isinstance(outcome, Deferred)
        assert outcome.since == since
    assert not bench.runs


def test_a_lapsed_lease_is_taken_over_with_the_next_attempt() -> None:
    bench = Bench()
    bench.memory.claim(JOB, owner="killed", lease=LEASE)
    bench.clock.advance(seconds=61)
    assert isinstance(bench.deliver(receives=2), Executed)
    assert [attempt.number for attempt in bench.runs] == [2]


def test_another_payload_under_the_same_id_is_rejected_on_every_path() -> None:
    bench = Bench()
    other = job("1", amount=9999)
    bench.memory.claim(JOB, owner="running", lease=LEASE)
    assert bench.deliver(other) == Rejected("payload_mismatch")
    bench.clock.advance(seconds=61)
    assert bench.deliver(other, receives=2) == Rejected("payload_mismatch")
    bench.deliver()
    assert bench.deliver(other) == Rejected("payload_mismatch")
    assert bench.deliver(other, receives=2) == Rejected("payload_mismatch")
    assert [attempt.number for attempt in bench.runs] == [2]


def test_a_lookup_of_a_running_record_is_not_believed_since_it_may_be_old() -> None:
    """An old copy may show a payload that its worker has forgotten since; only the claim decides."""
    bench = Bench()
    other = job("1", amount=9999)
    bench.memory.claim(JOB, owner="a", lease=LEASE)
    old_copy = bench.record()
    bench.memory.release(Claim(JOB.key, "a", 1), "CardExpired", forget_payload=True)
    bench.store.find = lambda key: old_copy  # type: ignore[method-assign]
    assert isinstance(bench.deliver(other, receives=2), Executed)


def test_a_completed_record_past_its_retention_runs_again() -> None:
    bench = Bench()
    bench.deliver()
    bench.clock.time += RETENTION + timedelta(seconds=1)
    assert isinstance(bench.deliver(receives=2), Executed)
    assert [attempt.number for attempt in bench.runs] == [1, 2]


def test_an_unknown_operation_waits_for_its_deployment_and_claims_nothing() -> None:
    bench = Bench()
    unknown = job("1", operation="not-yet-deployed")
    assert [bench.deliver(unknown, receives) for receives in (1, 9)] == [Failed(Failure.UNKNOWN_OPERATION)] * 2
    assert bench.deliver(unknown, 10) == Rejected("unknown_operation")
    assert not bench.store.calls


def test_payloads_that_cannot_be_compared_count_as_matching_and_are_told() -> None:
    bench = Bench()
    bench.store.claim = lambda job, **_: Completed(Answer("1"), verified=False)  # type: ignore[method-assign]
    assert bench.deliver() == Skipped(Answer("1"))
    assert bench.events.unverified == [JOB]


# Attempts.


def test_receives_without_attempts_exhaust_nothing() -> None:
    bench = Bench(max_attempts=1)
    bench.memory.claim(JOB, owner="another", lease=LEASE)
    assert all(isinstance(bench.deliver(receives=receives), Deferred) for receives in range(2, 20))
    bench.memory.release(Claim(JOB.key, "another", 1), "Error")
    bench2 = Bench(max_attempts=1)
    assert isinstance(bench2.deliver(receives=50), Executed)


def test_each_attempt_has_its_own_execution_id_and_the_same_effect_key() -> None:
    bench = Bench(fail(OSError()))
    bench.deliver()
    bench.deliver(receives=2)
    first, second = bench.runs
    assert (first.number, second.number) == (1, 2)
    assert first.execution_id != second.execution_id
    assert first.effect_key("charge") == second.effect_key("charge")


def test_an_attempt_knows_the_time_it_has() -> None:
    bench = Bench()
    start = bench.clock.now()
    bench.deliver(within=30)
    bench.deliver(job("2"), within=None)
    assert [attempt.deadline for attempt in bench.runs] == [start + timedelta(seconds=30) - MARGIN, None]


# After running.


def test_a_transient_error_releases_the_job_for_the_next_delivery() -> None:
    bench = Bench(fail(TimeoutError()))
    assert bench.deliver() == Failed(Failure.OPERATION_RAISED, "TimeoutError")
    record = bench.record()
    assert (record.owner, record.last_error, record.attempts) == (None, "TimeoutError", 1)
    assert isinstance(bench.deliver(receives=2), Failed)
    assert len(bench.runs) == 2


def test_a_permanent_error_is_rejected_at_once_and_a_corrected_payload_may_run() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if job.payload.get("amount") == 10:
            raise PermanentError("invalid_payload", "amount: expected less")
        return "ok"

    bench = Bench(run)
    rejected = Rejected("invalid_payload", "amount: expected less", "PermanentError", 1)
    assert bench.deliver() == rejected
    assert bench.record().fingerprint is None
    assert bench.deliver(job("1", amount=9)) == Executed(Answer('"ok"'))


def test_a_rejection_is_not_cached() -> None:
    bench = Bench(fail(PermanentError("card_expired")))
    bench.deliver()
    bench.deliver()
    assert len(bench.runs) == 2


def test_a_permanent_error_without_a_code_has_one() -> None:
    class CarelessError(PermanentError):
        def __init__(self) -> None:
            pass

    assert Bench(fail(CarelessError())).deliver() == Rejected("permanent_error", "", "CarelessError", 1)
    assert str(PermanentError("a", "b")) == "a: b"


def test_sys_exit_inside_an_operation_is_a_failed_attempt() -> None:
    bench = Bench(fail(SystemExit(3)))
    assert bench.deliver() == Failed(Failure.OPERATION_RAISED, "SystemExit")
    assert bench.record().owner is None


class Interrupted(BaseException):
    """What a signal raises."""


@pytest.mark.parametrize("error", [Interrupted(), SystemExit(143), KeyboardInterrupt()])
def test_a_signal_ends_the_process_whatever_it_raises(error: BaseException) -> None:
    bench = Bench(fail(error), ends_process=lambda raised: raised is error)
    with pytest.raises(type(error)):
        bench.deliver()
    assert bench.record().owner == "run-1"
    assert bench.store.calls == {"claim": 1}


class OddError(BaseException):
    """As gevent's `Timeout` and trio's `Cancelled` are."""


ENDS_NO_PROCESS = [
    asyncio.CancelledError("a"),
    concurrent.futures.CancelledError(),
    GeneratorExit(),
    KeyboardInterrupt(),
    OddError(),
    BaseExceptionGroup("several", [asyncio.CancelledError(), KeyError()]),
]


@pytest.mark.parametrize("error", ENDS_NO_PROCESS, ids=lambda error: type(error).__name__)
def test_what_ends_no_process_is_a_failed_attempt_whatever_it_is(error: BaseException) -> None:
    bench = Bench(fail(error))
    assert bench.deliver() == Failed(Failure.OPERATION_RAISED, type(error).__name__)
    assert (bench.record().owner, bench.record().last_error) == (None, type(error).__name__)
    assert bench.record().life.runs == 1
    assert bench.events.traces[0].error is error


@pytest.mark.parametrize("error", ENDS_NO_PROCESS, ids=lambda error: type(error).__name__)
def test_an_answer_whose_own_code_raises_is_omitted_since_the_effect_has_happened(error: BaseException) -> None:
    class Odd(dict[str, object]):
        def items(self) -> Any:
            raise error

    bench = Bench(lambda job, attempt: Odd())
    assert bench.deliver() == Executed(Answer("null", f"unserializable: {type(error).__name__}"))


def test_an_interrupt_propagates_while_the_answer_is_encoded_too() -> None:
    class Slow(dict[str, object]):
        def items(self) -> Any:
            raise KeyboardInterrupt

    bench = Bench(lambda job, attempt: Slow(), ends_process=lambda error: True)
    with pytest.raises(KeyboardInterrupt):
        bench.deliver()
    assert bench.store.calls == {"claim": 1}


def test_a_permanent_error_whose_own_code_raises_is_a_rejection() -> None:
    class OddPermanentError(PermanentError):
        @property
        def code(self) -> str:
            raise asyncio.CancelledError

        @code.setter
        def code(self, code: str) -> None: ...

    assert Bench(fail(OddPermanentError("a"))).deliver() == Rejected("OddPermanentError", "", "OddPermanentError", 1)


def test_an_interrupt_propagates_and_leaves_the_lease_to_lapse() -> None:
    bench = Bench(fail(KeyboardInterrupt()), ends_process=lambda error: isinstance(error, KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        bench.deliver()
    assert bench.record().owner == "run-1"
    assert bench.store.calls == {"claim": 1}


def test_an_operation_that_raises_our_own_errors_is_just_failing() -> None:
    """It may use onejob itself."""
    assert Bench(fail(StoreUnavailableError())).deliver() == Failed(Failure.OPERATION_RAISED, "StoreUnavailableError")


async def forgotten(job: Job, attempt: Attempt) -> object:
    return None


def generator(job: Job, attempt: Attempt) -> Iterator[int]:
    yield 1


async def async_generator(job: Job, attempt: Attempt) -> AsyncIterator[int]:
    yield 1


def test_a_generator_expression_is_an_answer_that_is_omitted_since_the_effect_happened() -> None:
    bench = Bench(lambda job, attempt: (number for number in (1, 2)))
    assert bench.deliver() == Executed(Answer("null", "unserializable: generator"))
    bench = Bench(lambda job, attempt: (number async for number in async_generator(job, attempt)))
    assert bench.deliver() == Executed(Answer("null", "unserializable: async_generator"))


def test_a_coroutine_that_has_begun_is_an_answer_that_is_omitted() -> None:
    async def half() -> None:
        await Parked()

    class Parked:
        def __await__(self) -> Generator[None]:
            yield

    def run(job: Job, attempt: Attempt) -> object:
        begun.send(None)
        return begun

    begun = half()
    assert Bench(run).deliver() == Executed(Answer("null", "unserializable: coroutine"))
    begun.close()


class HostileError(PermanentError):
    code = property(lambda self: 1 / 0)

    def __init__(self) -> None:
        self.detail = "d" * 1000


def test_a_rejections_words_are_short_and_never_break_it() -> None:
    bench = Bench(fail(HostileError()))
    assert bench.deliver() == Rejected("HostileError", "d" * 300, "HostileError", 1)
    assert bench.record().owner is None


@pytest.mark.parametrize("hidden", [forgotten, generator, async_generator])
def test_an_operation_that_returns_unrun_work_has_not_run(hidden: Callable[[Job, Attempt], object]) -> None:
    bench = Bench(lambda job, attempt: hidden(job, attempt))
    assert bench.deliver() == Failed(Failure.OPERATION_RAISED, "TypeError")
    assert bench.record().status is Status.IN_PROGRESS


@pytest.mark.parametrize("error", [None, ValueError("late"), PermanentError("late")])
def test_a_late_worker_writes_nothing_and_is_never_rejected(error: Exception | None) -> None:
    bench = Bench()

    def outlived(job: Job, attempt: Attempt) -> object:
        bench.clock.advance(seconds=61)
        taken = bench.memory.claim(JOB, owner="another", lease=LEASE)
        assert isinstance(taken, Acquired)
        bench.memory.complete(taken.claim, Answer('"theirs"'))
        if error:
            raise error
        return "mine"

    late = Bench(outlived)
    late.memory = bench.memory
    late.store.inner = bench.memory
    outcome = late.deliver()
    assert isinstance(outcome, Failed)
    assert outcome.reason is Failure.LEASE_LOST
    assert bench.record().answer == Answer('"theirs"')


def slow_claims(bench: Bench, seconds: float) -> None:
    claim = bench.store.claim

    def slow(job: Job, *, owner: str, lease: timedelta) -> object:
        answer = claim(job, owner=owner, lease=lease)
        bench.clock.advance(seconds=seconds)
        return answer

    bench.store.claim = slow  # type: ignore[method-assign, assignment]


def test_a_claim_that_arrives_after_its_lease_is_not_run() -> None:
    bench = Bench()
    slow_claims(bench, 61)
    assert bench.deliver(within=None) == Failed(Failure.LEASE_LOST)
    assert not bench.runs


@pytest.mark.parametrize(("seconds", "runs"), [(24.9, 1), (25, 0), (29, 0)])
def test_a_claim_that_arrives_within_the_margin_is_given_back_unrun(seconds: float, runs: int) -> None:
    bench = Bench()
    slow_claims(bench, seconds)
    outcome = bench.deliver(within=30)
    assert len(bench.runs) == runs
    assert runs or outcome == Failed(Failure.NOT_STARTED)
    assert runs or bench.record().owner is None


def test_the_lease_ends_where_it_was_asked_to_whatever_came_before_the_claim() -> None:
    bench = Bench(lambda job, attempt: bench.record().lease_until)
    find = bench.store.find

    def slow(key: JobKey) -> Record | None:
        bench.clock.advance(seconds=3)
        return find(key)

    bench.store.find = slow  # type: ignore[method-assign]
    end = bench.clock.now() + LEASE
    outcome = bench.deliver(receives=2)
    assert isinstance(outcome, Executed)
    assert outcome.answer.value == end.isoformat()


def test_an_attempt_sees_that_its_lease_is_over() -> None:
    seen = []

    def run(job: Job, attempt: Attempt) -> object:
        seen.append(attempt.lost())
        bench.clock.advance(seconds=60)
        seen.append(attempt.lost())
        return None

    bench = Bench(run)
    bench.deliver()
    assert seen == [False, True]


def test_an_answer_that_cannot_be_kept_never_repeats_the_effect() -> None:
    bench = Bench(lambda job, attempt: 1j)
    omitted = Answer("null", "unserializable: complex")
    assert bench.deliver() == Executed(omitted)
    assert bench.deliver() == Skipped(omitted)
    bench = Bench(lambda job, attempt: "x" * 100)
    bench.store.max_answer_bytes = 50
    assert bench.deliver() == Executed(Answer("null", "too_large: 102 bytes"))


def test_an_operation_may_change_its_payload() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        job.payload["processed"] = True
        raise OSError

    bench = Bench(run)
    bench.deliver()
    assert JOB.payload == {"amount": 10}
    assert bench.deliver(receives=2) == Failed(Failure.OPERATION_RAISED, "OSError")


# A store that fails.


def test_a_store_that_cannot_be_asked_runs_nothing() -> None:
    bench = Bench(claim=["fails"] * 10)
    assert bench.deliver() == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    assert not bench.runs
    assert bench.store.calls == {"claim": STORE_TRIES}
    assert bench.clock.slept == [timedelta(milliseconds=50), timedelta(milliseconds=100)]


def test_a_lookup_that_fails_runs_nothing() -> None:
    bench = Bench(find=["fails"] * 10)
    assert bench.deliver(receives=2) == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    assert bench.store.calls == {"find": STORE_TRIES}


def test_a_foreign_record_runs_nothing() -> None:
    bench = Bench(claim=[ForeignRecordError()] * 10)
    assert bench.deliver() == Failed(Failure.STORE_UNAVAILABLE, "ForeignRecordError")


@pytest.mark.parametrize("fault", ["fails", "landed"])
def test_a_claim_is_asked_again_and_runs_once(fault: str) -> None:
    bench = Bench(claim=[fault])
    assert isinstance(bench.deliver(), Executed)
    assert [attempt.number for attempt in bench.runs] == [1]


@pytest.mark.parametrize("fault", ["fails", "landed"])
def test_a_completion_is_written_again_until_it_lands(fault: str) -> None:
    bench = Bench(complete=[fault] * 8)
    assert isinstance(bench.deliver(), Executed)
    assert bench.record().status is Status.COMPLETED
    assert len(bench.runs) == 1


def test_pauses_double_up_to_two_seconds() -> None:
    bench = Bench(complete=["fails"] * 8)
    bench.deliver()
    assert [pause.total_seconds() for pause in bench.clock.slept] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


def test_a_completion_that_cannot_be_written_until_the_margin_is_lost_and_not_released() -> None:
    bench = Bench(complete=["fails"] * 1000)
    start = bench.clock.now()
    assert bench.deliver(within=30) == Failed(Failure.COMPLETION_LOST, "StoreUnavailableError")
    assert timedelta(seconds=24) <= bench.clock.now() - start <= timedelta(seconds=25)
    assert bench.record().owner == "run-1"
    assert bench.store.calls["release"] == 0


def test_without_a_deadline_a_completion_is_tried_for_one_lease() -> None:
    bench = Bench(complete=["fails"] * 1000)
    start = bench.clock.now()
    assert isinstance(bench.deliver(within=None), Failed)
    assert timedelta(seconds=59) <= bench.clock.now() - start <= LEASE


def test_without_a_deadline_a_completion_is_tried_for_one_lease_after_the_operation() -> None:
    """However long it ran: its lease was renewed."""
    ended: list[datetime] = []

    def run(job: Job, attempt: Attempt) -> object:
        bench.clock.advance(seconds=300)
        ended.append(bench.clock.now())
        return None

    bench = Bench(run, complete=["fails"] * 1000)
    assert bench.deliver(within=None) == Failed(Failure.COMPLETION_LOST, "StoreUnavailableError")
    assert timedelta(seconds=59) <= bench.clock.now() - ended[0] <= LEASE


def test_a_completion_is_tried_until_the_deadline_though_the_lease_was_shorter() -> None:
    bench = Bench(complete=["fails"] * 1000)
    start = bench.clock.now()
    assert bench.deliver(within=300) == Failed(Failure.COMPLETION_LOST, "StoreUnavailableError")
    assert timedelta(seconds=294) <= bench.clock.now() - start <= timedelta(seconds=295)


def test_an_answer_that_comes_after_the_margin_is_still_tried_once() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        late.clock.advance(seconds=28)
        return "late"

    late = Bench(run)
    assert isinstance(late.deliver(within=30), Executed)
    late = Bench(run, complete=["fails"])
    assert isinstance(late.deliver(within=30), Failed)
    assert late.store.calls["complete"] == 1


def test_a_release_that_fails_is_told_beside_the_outcome() -> None:
    bench = Bench(fail(ValueError()), release=["fails"] * 10)
    assert bench.deliver() == Failed(Failure.OPERATION_RAISED, "ValueError")
    assert [type(error) for error in bench.events.failed_releases] == [StoreUnavailableError]


def test_a_rejection_whose_release_cannot_be_written_is_tried_again_since_it_had_no_effect() -> None:
    bench = Bench(fail(PermanentError("no")), release=["fails"] * STORE_TRIES)
    assert bench.deliver() == Failed(Failure.STORE_UNAVAILABLE, "PermanentError")
    assert isinstance(bench.events.traces[-1].error, StoreUnavailableError), "what stops a run is told"
    assert [type(error) for error in bench.events.failed_releases] == [StoreUnavailableError]
    bench.clock.advance(seconds=61)
    assert bench.deliver(receives=2) == Rejected("no", "", "PermanentError", 2)
    assert bench.record().fingerprint is None, "a corrected payload may run"
    bench = Bench(fail(ValueError()), max_attempts=1)
    bench.deliver()
    bench.store._faults["release"] = ["fails"] * STORE_TRIES
    assert bench.deliver(receives=2) == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    bench.clock.advance(seconds=61)
    assert isinstance(bench.deliver(receives=3), Rejected)


@pytest.mark.parametrize("error", [ValueError(), PermanentError("no")])
def test_a_release_whose_answer_was_lost_is_a_release(error: Exception) -> None:
    bench = Bench(fail(error), release=["landed"])
    outcome = bench.deliver()
    assert isinstance(outcome, Rejected) or outcome == Failed(Failure.OPERATION_RAISED, "ValueError")
    assert bench.store.calls["release"] == 2


@pytest.mark.parametrize(("method", "receives"), [("find", 2), ("release", 1)])
def test_nothing_is_tried_again_past_the_margin(method: str, receives: int) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        bench.clock.advance(seconds=24.99)
        raise ValueError

    plan: list[object] = ["fails"] * 10
    bench = Bench(run, **{method: plan})  # type: ignore[arg-type]
    within = 5.01 if method == "find" else 30
    bench.deliver(receives=receives, within=within)
    assert bench.store.calls[method] == 1


@pytest.mark.parametrize("found", [Busy(FakeClock().now(), verified=False), Completed(Answer("1"), verified=False)])
def test_whatever_could_not_be_compared_is_told(found: Busy | Completed) -> None:
    bench = Bench()
    bench.store.claim = lambda job, **_: found  # type: ignore[method-assign]
    bench.deliver()
    assert bench.events.unverified == [JOB]


def test_a_takeover_whose_payload_could_not_be_compared_is_told_and_runs() -> None:
    bench = Bench()
    bench.memory.claim(replace(JOB, fingerprint="v0:old"), owner="killed", lease=LEASE)
    bench.clock.advance(seconds=61)
    assert isinstance(bench.deliver(), Executed)
    assert bench.events.unverified == [JOB]


def test_a_redelivered_mismatch_of_a_completed_job_costs_one_read() -> None:
    bench = Bench()
    bench.deliver()
    bench.store.calls.clear()
    assert bench.deliver(job("1", amount=9999), receives=2) == Rejected("payload_mismatch")
    assert bench.store.calls == {"find": 1}


# What is told.


def test_every_delivery_is_told_once_with_its_run() -> None:
    error = ValueError("x")
    bench = Bench(fail(error))
    bench.deliver(receives=3)
    (trace,) = bench.events.traces
    assert (trace.job, trace.execution_id, trace.attempt, trace.error) == (JOB, "run-1", 1, error)
    assert trace.delivery == Delivery(3, "m")
    assert trace.outcome == Failed(Failure.OPERATION_RAISED, "ValueError")


def test_the_duration_covers_the_delivery() -> None:
    bench = Bench()

    def run(job: Job, attempt: Attempt) -> object:
        slow.clock.advance(seconds=3)
        return None

    slow = Bench(run)
    slow.deliver()
    bench.deliver()
    assert slow.events.traces[0].duration == timedelta(seconds=3)
    assert bench.events.traces[0].duration == timedelta(0)


@pytest.mark.parametrize("ends_with", ["complete", "release"])
def test_the_heartbeat_goes_on_until_the_record_is_written(ends_with: str) -> None:
    """Nobody else may take the job while a completion is tried for longer than its lease."""
    seen: list[str] = []

    @contextmanager
    def heartbeat(lease: Lease, length: timedelta, *_: object) -> Iterator[None]:
        seen.append(f"begins for attempt {lease.claim.attempt}, {length.total_seconds():.0f} s")
        yield
        seen.append("ends")

    def run(job: Job, attempt: Attempt) -> object:
        seen.append("runs")
        if ends_with == "release":
            raise ValueError
        return None

    faults: dict[str, Any] = {ends_with: ["fails", "fails"]}
    bench = Bench(run, **faults)
    right = bench.store._do

    def written(name: str, call: Callable[[], object]) -> object:
        seen.append(name)
        return right(name, call)

    bench.store._do = written  # type: ignore[method-assign]
    parts = {name: getattr(bench.service, name) for name in JobService.__slots__}
    service = JobService(**parts | {"heartbeat": heartbeat})
    service.process(JOB, lease=LEASE, deadline=None, delivery=REDELIVERED)
    assert seen == ["find", "claim", "begins for attempt 1, 60 s", "runs", *[ends_with] * 3, "ends"]


def test_where_nothing_would_renew_the_lease_the_job_is_given_back_unrun() -> None:
    bench = Bench()

    @contextmanager
    def unavailable(*_: object) -> Iterator[None]:
        raise HeartbeatUnavailableError
        yield

    parts = {name: getattr(bench.service, name) for name in JobService.__slots__}
    service = JobService(**parts | {"heartbeat": unavailable})
    outcome = service.process(JOB, lease=LEASE, deadline=None, delivery=REDELIVERED)
    assert outcome == Failed(Failure.NOT_STARTED, "HeartbeatUnavailableError")
    assert not bench.runs
    record = bench.memory.find(JOB.key)
    assert record is not None
    assert (record.in_progress, record.lease_until) == (True, RELEASED)


def test_the_heartbeat_is_told_the_deadline_and_tells_when_the_attempt_is_overdue() -> None:
    bench, ends = Bench(), list[datetime | None]()

    @contextmanager
    def overdue_at_once(
        _lease: Lease, _length: timedelta, until: datetime | None, overdue: Callable[[], None]
    ) -> Iterator[None]:
        ends.append(until)
        overdue()
        yield

    parts = {name: getattr(bench.service, name) for name in JobService.__slots__}
    service = JobService(**parts | {"heartbeat": overdue_at_once})
    deadline = bench.clock.now() + timedelta(seconds=100)
    service.process(JOB, lease=LEASE, deadline=deadline, delivery=REDELIVERED)
    assert ends == [deadline]
    assert [claim.attempt for claim in bench.events.overdue_attempts] == [1]


@pytest.mark.parametrize("error", [ValueError(), PermanentError("no")])
def test_who_was_refused_a_renewal_neither_rejects_nor_fails_the_job_of_another(error: Exception) -> None:
    held: list[Lease] = []

    def refused_while_it_runs(job: Job, attempt: Attempt) -> object:
        held[0].refuse()
        raise error

    bench = Bench(refused_while_it_runs, release=["fails"] * STORE_TRIES)

    @contextmanager
    def heartbeat(lease: Lease, length: timedelta, *_: object) -> Iterator[None]:
        held.append(lease)
        yield

    parts = {name: getattr(bench.service, name) for name in JobService.__slots__}
    service = JobService(**parts | {"heartbeat": heartbeat})
    outcome = service.process(JOB, lease=LEASE, deadline=None, delivery=REDELIVERED)
    assert outcome == Failed(Failure.LEASE_LOST, type(error).__name__)
    assert [type(told) for told in bench.events.failed_releases] == [StoreUnavailableError]


def test_a_lease_that_lapses_while_the_heartbeat_is_waited_for_is_not_run() -> None:
    bench = Bench()

    @contextmanager
    def slow_to_begin(lease: Lease, length: timedelta, *_: object) -> Iterator[None]:
        bench.clock.advance(seconds=61)
        yield

    parts = {name: getattr(bench.service, name) for name in JobService.__slots__}
    service = JobService(**parts | {"heartbeat": slow_to_begin})
    outcome = service.process(JOB, lease=LEASE, deadline=None, delivery=REDELIVERED)
    assert outcome == Failed(Failure.LEASE_LOST)
    assert not bench.runs


@pytest.mark.parametrize("error", [RuntimeError("refresh"), OSError(5, "token"), KeyError("x")])
def test_whatever_a_store_raises_after_the_effect_may_have_landed_and_is_asked_again(error: Exception) -> None:
    bench = Bench(complete=[error, error, error, error, error])
    assert isinstance(bench.deliver(), Executed)
    assert len(bench.runs) == 1


@pytest.mark.parametrize("name", ["claim", "release", "complete"])
def test_a_store_that_never_stops_raising_what_nobody_knows_cannot_answer(name: str) -> None:
    def fails(_job: Job, _attempt: Attempt) -> object:
        raise ValueError

    faults: dict[str, Any] = {name: [RuntimeError("secret")] * 1000}
    bench = Bench(fails if name == "release" else answer_ok, **faults)
    outcome = bench.deliver()
    wanted = {
        "claim": Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError"),
        "complete": Failed(Failure.COMPLETION_LOST, "StoreUnavailableError"),
        "release": Failed(Failure.OPERATION_RAISED, "ValueError"),
    }
    assert outcome == wanted[name]
    assert len(bench.runs) == (0 if name == "claim" else 1)
    told = bench.events.failed_releases[-1] if name == "release" else bench.events.traces[-1].error
    assert str(told) == "RuntimeError"
