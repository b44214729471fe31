"""The doubles of DynamoDB beside the emulator: the same requests, the same answers, the same refusals.

The simulator's lives in its process; the benchmarks' answers over HTTP, and Powertools' own layer uses it too.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from uuid import uuid4

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError
from botocore.exceptions import ClientError

from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from benchmarks.stand_in import listening
from benchmarks.table import Table
from domain.answer import Answer
from domain.errors import LeaseHeldError, LeaseLostError, RecordChangedError
from domain.job_factory import JobFactory
from domain.record import Acquired, Claim
from tests.simulation.dynamodb import DynamoDBDouble
from tests.support.aws import TABLE, dynamodb_client, emulated
from tests.support.clock import FakeClock
from tests.support.decorated import decorated
from tests.support.jobs import job, operations

RETENTION = timedelta(seconds=30)


@pytest.fixture(scope="module", autouse=True)
def _aws() -> Iterator[None]:
    with emulated():
        yield


def over_http() -> Any:
    """A client of the benchmarks' table."""
    return boto3.client("dynamodb", endpoint_url=f"http://127.0.0.1:{listening(Table(), latency=0)}")


class Both:
    """Asks both, and gives the emulator's answer if they agree."""

    def __init__(self, double: Any, mine: str = "") -> None:
        self.double, self.mine = double, mine
        self.real: Any = dynamodb_client()

    def update_item(self, **request: Any) -> Any:
        return self._ask("update_item", request)

    def get_item(self, **request: Any) -> Any:
        return self._ask("get_item", request)

    def put_item(self, **request: Any) -> Any:
        return self._ask("put_item", request)

    def delete_item(self, **request: Any) -> Any:
        return self._ask("delete_item", request)

    def scan(self, **request: Any) -> Any:
        """The whole table; other tests have theirs in it too."""
        mine = self.double.scan(TableName=request["TableName"], Limit=1000)["Items"]
        keys = {item["id"]["S"] for item in mine}
        pages = self.real.get_paginator("scan").paginate(TableName=request["TableName"], ConsistentRead=True)
        theirs = [item for page in pages for item in page["Items"] if item["id"]["S"].startswith(self.mine)]
        by_key = {item["id"]["S"]: item for item in theirs}
        assert {key: _plain(item) for key, item in by_key.items()} == {item["id"]["S"]: _plain(item) for item in mine}
        assert keys == by_key.keys()
        return self.double.scan(**request)

    def _ask(self, name: str, request: dict[str, Any]) -> Any:
        answers = []
        for client in (self.double, self.real):
            try:
                answers.append(_plain(getattr(client, name)(**request)))
            except ClientError as error:
                answers.append((error.response["Error"]["Code"], _plain(error.response.get("Item"))))
        assert answers[0] == answers[1], (name, request)
        return getattr(self.real, name)(**request) if name == "get_item" else self._answer(answers[1])

    def _answer(self, answer: Any) -> Any:
        if isinstance(answer, tuple):
            code, item = answer
            told: Any = {"Error": {"Code": code}} | ({"Item": json.loads(item)} if item else {})
            raise ClientError(told, "UpdateItem")
        return json.loads(answer) if answer else {}


def _plain(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return json.dumps({name: one for name, one in value.items() if name != "ResponseMetadata"}, sort_keys=True)


@pytest.mark.parametrize("double", [DynamoDBDouble, over_http])
@pytest.mark.parametrize("seed", range(6))
def test_the_store_sees_no_difference(seed: int, double: Callable[[], Any]) -> None:
    """Random requests of the port, on a few keys; each request of the layer goes to both."""
    chance, clock, run = Random(seed), FakeClock(), uuid4().hex
    layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=Both(double()))
    store = DynamoDBIdempotencyStore(layer, clock, RETENTION)
    claims: list[Claim] = []
    landed = 0
    for _ in range(80):
        clock.advance(seconds=chance.choice((0, 1, 5, 40)))
        wanted = job(f"{run}-{chance.randint(0, 1)}", amount=chance.randint(0, 1))
        if chance.random() < 0.2:
            wanted = replace(wanted, fingerprint=f"other:{wanted.fingerprint}")
        try:
            if not claims or chance.random() < 0.5:
                lease = timedelta(seconds=chance.choice((0, 3, 10)))
                answer = store.claim(wanted, owner=f"o{chance.randint(0, 1)}", lease=lease)
                claims += [answer.claim] if isinstance(answer, Acquired) else []
            else:
                claim = chance.choice(claims)
                match chance.randint(0, 3):
                    case 0:
                        store.complete(claim, chance.choice((Answer("1"), Answer("null", "too large"))))
                    case 1:
                        store.release(claim, "OSError", forget_payload=chance.random() < 0.5)
                    case 2:
                        store.renew(claim, timedelta(seconds=5))
                    case _:
                        store.find(claim.key)
            landed += 1
        except LeaseLostError:
            pass
    assert landed > 20


