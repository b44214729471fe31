"""Situations reported in public, by their ids: leases, fencing, lost answers, effects."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import LeaseLostError
from domain.job import Job
from domain.outcome import Executed, Failed, Failure
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Busy, Claim, Completed, Status
from tests.support.aws import dynamodb_store, in_process, item
from tests.support.aws_faults import aws_requests
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.sqs import Context, Worker, event, record
from tests.support.worker import handler

JOB = job("j1")
BODY = '{"job_id":"j1"}'
DAY = timedelta(days=1)


@pytest.fixture
def aws() -> Iterator[None]:
    with in_process():
        yield


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def taken_over(store: IdempotencyStore, clock: FakeClock) -> tuple[Claim, Claim]:
    """A's claim, whose lease has lapsed, and B's, which took over from it."""
    a = store.claim(JOB, owner="A", lease=seconds(10))
    clock.advance(seconds=11)
    b = store.claim(JOB, owner="B", lease=seconds(10))
    assert isinstance(a, Acquired)
    assert isinstance(b, Acquired)
    return a.claim, b.claim


def test_A01_a_duplicate_beside_a_long_run_is_deferred_and_never_buried() -> None:
    worker = Worker()
    running = worker.batches.factory.job({"job_id": "j1"})
    start = worker.clock.now()
    worker.memory.claim(running, owner="first", lease=seconds(70 + 30))
    worker.clock.time = start + seconds(20)
    receives, done = 0, False
    while not done:
        receives += 1
        done = worker.handle(record("dup", BODY, receives=receives)) == []
        if not done:
            if worker.clock.time < start + seconds(70):
                worker.memory.complete(Claim(running.key, "first", 1), Answer('"first"'))
            worker.clock.advance(seconds=worker.queue.timeouts["dup"])
    assert receives <= 2
    assert worker.runs == []
    assert worker.queue.letters == []


@pytest.mark.usefixtures("aws")
def test_A02_a_run_killed_by_its_time_out_is_taken_over_by_the_next_delivery() -> None:
    clock = FakeClock()
    dynamodb_store(clock, DAY).claim(JOB, owner="killed", lease=seconds(30))
    clock.advance(seconds=31)
    attempts: list[int] = []
    handle = handler(lambda job, attempt: attempts.append(attempt.number), clock=clock)
    assert handle(event(record("m", BODY, receives=2)), Context()) == {"batchItemFailures": []}
    assert attempts == [2]
    stored = item(JOB.key)
    assert (stored["status"], stored["attempts"]) == ("COMPLETED", 2)


@pytest.mark.usefixtures("aws")
def test_A04_every_claim_has_a_lease() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, DAY)
    assert isinstance(store.claim(JOB, owner="a", lease=seconds(30)), Acquired)
    clock.advance(seconds=1)
    assert isinstance(store.claim(JOB, owner="b", lease=seconds(30)), Busy)
    assert item(JOB.key)["in_progress_expiration"] > 0


@pytest.mark.usefixtures("aws")
def test_A06_a_stale_worker_that_finishes_late_writes_nothing() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, DAY)
    a, b = taken_over(store, clock)
    clock.advance(seconds=2)
    store.complete(b, Answer('"B"'))
    clock.advance(seconds=2)
    with pytest.raises(LeaseLostError):
        store.complete(a, Answer('"A"'))
    assert item(JOB.key)["data"] == '"B"'


def test_A06_the_message_of_a_stale_worker_is_not_acknowledged() -> None:
    def outlived(job: Job, attempt: Attempt) -> object:
        worker.clock.advance(seconds=61)
        other = worker.memory.claim(job, owner="B", lease=seconds(10))
        assert isinstance(other, Acquired)
        worker.memory.complete(other.claim, Answer('"B"'))
        return "A"

    worker = Worker(outlived)
    assert worker.handle(record("m", BODY)) == ["m"]
    assert worker.events.traces[0].outcome == Failed(Failure.LEASE_LOST)


@pytest.mark.usefixtures("aws")
def test_A07_a_stale_worker_that_fails_late_deletes_nothing() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, DAY)
    a, b = taken_over(store, clock)
    store.complete(b, Answer('"B"'))
    with pytest.raises(LeaseLostError):
        store.release(a, "ValueError")
    assert store.claim(JOB, owner="C", lease=seconds(10)) == Completed(Answer('"B"'))


@pytest.mark.usefixtures("aws")
def test_A09_a_claim_is_judged_by_the_record_it_writes_to_not_by_an_older_look() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, DAY)
    a = store.claim(JOB, owner="A", lease=seconds(10))
    assert isinstance(a, Acquired)
    seen_by_b = store.find(JOB.key)
    assert seen_by_b is not None
    assert seen_by_b.status is Status.IN_PROGRESS
    store.complete(a.claim, Answer('"A"'))
    clock.advance(seconds=11)
    assert store.claim(JOB, owner="B", lease=seconds(10)) == Completed(Answer('"A"'))


@pytest.mark.parametrize("skew", [5, 30])
def test_A10_a_clock_that_is_ahead_by_the_grace_steals_no_live_lease(skew: int) -> None:
    worker = Worker()
    worker.memory.claim(worker.batches.factory.job({"job_id": "j1"}), owner="owner", lease=seconds(30 + 30))
    worker.clock.advance(seconds=30)  # the owner's invocation ends now
    worker.clock.advance(seconds=skew)
    assert worker.handle(record("m", BODY, receives=2)) == ["m"]
    assert worker.runs == []


@pytest.mark.usefixtures("aws")
def test_A10_beyond_the_grace_a_lease_may_be_stolen_but_only_one_completion_lands() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, DAY)
    owner = store.claim(JOB, owner="owner", lease=seconds(60))
    clock.advance(seconds=120)
    thief = store.claim(JOB, owner="thief", lease=seconds(60))
    assert isinstance(owner, Acquired)
    assert isinstance(thief, Acquired)
    clock.advance(seconds=-120)
    with pytest.raises(LeaseLostError):
        store.complete(owner.claim, Answer('"owner"'))
    store.complete(thief.claim, Answer('"thief"'))
    assert item(JOB.key)["data"] == '"thief"'


@pytest.mark.usefixtures("aws")
def test_A13_a_claim_that_landed_unheard_is_ours() -> None:
    effects: list[str] = []
    handle = handler(lambda job, attempt: effects.append(job.job_id))
    with aws_requests(UpdateItem=["lost"]):
        assert handle(event(record("m", BODY)), Context()) == {"batchItemFailures": []}
    assert effects == ["j1"]


@pytest.mark.usefixtures("aws")
def test_A14_a_completion_is_tried_again_and_the_message_acknowledged() -> None:
    effects: list[str] = []
    handle = handler(lambda job, attempt: effects.append(job.job_id))
    with aws_requests(UpdateItem=["ok", "throttled", "denied"]) as requests:
        assert handle(event(record("m", BODY)), Context()) == {"batchItemFailures": []}
    assert effects == ["j1"]
    assert requests.count == {"UpdateItem": 1 + 3}


@pytest.mark.usefixtures("aws")
def test_A14_a_completion_that_never_lands_is_an_error_and_runs_again_only_after_its_lease(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = FakeClock()
    effects: list[int] = []
    handle = handler(lambda job, attempt: effects.append(attempt.number), clock=clock)
    failures = {"batchItemFailures": [{"itemIdentifier": "m"}]}
    fault: Any = ["ok", *["throttled"] * 100]
    with aws_requests(UpdateItem=fault):
        assert handle(event(record("m", BODY)), Context()) == failures
    assert '"CompletionLost"' in capsys.readouterr().out
    assert handle(event(record("m", BODY, receives=2)), Context()) == failures
    assert effects == [1]
    clock.advance(seconds=61)
    assert handle(event(record("m", BODY, receives=3)), Context()) == {"batchItemFailures": []}
    assert effects == [1, 2]


def test_A17_an_effect_has_the_same_key_downstream_on_every_attempt() -> None:
    charged: dict[str, int] = {}

    def run(job: Job, attempt: Attempt) -> object:
        charged.setdefault(attempt.effect_key("charge"), 1)
        if attempt.number == 1:
            raise ConnectionError("between charge and mail")
        return "mailed"

    worker = Worker(run)
    worker.handle(record("m", BODY))
    assert worker.handle(record("m", BODY, receives=2)) == []
    assert list(charged) == [f"{worker.batches.factory.job({'job_id': 'j1'}).key}#charge"]
    assert isinstance(worker.events.traces[1].outcome, Executed)
