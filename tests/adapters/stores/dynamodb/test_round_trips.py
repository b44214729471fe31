"""What a delivery costs in requests to DynamoDB, counted where the SDK sends them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.aws import dynamodb_admin, dynamodb_store, in_process
from tests.support.aws_faults import aws_requests
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.sqs import Context, event, record
from tests.support.worker import handler

BODY = '{"job_id":"job-001"}'


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


def cost(*, receives: int, done: bool = False, running: bool = False) -> dict[str, int]:
    clock = FakeClock()
    if running:
        dynamodb_store(clock, timedelta(days=1)).claim(job("job-001"), owner="x", lease=timedelta(hours=1))
    handle = handler(clock=clock)
    if done:
        handle(event(record("first", BODY)), Context())
    with aws_requests() as requests:
        handle(event(record("m", BODY, receives=receives)), Context())
    requests.count.pop("ChangeMessageVisibilityBatch", None)
    return dict(requests.count)


def test_a_new_job_costs_two_writes() -> None:
    assert cost(receives=1) == {"UpdateItem": 2}


def test_a_duplicate_costs_one_refused_write() -> None:
    assert cost(receives=1, done=True) == {"UpdateItem": 1}


def test_a_duplicate_of_a_running_job_costs_one_refused_write() -> None:
    assert cost(receives=1, running=True) == {"UpdateItem": 1}


def test_a_redelivered_duplicate_costs_one_read() -> None:
    assert cost(receives=2, done=True) == {"GetItem": 1}


def test_a_redelivered_job_that_runs_costs_three() -> None:
    assert cost(receives=2) == {"GetItem": 1, "UpdateItem": 2}


def forgotten_and_done(times: int) -> FakeClock:
    """A job that is done, was forgotten so often, and is done again each time."""
    clock = FakeClock()
    handle, admin = handler(clock=clock), dynamodb_admin(clock, timedelta(days=1))
    handle(event(record("m", BODY)), Context())
    for _ in range(times):
        seen = admin.look(job("job-001").key)
        assert seen is not None
        admin.forget(seen)
        handle(event(record("m", BODY)), Context())
    return clock


@pytest.mark.parametrize(("times", "reads"), [(0, 1), (1, 2), (2, 2)])
def test_a_redelivered_duplicate_of_a_job_that_was_forgotten_costs_a_second_read_which_is_consistent(
    times: int, reads: int
) -> None:
    handle = handler(clock=forgotten_and_done(times))
    with aws_requests() as requests:
        handle(event(record("m", BODY, receives=2)), Context())
    assert requests.count["GetItem"] == reads
    assert "UpdateItem" not in requests.count
    assert [body["ConsistentRead"] for body in requests.bodies["GetItem"]] == [False, True][:reads]


def test_a_forgotten_job_that_is_not_done_again_costs_no_second_read() -> None:
    clock = forgotten_and_done(1)
    seen = dynamodb_admin(clock, timedelta(days=1)).look(job("job-001").key)
    assert seen is not None
    dynamodb_admin(clock, timedelta(days=1)).forget(seen)
    with aws_requests() as requests:
        handler(clock=clock)(event(record("m", BODY, receives=2)), Context())
    assert requests.count == {"GetItem": 1, "UpdateItem": 2}
