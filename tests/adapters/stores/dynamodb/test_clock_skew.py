"""Two workers whose clocks differ: within the grace nobody is overtaken, beyond it nothing is overwritten."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.record import Acquired, Busy, Claim, Completed
from tests.support.aws import dynamodb_store, in_process
from tests.support.clock import FakeClock
from tests.support.jobs import job

JOB = job("job-001")
INVOCATION = timedelta(seconds=60)
GRACE = timedelta(seconds=30)
RETENTION = timedelta(days=1)
INSTANT = timedelta(milliseconds=1)


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


class Skewed:
    """A worker with the right clock, and one whose clock is ahead by `skew`; time passes for both alike."""

    def __init__(self, skew: timedelta) -> None:
        self.right, self.other = FakeClock(), FakeClock()
        self.other.time = self.right.time + skew
        self.worker, self.ahead = (self.store(clock) for clock in (self.right, self.other))

    def store(self, clock: FakeClock) -> DynamoDBIdempotencyStore:
        return dynamodb_store(clock, RETENTION)

    def passes(self, time: timedelta) -> None:
        self.right.time += time
        self.other.time += time


def acquired(store: DynamoDBIdempotencyStore, owner: str) -> Claim:
    answer = store.claim(JOB, owner=owner, lease=INVOCATION + GRACE)
    assert isinstance(answer, Acquired)
    return answer.claim


@pytest.mark.parametrize("skew", [-GRACE, timedelta(0), GRACE])
def test_clocks_apart_by_no_more_than_the_grace_leave_an_invocation_its_claim(skew: timedelta) -> None:
    workers = Skewed(skew)
    held = acquired(workers.worker, "a")
    workers.passes(INVOCATION)
    assert isinstance(workers.ahead.claim(JOB, owner="b", lease=INVOCATION + GRACE), Busy)
    workers.worker.complete(held, Answer('"a"'))
    assert workers.ahead.claim(JOB, owner="b", lease=INVOCATION + GRACE) == Completed(Answer('"a"'))


def test_a_clock_ahead_by_more_takes_over_early_and_the_late_worker_changes_nothing() -> None:
    workers = Skewed(GRACE + INSTANT)
    late = acquired(workers.worker, "a")
    workers.passes(INVOCATION)
    taken = acquired(workers.ahead, "b")
    assert taken.attempt == 2
    writes: list[Callable[[], None]] = [
        lambda: workers.worker.renew(late, INVOCATION),
        lambda: workers.worker.complete(late, Answer('"a"')),
        lambda: workers.worker.release(late, "Error"),
    ]
    before = workers.worker.find(JOB.key)
    for write in writes:
        with pytest.raises(LeaseLostError):
            write()
    assert workers.worker.find(JOB.key) == before
    workers.ahead.complete(taken, Answer('"b"'))
    assert workers.worker.claim(JOB, owner="c", lease=INVOCATION) == Completed(Answer('"b"'))


def test_a_clock_behind_waits_longer_and_never_overtakes() -> None:
    workers = Skewed(-10 * GRACE)
    end = workers.right.now() + INVOCATION + GRACE
    acquired(workers.worker, "a")
    workers.passes(INVOCATION + GRACE + INSTANT)
    assert workers.ahead.claim(JOB, owner="b", lease=INVOCATION) == Busy(end)
    workers.passes(10 * GRACE)
    assert acquired(workers.ahead, "b").attempt == 2


def test_a_release_frees_the_job_on_a_clock_that_is_years_behind() -> None:
    workers = Skewed(timedelta(days=-4000))
    workers.worker.release(acquired(workers.worker, "a"), "Error")
    assert acquired(workers.ahead, "b").attempt == 2
