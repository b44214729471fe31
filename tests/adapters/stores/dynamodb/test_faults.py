"""DynamoDB on a bad day, from the SDK upwards: fail closed, land once, and recognise what landed."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseLostError, StoreUnavailableError
from domain.record import Acquired, Busy, Claim, Completed
from tests.support.aws import TABLE, dynamodb_store, in_process, item
from tests.support.aws_faults import AwsFault, aws_requests
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.sqs import Context, event, record
from tests.support.worker import handler

JOB = job("job-001", amount=10)
LEASE = timedelta(seconds=60)
ANSWER = Answer('"ok"')


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


def plant(**attributes: Any) -> None:
    """A record as somebody else would have written it."""
    table: Any = boto3.resource("dynamodb").Table(TABLE)
    table.put_item(Item={"id": str(JOB.key), **attributes})


def without_old_items(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an emulator that does not know ReturnValuesOnConditionCheckFailure."""
    update = client.update_item
    monkeypatch.setattr(
        client, "update_item", lambda **request: update(**request | {"ReturnValuesOnConditionCheckFailure": "NONE"})
    )


def test_a_claim_that_landed_unheard_is_recognised_by_the_next_try() -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    with aws_requests(UpdateItem=["lost"]), pytest.raises(StoreUnavailableError):
        store.claim(JOB, owner="a", lease=LEASE)
    assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(Claim(JOB.key, "a", 1))
    assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Busy)


def test_a_completion_that_landed_unheard_is_recognised_by_the_next_try() -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    with aws_requests(UpdateItem=["lost"]), pytest.raises(StoreUnavailableError):
        store.complete(Claim(JOB.key, "a", 1), ANSWER)
    store.complete(Claim(JOB.key, "a", 1), ANSWER)
    assert store.claim(JOB, owner="b", lease=LEASE) == Completed(ANSWER)


@pytest.mark.parametrize(
    "plan", [["lost"], ["throttled", "lost"], ["ok", "lost"], ["lost", "lost", "ok", "lost", "lost", "broken", "lost"]]
)
def test_lost_answers_cost_no_second_effect(plan: list[AwsFault]) -> None:
    runs = []
    handle = handler(lambda job, attempt: runs.append(attempt.number))
    with aws_requests(UpdateItem=plan):
        assert handle(event(record("a", '{"job_id":"1"}')), Context()) == {"batchItemFailures": []}
        assert handle(event(record("b", '{"job_id":"1"}')), Context()) == {"batchItemFailures": []}
    assert runs == [1]


def test_where_an_emulator_returns_no_old_item_one_consistent_read_does(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    store.complete(Claim(JOB.key, "a", 1), ANSWER)
    without_old_items(store._layer.client, monkeypatch)
    with aws_requests() as requests:
        assert store.claim(JOB, owner="b", lease=LEASE) == Completed(ANSWER)
        store.complete(Claim(JOB.key, "a", 1), ANSWER)
        with pytest.raises(LeaseLostError):
            store.complete(Claim(job("2").key, "a", 1), ANSWER)
    assert requests.count == {"UpdateItem": 3, "GetItem": 3}


def test_a_record_that_goes_between_refusal_and_reading_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    client = store._layer.client
    update = client.update_item

    def vanishing(**request: Any) -> Any:
        try:
            return update(**request | {"ReturnValuesOnConditionCheckFailure": "NONE"})
        finally:
            boto3.client("dynamodb").delete_item(TableName=TABLE, Key={"id": {"S": str(JOB.key)}})

    monkeypatch.setattr(client, "update_item", vanishing)
    with pytest.raises(StoreUnavailableError, match="there is no record"):
        store.claim(JOB, owner="b", lease=LEASE)


def test_a_record_that_becomes_free_between_refusal_and_reading_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    client = store._layer.client
    update, read = client.update_item, client.get_item
    monkeypatch.setattr(
        client, "update_item", lambda **request: update(**request | {"ReturnValuesOnConditionCheckFailure": "NONE"})
    )

    def released_meanwhile(**request: Any) -> Any:
        monkeypatch.setattr(client, "update_item", update)
        store.release(Claim(JOB.key, "a", 1), "Error")
        return read(**request)

    monkeypatch.setattr(client, "get_item", released_meanwhile)
    with pytest.raises(StoreUnavailableError, match="the record is free"):
        store.claim(JOB, owner="b", lease=LEASE)
    assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Acquired)


