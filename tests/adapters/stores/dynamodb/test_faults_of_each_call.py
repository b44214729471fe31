"""Each fault of the SDK on each call of the store, alone and under the service: fail closed, one effect, ask again."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import get_args

import pytest

from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from adapters.threads.heartbeat import ThreadHeartbeat
from domain.answer import Answer
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import StoreUnavailableError
from domain.job import Job
from domain.outcome import Executed, Failed, Failure, Outcome, Skipped
from domain.record import Acquired, Claim, Record, Status
from domain.service import STORE_TRIES, JobService, no_heartbeat
from tests.support.aws import dynamodb_store, in_process
from tests.support.aws_faults import AwsFault, aws_requests
from tests.support.clock import FakeClock
from tests.support.jobs import RecordedEvents, counting_ids, job, operations

LEASE = timedelta(seconds=60)
ANSWER = Answer('"ok"')
JOB = job("job-001")
REDELIVERED = Delivery(receives=2)
FAULTS: tuple[AwsFault, ...] = tuple(fault for fault in get_args(AwsFault.__value__) if fault != "ok")


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


type Call = Callable[[DynamoDBIdempotencyStore, Claim], object]

CALLS: dict[str, Call] = {
    "complete": lambda store, held: store.complete(held, ANSWER),
    "release": lambda store, held: store.release(held, "Error"),
    "renew": lambda store, held: store.renew(held, LEASE * 2),
    "find": lambda store, held: store.find(held.key),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", list(CALLS))
def test_a_fault_is_store_unavailable_writes_nothing_unless_lost_and_asking_again_is_safe(
    name: str, fault: AwsFault
) -> None:
    store, call = dynamodb_store(FakeClock(), LEASE), CALLS[name]
    claimed, untouched = (store.claim(job(job_id), owner="a", lease=LEASE) for job_id in ("1", "2"))
    assert isinstance(claimed, Acquired)
    assert isinstance(untouched, Acquired)
    call(store, untouched.claim)
    request = "GetItem" if name == "find" else "UpdateItem"
    before = store.find(claimed.claim.key)
    with aws_requests(**{request: [fault]}) as requests, pytest.raises(StoreUnavailableError, match="DynamoDB"):
        call(store, claimed.claim)
    assert requests.count == {request: 1}, "the SDK does not try again by itself"
    wanted = comparable(store.find(untouched.claim.key))
    after = store.find(claimed.claim.key)
    assert after == before if fault != "lost" else comparable(after) == wanted
    call(store, claimed.claim)
    assert comparable(store.find(claimed.claim.key)) == wanted


@pytest.mark.parametrize("fault", FAULTS)
def test_a_claim_that_met_a_fault_is_acquired_by_the_next_try_as_the_same_attempt(fault: AwsFault) -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    with aws_requests(UpdateItem=[fault]) as requests, pytest.raises(StoreUnavailableError, match="DynamoDB"):
        store.claim(JOB, owner="a", lease=LEASE)
    assert requests.count == {"UpdateItem": 1}
    assert (store.find(JOB.key) is not None) == (fault == "lost")
    assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(Claim(JOB.key, "a", 1))


def comparable(record: Record | None) -> object:
    return record and (record.status, record.owner, record.attempts, record.lease_until, record.answer)


class Bench:
    """The service over DynamoDB; its operation fails, or runs for so many sixths of a lease, the heart beating."""

    def __init__(self, *, fails: bool = False, sixths: int = 0) -> None:
        self.clock, self.events = FakeClock(), RecordedEvents()
        self.store = dynamodb_store(self.clock, timedelta(days=1))
        self.effects: list[int] = []
        self.fails, self.sixths, self.lost_at_the_end = fails, sixths, False
        self.heartbeat = ThreadHeartbeat(self.store.renew, self.clock)
        self.service = JobService(
            store=self.store,
            operations=operations(self.run),
            events=self.events,
            clock=self.clock,
            new_id=counting_ids(),
            jitter=lambda: 0.5,
            max_attempts=5,
            margin=timedelta(seconds=5),
            heartbeat=self.heartbeat if sixths else no_heartbeat,
        )

    def run(self, job: Job, attempt: Attempt) -> object:
        self.effects.append(attempt.number)
        if self.fails:
            raise ConnectionError
        for _ in range(self.sixths):
            self.clock.advance(seconds=LEASE.total_seconds() / 6)
            self.heartbeat.beat()
        self.lost_at_the_end = attempt.lost()
        return "ok"

    def deliver(self, delivery: Delivery = REDELIVERED, *, within: int | None = 30) -> Outcome:
        deadline = None if within is None else self.clock.now() + timedelta(seconds=within)
        return self.service.process(JOB, lease=LEASE, deadline=deadline, delivery=delivery)

    def status(self) -> Status | None:
        record = self.store.find(JOB.key)
        return None if record is None else record.status


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_each_request_in_turn_costs_a_pause_and_no_second_effect(fault: AwsFault) -> None:
    bench = Bench()
    with aws_requests(GetItem=[fault], UpdateItem=[fault, "ok", fault]):
        assert bench.deliver() == Executed(ANSWER)
        assert bench.deliver() == Skipped(ANSWER)
    assert bench.effects == [1]
    assert len(bench.clock.slept) == 3


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("request_name", ["GetItem", "UpdateItem"])
def test_while_look_up_or_claim_cannot_be_answered_nothing_runs(request_name: str, fault: AwsFault) -> None:
    bench = Bench()
    with aws_requests(**{request_name: [fault] * STORE_TRIES}):
        assert bench.deliver() == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")
    assert bench.effects == []
    bench.clock.advance(seconds=61)
    assert bench.deliver() == Executed(ANSWER)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_completion_is_tried_until_the_margin_and_never_given_back(fault: AwsFault) -> None:
    bench = Bench()
    with aws_requests(UpdateItem=["ok", *[fault] * 100]) as requests:
        assert bench.deliver() == Failed(Failure.COMPLETION_LOST, "StoreUnavailableError")
    assert requests.count["UpdateItem"] > STORE_TRIES
    assert bench.clock.slept
    assert bench.status() is (Status.COMPLETED if fault == "lost" else Status.IN_PROGRESS)
    assert bench.effects == [1]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_release_that_fails_is_told_beside_the_failure_and_never_instead(fault: AwsFault) -> None:
    bench = Bench(fails=True)
    with aws_requests(UpdateItem=["ok", *[fault] * STORE_TRIES]):
        assert bench.deliver() == Failed(Failure.OPERATION_RAISED, "ConnectionError")
    assert [type(error) for error in bench.events.failed_releases] == [StoreUnavailableError]
    record = bench.store.find(JOB.key)
    assert record is not None
    assert (record.owner is None) == (fault == "lost")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_renewal_that_fails_twice_is_tried_again_before_the_lease_is_over(fault: AwsFault) -> None:
    bench = Bench(sixths=9)
    with aws_requests(UpdateItem=["ok", fault, fault]):
        assert bench.deliver(within=None) == Executed(ANSWER)
    assert not bench.lost_at_the_end


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lease_that_cannot_be_renewed_is_lost_to_its_worker(fault: AwsFault) -> None:
    bench = Bench(sixths=9)
    with aws_requests(UpdateItem=["ok", *[fault] * 9]):
        assert bench.deliver(within=None) == Executed(ANSWER), "nobody took over"
    assert bench.lost_at_the_end
