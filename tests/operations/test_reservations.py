"""An operation that calls AWS, tested as a function over moto. Copy this file for an operation of yours."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from moto import mock_aws

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from operations import OPERATIONS
from operations.reservations import client, reserve
from tests.support.jobs import job


@pytest.fixture
def seats(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A table with one event, which has three free seats."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("RESERVATIONS_TABLE", "seats")
    client.cache_clear()
    with mock_aws():
        table = boto3.resource("dynamodb").create_table(
            TableName="seats",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        table.put_item(Item={"id": "concert", "seats_free": 3})
        yield table
    client.cache_clear()


def free(seats: Any) -> int:
    return int(seats.get_item(Key={"id": "concert"})["Item"]["seats_free"])


def attempt(of: Job, number: int = 1) -> Attempt:
    return Attempt(number, f"run-{number}", datetime.now(UTC), lambda: False, of.key)


def test_seats_are_taken_once_however_many_attempts_a_job_has(seats: Any) -> None:
    mine = job("r-1", event="concert", seats=2)
    for number in (1, 2):
        assert reserve(mine, attempt(mine, number)) == {"event": "concert", "seats": 2}
    assert free(seats) == 1


@pytest.mark.parametrize("event", ["concert", "no such event"])
def test_more_seats_than_are_free_are_refused_and_none_is_taken(seats: Any, event: str) -> None:
    mine = job("r-1", event=event, seats=4)
    with pytest.raises(PermanentError) as error:
        reserve(mine, attempt(mine))
    assert (error.value.code, free(seats)) == ("sold_out", 3)


WRONG: list[dict[str, Any]] = [
    {},
    {"event": 1, "seats": 1},
    {"event": "concert", "seats": "1"},
    {"event": "concert", "seats": 0},
    {"event": "concert", "seats": True},
]


@pytest.mark.parametrize("payload", WRONG)
def test_a_payload_that_is_wrong_is_refused_at_once_without_its_values(seats: Any, payload: dict[str, Any]) -> None:
    mine = job("r-1", **payload)
    with pytest.raises(PermanentError) as error:
        reserve(mine, attempt(mine))
    assert str(error.value) == "invalid_payload: event: expected a string; seats: expected a number from 1"
    assert free(seats) == 3


def test_what_may_pass_is_raised_and_tried_again(seats: Any) -> None:
    seats.delete()
    mine = job("r-1", event="concert", seats=1)
    with pytest.raises(client().exceptions.ResourceNotFoundException):
        reserve(mine, attempt(mine))


def test_it_is_registered() -> None:
    registered = OPERATIONS.find("reserve")
    assert registered is not None
    assert registered.run is reserve