@pytest.mark.parametrize(
    "attributes",
    [
        {"status": "INPROGRESS", "job_id": "job-002", "expiration": 9_999_999_999},
        {"status": "COMPLETED", "job_id": "job-002", "expiration": 1},
        {"status": "INPROGRESS", "job_id": "job-002", "expiration": 1, "in_progress_expiration": 0},
    ],
)
def test_a_record_of_another_job_is_neither_read_nor_taken(attributes: dict[str, Any]) -> None:
    plant(**attributes)
    before = item(JOB.key)
    with pytest.raises(ForeignRecordError, match="belongs to another job_id"):
        dynamodb_store(FakeClock(), LEASE).claim(JOB, owner="a", lease=LEASE)
    assert item(JOB.key) == before


@pytest.mark.parametrize(
    "attributes",
    [
        {"colour": "red"},
        {"status": "INPROGRESS"},
        {"status": "PAUSED", "expiration": 9_999_999_999},
        {"status": "INPROGRESS", "expiration": 9_999_999_999, "in_progress_expiration": 10**30},
        {"status": "INPROGRESS", "expiration": 9_999_999_999, "attempts": "abc"},
        {"status": "INPROGRESS", "expiration": 9_999_999_999, "attempts": ["a"]},
        {"status": "COMPLETED", "expiration": 9_999_999_999, "validation": 7},
    ],
)
def test_a_record_that_nobody_of_ours_wrote_fails_closed(attributes: dict[str, Any]) -> None:
    plant(**attributes)
    before = item(JOB.key)
    store = dynamodb_store(FakeClock(), LEASE)
    with pytest.raises(ForeignRecordError):
        store.claim(JOB, owner="a", lease=LEASE)
    with pytest.raises(ForeignRecordError):
        store.find(JOB.key)
    assert item(JOB.key) == before


def test_a_missing_table_runs_nothing() -> None:
    runs: list[int] = []
    handle = handler(lambda job, attempt: runs.append(1), table="nowhere")
    answer = handle(event(record("a", '{"job_id":"1"}')), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "a"}]}
    assert runs == []


def test_a_live_lease_outlasts_a_retention_that_is_over() -> None:
    """No record of ours is so; one that another tool wrote may be."""
    clock = FakeClock()
    now = int(clock.now().timestamp())
    plant(status="INPROGRESS", expiration=now - 100, in_progress_expiration=(now + 100) * 1000)
    store = dynamodb_store(clock, LEASE)
    assert isinstance(store.claim(JOB, owner="a", lease=LEASE), Busy)
    clock.advance(seconds=100.001)
    assert isinstance(store.claim(JOB, owner="a", lease=LEASE), Acquired)


def test_a_lookup_is_eventually_consistent_and_a_second_look_at_a_refusal_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    without_old_items(store._layer.client, monkeypatch)
    with aws_requests() as requests:
        store.find(JOB.key)
        store.claim(JOB, owner="b", lease=LEASE)
    assert [body["ConsistentRead"] for body in requests.bodies["GetItem"]] == [False, True]


def test_a_release_that_landed_unheard_is_recognised_by_the_next_try() -> None:
    store = dynamodb_store(FakeClock(), LEASE)
    store.claim(JOB, owner="a", lease=LEASE)
    with aws_requests(UpdateItem=["lost"]), pytest.raises(StoreUnavailableError):
        store.release(Claim(JOB.key, "a", 1), "Error")
    store.release(Claim(JOB.key, "a", 1), "Error")
    assert store.claim(JOB, owner="b", lease=LEASE) == Acquired(Claim(JOB.key, "b", 2), "Error")


def test_an_unreadable_record_whose_time_is_over_is_taken_and_not_believed() -> None:
    plant(status="INPROGRESS", expiration=1, in_progress_expiration=1, validation=7, attempts=4)
    answer = dynamodb_store(FakeClock(), LEASE).claim(JOB, owner="a", lease=LEASE)
    assert answer == Acquired(Claim(JOB.key, "a", 5), None, verified=False)
