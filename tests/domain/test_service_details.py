"""The state machine at its edges: what is told of a delivery, what a release leaves, the last moment for a write."""

from datetime import timedelta

import pytest

from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import LeaseLostError, PermanentError, StoreUnavailableError
from domain.job import Job
from domain.outcome import Executed, Failed, Failure, Rejected
from domain.record import Acquired
from tests.domain.test_service import JOB, LEASE, MARGIN, Bench, fail, forgotten, slow_claims
from tests.support.jobs import RecordedEvents


def told_error(bench: Bench) -> BaseException | None:
    return bench.events.traces[-1].error


def taken_over(error: Exception | None) -> Bench:
    """Another worker takes over while the operation runs, which then returns or raises."""

    def run(job: Job, attempt: Attempt) -> object:
        bench.clock.advance(seconds=61)
        assert isinstance(bench.memory.claim(JOB, owner="another", lease=LEASE), Acquired)
        if error:
            raise error
        return "late"

    bench = Bench(run)
    return bench


def test_a_payload_that_could_be_compared_is_not_told_as_unverified() -> None:
    bench = Bench()
    bench.memory.claim(JOB, owner="another", lease=LEASE)
    bench.deliver()
    bench.clock.advance(seconds=61)
    bench.deliver()
    bench.deliver()
    assert [type(trace.outcome).__name__ for trace in bench.events.traces] == ["Deferred", "Executed", "Skipped"]
    assert bench.events.unverified == []


@pytest.mark.parametrize("error", [PermanentError("no"), OSError("x")])
def test_what_an_operation_raised_is_told(error: Exception) -> None:
    bench = Bench(fail(error))
    bench.deliver()
    assert told_error(bench) is error


def test_a_store_that_could_not_answer_is_told() -> None:
    bench = Bench(claim=["fails"] * 3)
    bench.deliver()
    assert isinstance(told_error(bench), StoreUnavailableError)
    bench = Bench(complete=["fails"] * 1000)
    bench.deliver()
    assert isinstance(told_error(bench), StoreUnavailableError)


def test_a_completion_that_came_too_late_is_told() -> None:
    bench = taken_over(None)
    assert bench.deliver(within=None) == Failed(Failure.LEASE_LOST)
    assert isinstance(told_error(bench), LeaseLostError)


@pytest.mark.parametrize("error", [OSError("x"), PermanentError("no")])
def test_a_failure_that_came_too_late_says_what_was_raised(error: Exception) -> None:
    assert taken_over(error).deliver(within=None) == Failed(Failure.LEASE_LOST, type(error).__name__)


def test_unrun_work_says_what_it_is() -> None:
    bench = Bench(lambda job, attempt: forgotten(job, attempt))
    bench.deliver()
    assert str(told_error(bench)) == "the operation returned a coroutine that was never run"


def test_a_release_that_failed_names_its_job() -> None:
    class Told(RecordedEvents):
        def release_failed(self, job: Job, error: Exception) -> None:
            assert job == JOB
            super().release_failed(job, error)

    bench = Bench(fail(OSError()), release=["fails"] * 3)
    told = Told()
    object.__setattr__(bench.service, "events", told)
    bench.deliver()
    assert len(told.failed_releases) == 1


def test_a_transient_failure_keeps_the_payload_and_a_permanent_one_its_error() -> None:
    bench = Bench(fail(OSError()))
    bench.deliver()
    assert bench.record().fingerprint == JOB.fingerprint
    bench = Bench(fail(PermanentError("no")))
    bench.deliver()
    assert bench.record().last_error == "PermanentError"


def test_a_job_that_is_given_back_unrun_has_no_new_error() -> None:
    bench = Bench(max_attempts=0)
    assert bench.deliver(receives=2) == Rejected("attempts_exhausted", "killed or timed out", None, 1)
    assert bench.record().last_error is None
    bench = Bench()
    slow_claims(bench, 26)
    assert bench.deliver() == Failed(Failure.NOT_STARTED)
    assert bench.record().last_error is None


def test_the_words_of_a_rejection_have_their_lengths() -> None:
    outcome = Bench(fail(PermanentError("c" * 101, "d" * 301))).deliver()
    assert outcome == Rejected("c" * 100, "d" * 300, "PermanentError", 1)


def test_an_effect_key_names_the_job_and_the_step() -> None:
    bench = Bench(lambda job, attempt: attempt.effect_key("charge"))
    assert bench.deliver() == Executed(Answer(f'"{JOB.key}#charge"'))


@pytest.mark.parametrize(("beyond", "tries"), [(timedelta(0), 2), (timedelta(microseconds=1), 1)])
def test_the_last_try_may_start_at_the_margin_and_no_later(beyond: timedelta, tries: int) -> None:
    first_pause = timedelta(seconds=0.05)
    bench = Bench(claim=["fails"] * 3)
    bench.deliver(within=(first_pause + MARGIN - beyond).total_seconds())
    assert bench.store.calls["claim"] == tries