@pytest.mark.parametrize("seed", range(6))
def test_nor_does_an_operator(seed: int) -> None:
    """Forgetting, paging and purging: the same answers, the same refusals, the same records left."""
    chance, clock, run = Random(seed), FakeClock(), f"n{uuid4().hex[:10]}"
    layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=Both(DynamoDBDouble(), run))
    store, admin = DynamoDBIdempotencyStore(layer, clock, RETENTION), DynamoDBStoreAdmin(layer, clock, RETENTION)
    factory = JobFactory(run, operations())
    jobs = [factory.job({"job_id": f"job-{number}"}) for number in range(4)]
    did: Counter[str] = Counter()
    for _ in range(60):
        clock.advance(seconds=chance.choice((0, 1, 5, 40)))
        wanted = chance.choice(jobs)
        try:
            match chance.randint(0, 4):
                case 0 | 1:
                    answer = store.claim(wanted, owner="o", lease=timedelta(seconds=chance.choice((0, 5))))
                    if isinstance(answer, Acquired) and chance.random() < 0.5:
                        store.complete(answer.claim, Answer("1"))
                case 2 | 3:
                    seen = admin.look(wanted.key)
                    if seen is not None:
                        admin.forget(seen, force=chance.random() < 0.3)
                        did["forgotten"] += 1
                case _:
                    after: str | None = None
                    while True:
                        page = admin.purge(after=after, limit=2)
                        did["purged"] += page.deleted
                        after = page.after
                        if after is None:
                            break
        except (RecordChangedError, LeaseHeldError):
            did["refused"] += 1
    assert {record.key for record in admin.records()} <= {one.key for one in jobs}
    assert min(did["forgotten"], did["purged"], did["refused"]) > 0


def test_nor_does_powertools_own_layer() -> None:
    """What the bare handler of the benchmarks asks: a claim, its end, a duplicate, a failure that is deleted."""
    runs: list[str] = []

    def run(message: dict[str, Any]) -> object:
        runs.append(message["job_id"])
        if message.get("fails"):
            raise OSError("no")
        if message.get("again"):
            with pytest.raises(IdempotencyAlreadyInProgressError):
                charge(message={"job_id": message["job_id"]})
        return {"charged": message["job_id"]}

    layer = DynamoDBPersistenceLayer(TABLE, boto3_client=Both(over_http()))  # type: ignore[arg-type]
    charge = decorated(run, layer, prefix=uuid4().hex)
    assert charge(message={"job_id": "a", "again": True}) == charge(message={"job_id": "a"}) == {"charged": "a"}
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            charge(message={"job_id": "b", "fails": True})
    assert runs == ["a", "b", "b"]


GOOD: dict[str, Any] = {
    "TableName": TABLE,
    "Key": {"id": {"S": "refusals"}},
    "UpdateExpression": "SET #a = :a",
    "ConditionExpression": "attribute_not_exists(#id)",
    "ExpressionAttributeNames": {"#a": "a", "#id": "id"},
    "ExpressionAttributeValues": {":a": {"S": "x"}},
}
REFUSED: dict[str, dict[str, Any]] = {
    "unused name": {"ExpressionAttributeNames": {"#a": "a", "#id": "id", "#unused": "u"}},
    "unused value": {"ExpressionAttributeValues": {":a": {"S": "x"}, ":unused": {"S": "u"}}},
    "missing name": {"ExpressionAttributeNames": {"#a": "a"}},
    "missing value": {"UpdateExpression": "SET #a = :b", "ExpressionAttributeValues": {":a": {"S": "x"}}},
    "empty key": {"Key": {"id": {"S": ""}}},
    "too large": {"ExpressionAttributeValues": {":a": {"S": "x" * 409_600}}},
    "condition": {"ConditionExpression": "#id = :a"},
}


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_what_the_emulator_refuses_the_double_refuses(changes: dict[str, Any]) -> None:
    codes = []
    for client in (DynamoDBDouble(), boto3.client("dynamodb")):
        with pytest.raises(ClientError) as refused:
            client.update_item(**{**GOOD, **changes})
        codes.append(refused.value.response["Error"]["Code"])
    assert codes[0] == codes[1]
