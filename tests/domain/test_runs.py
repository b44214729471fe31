"""The limit on runs: what counts as one, what ends a life, and that only runs that began exhaust a job."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import HeartbeatUnavailableError, LeaseLostError, PermanentError, StoreUnavailableError
from domain.job import Job
from domain.life import Life
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected
from domain.record import Claim, ClaimAnswer, Record
from tests.domain.test_service import JOB, LEASE, MARGIN, RETENTION, Bench, fail

KEY_ERROR = Failed(Failure.OPERATION_RAISED, "KeyError")
LIMIT = 5


fails = fail(KeyError())


class KilledError(BaseException):
    """The end of a process, in so far as it concerns the record."""


class Queue:
    """Messages that come back, to a service that may be killed. The lease is over before each receive."""

    def __init__(self, run: Callable[[Job, Attempt], object] = fails, **options: Any) -> None:
        self.bench = Bench(run, ends_process=lambda error: isinstance(error, KilledError), **options)
        self.receives: dict[str, int] = {}
        self.sent: dict[str, datetime | None] = {}

    def receive(self, message: str = "m", *, counts_runs: bool = True, within: float | None = 30) -> Outcome | None:
        """The outcome; None where the process was killed."""
        receives = self.receives[message] = self.receives.get(message, 0) + 1
        clock, service = self.bench.clock, self.bench.service
        clock.advance(seconds=1)
        sent_at = self.sent.setdefault(message, clock.now())
        clock.advance(seconds=LEASE.total_seconds())
        try:
            return service.process(
                JOB,
                lease=LEASE,
                deadline=None if within is None else clock.now() + LEASE * (within / 60),
                delivery=Delivery(receives, message, counts_runs, sent_at),
            )
        except KilledError:
            return None

    def receive_all(self, times: int, message: str = "m") -> list[Outcome | None]:
        return [self.receive(message) for _ in range(times)]

    @property
    def record(self) -> Record:
        return self.bench.record()


def exhausted(attempts: int, error: str | None = "KeyError") -> Rejected:
    return Rejected("attempts_exhausted", "" if error else "killed or timed out", error, attempts)


def test_a_job_that_keeps_failing_is_rejected_after_its_runs() -> None:
    queue = Queue()
    assert queue.receive_all(LIMIT + 1) == [KEY_ERROR] * LIMIT + [exhausted(6)]
    assert len(queue.bench.runs) == LIMIT
    assert (queue.record.owner, queue.record.last_error) == (None, "KeyError")
    assert queue.record.life == Life(runs=LIMIT, rejected_at=queue.bench.clock.now())


def test_a_limit_of_one_is_one_run_also_where_it_is_killed() -> None:
    assert Queue(max_attempts=1).receive_all(2) == [KEY_ERROR, exhausted(2)]
    assert Queue(fail(KilledError()), max_attempts=1).receive_all(2) == [None, exhausted(2, None)]


def test_a_job_whose_worker_dies_each_time_has_one_run_more() -> None:
    queue = Queue(fail(KilledError()))
    assert queue.receive_all(LIMIT + 2) == [None] * (LIMIT + 1) + [exhausted(7, None)]
    assert len(queue.bench.runs) == LIMIT + 1


def test_claims_whose_answers_were_lost_are_no_runs() -> None:
    queue = Queue(claim=["landed", "landed", "landed"] * 20)
    lost = [queue.receive() for _ in range(20)]
    assert lost == [Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")] * 20
    assert queue.record.attempts == 20
    assert queue.receive_all(LIMIT + 1) == [KEY_ERROR] * LIMIT + [exhausted(26)]


def test_late_starts_are_no_runs() -> None:
    queue = Queue()
    late = [queue.receive(within=MARGIN.total_seconds()) for _ in range(20)]
    assert late == [Failed(Failure.NOT_STARTED)] * 20
    assert queue.record.life.runs == 0
    assert queue.receive_all(LIMIT + 1)[-1] == exhausted(26)


def test_attempts_of_an_earlier_version_or_of_another_tool_are_no_runs() -> None:
    queue = Queue()
    for owner in "abcdefgh":
        queue.bench.memory.claim(JOB, owner=owner, lease=LEASE)
        queue.bench.memory.release(Claim(JOB.key, owner, queue.record.attempts), "KeyError")
    assert queue.receive_all(LIMIT + 1) == [KEY_ERROR] * LIMIT + [exhausted(14)]


def test_runs_before_the_end_of_the_retention_do_not_count() -> None:
    queue = Queue()
    queue.receive_all(LIMIT)
    queue.bench.clock.advance(seconds=RETENTION.total_seconds() + 1)
    assert queue.receive("m2") == KEY_ERROR
    assert (queue.record.attempts, queue.record.life.runs) == (6, 1)
    assert queue.receive_all(LIMIT, "m2") == [KEY_ERROR] * (LIMIT - 1) + [exhausted(11)]


@pytest.mark.parametrize("begins_anew", ["forget", "restart"])
def test_runs_before_an_operator_had_it_run_again_do_not_count(begins_anew: str) -> None:
    queue = Queue()
    queue.receive_all(LIMIT)
    getattr(queue.bench.memory, begins_anew)(queue.record)
    queue.bench.store._faults["find"] = ["fails"] * 3  # the first receive meets an outage
    assert queue.receive("m") == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    assert queue.receive_all(LIMIT + 1) == [KEY_ERROR] * LIMIT + [exhausted(11)]


def test_a_message_sent_anew_after_a_rejection_has_its_runs_whatever_its_first_receives_meet() -> None:
    queue = Queue()
    assert queue.receive_all(LIMIT + 1, "letter")[-1] == exhausted(6)
    queue.bench.store._faults["claim"] = ["fails"] * 3
    assert queue.receive("anew") == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    assert queue.receive("anew", within=1) == Failed(Failure.NOT_STARTED)
    assert queue.receive_all(LIMIT + 1, "anew") == [KEY_ERROR] * LIMIT + [exhausted(13)]


def test_a_rejected_message_that_could_not_be_sent_away_does_not_run_when_it_is_back() -> None:
    queue = Queue()
    assert queue.receive_all(LIMIT + 3)[LIMIT:] == [exhausted(6), exhausted(7), exhausted(8)]
    assert len(queue.bench.runs) == LIMIT


def test_a_message_sent_after_a_rejection_has_its_runs_though_the_rejected_one_comes_back() -> None:
    queue = Queue()
    queue.receive_all(LIMIT + 1, "m1")
    queue.bench.clock.advance(seconds=1)
    queue.sent["m2"] = queue.bench.clock.now()
    assert queue.receive("m1") == exhausted(7)
    assert queue.receive_all(LIMIT + 1, "m2") == [KEY_ERROR] * LIMIT + [exhausted(13)]


@pytest.mark.parametrize("is_known", [True, False])
def test_a_message_that_was_not_sent_after_a_rejection_counts_on(is_known: bool) -> None:
    """One that was sent at that very time, or at a time that nobody knows."""
    queue = Queue()
    queue.receive_all(LIMIT + 1)
    queue.sent["m2"] = queue.record.life.rejected_at if is_known else None
    assert queue.receive_all(2, "m2") == [KEY_ERROR, exhausted(8)]


def test_a_message_sent_after_a_rejection_has_no_deaths_before_it() -> None:
    queue = Queue()
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    queue.receive_all(LIMIT + 1)
    assert queue.record.life.unended == 1
    queue.receive("anew")
    assert queue.record.life == Life(runs=1)


def test_a_rejection_over_http_gives_no_message_its_runs_anew() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        raise PermanentError if attempt.number == LIMIT + 1 else KeyError

    queue = Queue(run)
    queue.receive_all(LIMIT)
    assert isinstance(queue.receive("http", counts_runs=False), Rejected)
    assert queue.receive_all(2, "m2") == [KEY_ERROR, exhausted(8)]


def test_a_message_sent_anew_after_a_permanent_error_has_all_its_runs() -> None:
    queue = Queue(fail(PermanentError("closed")))
    assert queue.receive_all(3) == [Rejected("closed", "", "PermanentError", number) for number in (1, 2, 3)]
    assert queue.record.life.runs == 3
    queue.receive("corrected")
    assert queue.record.life.runs == 1


def test_a_permanent_error_that_keeps_coming_back_is_exhausted_too() -> None:
    queue = Queue(fail(PermanentError("closed")))
    assert queue.receive_all(LIMIT + 1)[-1] == exhausted(6, "PermanentError")
    assert len(queue.bench.runs) == LIMIT


def test_a_first_receive_buys_one_run() -> None:
    queue = Queue()
    queue.receive_all(LIMIT)
    assert queue.receive("duplicate") == KEY_ERROR
    assert queue.receive("duplicate") == exhausted(7)


def test_runs_of_who_decides_by_himself_are_neither_counted_nor_refused() -> None:
    queue = Queue()
    assert [queue.receive("http", counts_runs=False) for _ in range(20)] == [KEY_ERROR] * 20
    assert queue.record.life.runs == 0
    queue.receive_all(LIMIT)
    assert queue.receive("http", counts_runs=False) == KEY_ERROR


def test_a_new_job_costs_no_request_for_its_count_and_one_after_a_lapse_one() -> None:
    queue = Queue(lambda job, attempt: "ok")
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    assert isinstance(queue.receive(), Executed)
    assert queue.bench.store.calls == {"claim": 1, "begin": 1, "complete": 1}


def test_a_count_whose_answer_was_lost_counts_once() -> None:
    queue = Queue(begin=["landed"], max_attempts=2)
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    assert queue.receive() == KEY_ERROR
    assert queue.record.life.runs == 1


def test_a_count_that_cannot_be_written_stops_no_run_and_is_made_at_its_end() -> None:
    queue = Queue(begin=["fails"] * 3)
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    assert queue.receive() == KEY_ERROR
    assert queue.record.life == Life(runs=1, unended=1)


def test_a_count_that_is_refused_stops_the_run() -> None:
    queue = Queue(begin=[LeaseLostError("another's")])
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    assert queue.receive() == Failed(Failure.LEASE_LOST)
    assert not queue.bench.runs


@pytest.mark.parametrize(
    ("takes", "outcome"), [(LEASE, Failed(Failure.LEASE_LOST)), (LEASE / 2, Failed(Failure.NOT_STARTED))]
)
def test_a_run_that_was_counted_and_is_prevented_counts_no_more(takes: Any, outcome: Failed) -> None:
    queue = Queue()
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)
    right = queue.bench.memory.begin

    def slow(claim: Claim, life: Life) -> None:
        right(claim, life)
        queue.bench.clock.advance(seconds=takes.total_seconds())

    queue.bench.store.begin = slow  # type: ignore[method-assign]
    assert queue.receive(within=20) == outcome
    assert (queue.record.life, queue.record.owner) == (Life(unended=1), None)
    assert not queue.bench.runs


def test_a_prevented_run_that_could_not_be_counted_is_not_taken_back() -> None:
    queue = Queue()
    queue.bench.memory.claim(JOB, owner="killed", lease=LEASE)

    def slow_to_fail(claim: Claim, life: Life) -> None:
        queue.bench.clock.advance(seconds=10)
        raise StoreUnavailableError

    queue.bench.store.begin = slow_to_fail  # type: ignore[method-assign]
    assert queue.receive(within=20) == Failed(Failure.NOT_STARTED)
    assert queue.record.life.runs == 0


def test_a_prevented_run_that_was_to_be_counted_at_its_end_is_not_taken_back() -> None:
    queue = Queue()

    @contextmanager
    def slow_to_begin(*_: object) -> Iterator[None]:
        queue.bench.clock.advance(seconds=20)
        yield

    queue.bench.service = replace(queue.bench.service, heartbeat=slow_to_begin)
    assert queue.receive(within=20) == Failed(Failure.NOT_STARTED)
    assert queue.record.life.runs == 0


def test_a_run_whose_lease_nothing_renews_is_not_counted() -> None:
    def refused(*_: object) -> AbstractContextManager[None]:
        raise HeartbeatUnavailableError

    queue = Queue()
    queue.bench.service = replace(queue.bench.service, heartbeat=refused)
    assert queue.receive() == Failed(Failure.NOT_STARTED, "HeartbeatUnavailableError")
    assert queue.record.life == Life()


@pytest.mark.parametrize("clock", ["wall", "monotonic"])
def test_a_start_that_is_late_by_either_clock_is_prevented(clock: str) -> None:
    queue = Queue()
    right = queue.bench.memory.claim

    def slow(job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        answer = right(job, owner=owner, lease=lease)
        if clock == "monotonic":
            queue.bench.clock.advance(seconds=26)
        queue.bench.clock.step(seconds=26 if clock == "wall" else -26)
        return answer

    queue.bench.memory.claim = slow  # type: ignore[method-assign]
    assert queue.receive() == Failed(Failure.NOT_STARTED)
    assert not queue.bench.runs


def test_deferrals_exhaust_nothing() -> None:
    queue = Queue()
    queue.bench.memory.claim(JOB, owner="another", lease=LEASE * 100)
    assert all(isinstance(queue.receive(), Deferred) for _ in range(20))
    queue.bench.memory.release(Claim(JOB.key, "another", 1), "Error")
    assert queue.receive_all(LIMIT + 1) == [KEY_ERROR] * LIMIT + [exhausted(7)]


# However failures, deaths and faults alternate, a job has as many runs as it may, and one more where its workers die.


@pytest.mark.parametrize("how", ["late start", "http", "count not written", "claim found itself"])
def test_a_job_that_kills_its_workers_has_one_run_more_whatever_happens_between(how: str) -> None:
    queue = Queue(fail(KilledError()))
    for _ in range(4 * LIMIT):
        if how == "count not written":
            queue.bench.store._faults["begin"] = ["landed", "fails", "fails"]
        if how == "claim found itself":
            queue.bench.store._faults["claim"] = ["landed"]
        queue.receive()
        if how == "late start":
            queue.receive(within=MARGIN.total_seconds())
        if how == "http":
            assert queue.receive("http", counts_runs=False) is None
    runs = len(queue.bench.runs) - (queue.receives["http"] if how == "http" else 0)
    assert LIMIT <= runs <= LIMIT + 1


@pytest.mark.parametrize("how", ["kill and raise", "release not written", "count not written"])
def test_a_job_that_fails_and_dies_by_turns_has_one_run_more(how: str) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        raise KilledError if how == "kill and raise" and attempt.number % 2 else KeyError

    queue = Queue(run)
    for number in range(4 * LIMIT):
        if how == "release not written" and number % 2:
            queue.bench.store._faults["release"] = ["fails"] * 3
        if how == "count not written":
            queue.bench.store._faults["begin"] = ["fails"] * 3
        queue.receive()
    assert LIMIT <= len(queue.bench.runs) <= LIMIT + 1


@pytest.mark.parametrize("run", [fails, fail(PermanentError("closed")), fail(KilledError())])
def test_messages_that_cannot_be_sent_away_share_the_life_that_was_rejected(run: Any) -> None:
    queue = Queue(run)
    queue.sent = dict.fromkeys(("m1", "m2", "m3"), queue.bench.clock.now())
    for _ in range(20):
        for message in queue.sent:
            queue.receive(message)
    assert LIMIT <= len(queue.bench.runs) <= LIMIT + 1 + len(queue.sent), "a first receive of each buys one"


def test_a_count_whose_answers_were_lost_and_whose_run_is_prevented_is_taken_back() -> None:
    queue = Queue(lambda job, attempt: "ok", max_attempts=1, begin=["landed"] * 3)
    right = queue.bench.memory.begin

    def slow(claim: Claim, life: Life) -> None:
        right(claim, life)
        queue.bench.clock.advance(seconds=9)

    queue.bench.memory.begin = slow  # type: ignore[method-assign]
    assert queue.receive() == Failed(Failure.NOT_STARTED)
    queue.bench.memory.begin = right  # type: ignore[method-assign]
    assert isinstance(queue.receive(), Executed)


@pytest.mark.parametrize("when", ["its first run of a life", "counted first"])
def test_a_restart_beside_a_run_gives_the_message_all_its_runs(when: str) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if attempt.number == restarted_at:
            queue.bench.memory.restart(queue.record)
        raise KeyError

    queue, restarted_at = Queue(run), 7 if when == "its first run of a life" else 5
    if when == "its first run of a life":
        queue.receive_all(LIMIT + 1, "m1")
        queue.receive("m2")
    else:
        queue.receive_all(LIMIT, "m1")
    before = len(queue.bench.runs)
    assert queue.receive_all(LIMIT + 1, "m3")[:-1] == [KEY_ERROR] * LIMIT
    assert len(queue.bench.runs) - before == LIMIT


def test_who_was_forgotten_by_force_rejects_nothing() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        queue.bench.memory.forget(queue.record, force=True)
        raise PermanentError("closed")

    queue = Queue(run)
    assert queue.receive() == Failed(Failure.LEASE_LOST, "PermanentError")


def test_a_clock_that_is_set_ends_no_tries_of_a_completion() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        queue.bench.clock.step(hours=13)
        return "ok"

    queue = Queue(run, complete=["fails"] * 3)
    assert isinstance(queue.receive(within=3600), Executed)


@pytest.mark.parametrize("receives", [1, 2])
def test_a_job_in_whose_life_a_worker_died_runs_alone(receives: int) -> None:
    def die(_job: Job, attempt: Attempt) -> object:
        if attempt.number == 1:
            raise KilledError
        return None

    queue = Queue(die)
    assert queue.receive() is None
    queue.bench.clock.advance(seconds=2 * LEASE.total_seconds())
    service, ended = queue.bench.service, len(queue.bench.events.traces)
    beside, alone = (Delivery(receives, "m", is_alone=is_alone) for is_alone in (False, True))
    assert service.process(JOB, lease=LEASE, deadline=None, delivery=beside) == Failed(Failure.NOT_ALONE)
    assert (queue.record.life.runs, queue.record.life.unended, len(queue.bench.events.traces)) == (0, 1, ended)
    assert isinstance(service.process(JOB, lease=LEASE, deadline=None, delivery=alone), Executed)


def test_a_job_that_failed_and_killed_nothing_runs_beside_others() -> None:
    queue = Queue()
    assert queue.receive() == KEY_ERROR
    beside = Delivery(2, "m", is_alone=False)
    assert queue.bench.service.process(JOB, lease=LEASE, deadline=None, delivery=beside) == KEY_ERROR
