"""Our layer under a bare `@idempotent_function`: what Powertools promises, and a fence."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError,
    IdempotencyPersistenceConfigError,
    IdempotencyPersistenceLayerError,
    IdempotencyValidationError,
)

from adapters.stores.dynamodb.layer import LONGEST_INVOCATION, FencedDynamoDBPersistenceLayer, FenceLostError
from tests.support.aws import TABLE, in_process, layer
from tests.support.aws_faults import aws_requests
from tests.support.decorated import Run, decorated, items, lapse


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


def bare(
    run: Run, *, over: FencedDynamoDBPersistenceLayer | None = None, prefix: str = "pay", **config: Any
) -> Callable[..., Any]:
    return decorated(run, over or layer(), prefix=prefix, **config)


def test_it_runs_once_and_replays() -> None:
    runs: list[dict[str, Any]] = []

    def run(message: dict[str, Any]) -> object:
        runs.append(message)
        return {"paid": 1}

    function = bare(run)
    assert [function(message={"job_id": "1"}) for _ in range(3)] == [{"paid": 1}] * 3
    assert len(runs) == 1
    (stored,) = items()
    assert (stored["status"], stored["attempts"]) == ("COMPLETED", 1)


def test_a_duplicate_beside_the_first_is_refused() -> None:
    def run(message: dict[str, Any]) -> object:
        with pytest.raises(IdempotencyAlreadyInProgressError):
            bare(lambda message: "second")(message=message)
        return "first"

    assert bare(run)(message={"job_id": "1"}) == "first"


def test_a_failed_function_releases_its_record_and_raises_its_own_error() -> None:
    def run(message: dict[str, Any]) -> object:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bare(run)(message={"job_id": "1"})
    (stored,) = items()
    assert (stored["status"], stored["in_progress_expiration"], stored["attempts"]) == ("INPROGRESS", 0, 1)
    assert bare(lambda message: "again")(message={"job_id": "1"}) == "again"


@pytest.mark.parametrize("error", [None, ZeroDivisionError()])
def test_a_late_worker_neither_overwrites_nor_deletes(error: Exception | None) -> None:
    def outlived(message: dict[str, Any]) -> object:
        lapse()
        assert bare(lambda message: "theirs")(message=message) == "theirs"
        if error:
            raise error
        return "late"

    with pytest.raises(IdempotencyPersistenceLayerError) as refused:
        bare(outlived)(message={"job_id": "1"})
    assert isinstance(refused.value.__cause__, FenceLostError)
    (stored,) = items()
    assert (stored["status"], json.loads(stored["data"]), stored["attempts"]) == ("COMPLETED", "theirs", 2)


def test_without_a_lambda_context_a_claim_still_has_a_lease() -> None:
    seen: list[dict[str, Any]] = []
    with pytest.warns(UserWarning, match="register_lambda_context"):
        bare(lambda message: seen.extend(items()), lambda_context=None)(message={"job_id": "1"})
    lease = datetime.fromtimestamp(int(seen[0]["in_progress_expiration"]) / 1000, UTC)
    assert LONGEST_INVOCATION - timedelta(seconds=30) < lease - datetime.now(UTC) <= LONGEST_INVOCATION


@pytest.mark.parametrize("name", ["claim", "completion"])
def test_a_lost_answer_costs_no_second_run(name: str) -> None:
    """Here the SDK itself tries again, as it does by default."""
    runs: list[object] = []
    over = FencedDynamoDBPersistenceLayer(TABLE)
    plan: Any = ["lost"] if name == "claim" else ["ok", "lost"]
    with aws_requests(UpdateItem=plan):
        bare(lambda message: runs.append(1), over=over)(message={"job_id": "1"})
        bare(lambda message: runs.append(1), over=over)(message={"job_id": "1"})
    assert runs == [1]


def test_payload_validation_works_as_in_the_stock_layer() -> None:
    function = bare(lambda message: "x", payload_validation_jmespath="amount")
    function(message={"job_id": "1", "amount": 1})
    assert function(message={"job_id": "1", "amount": 1}) == "x"
    with pytest.raises(IdempotencyValidationError):
        function(message={"job_id": "1", "amount": 2})


def test_a_nested_function_keeps_a_fence_of_its_own() -> None:
    inner = bare(lambda message: "inner", prefix="inner")
    outer = bare(lambda message: inner(message={"job_id": "2"}), prefix="outer")
    assert outer(message={"job_id": "1"}) == "inner"
    assert {stored["status"] for stored in items()} == {"COMPLETED"}
    assert len(items()) == 2


def test_a_nested_function_on_the_same_layer_is_refused_instead_of_written_to_the_wrong_record() -> None:
    """Powertools keeps the key prefix on the layer, and the inner function changes it for the outer one."""
    shared = layer()
    inner = bare(lambda message: "inner", prefix="inner", over=shared)
    outer = bare(lambda message: inner(message={"job_id": "2"}), prefix="outer", over=shared)
    with pytest.raises(IdempotencyPersistenceLayerError, match="held by another, finished or gone"):
        outer(message={"job_id": "1"})
    by_key = {stored["id"].partition("#")[0]: stored["status"] for stored in items()}
    assert by_key == {"inner": "COMPLETED", "outer": "INPROGRESS"}


def test_a_sort_key_table_is_served() -> None:
    boto3.client("dynamodb").create_table(
        TableName="composite",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    over = FencedDynamoDBPersistenceLayer("composite", key_attr="pk", sort_key_attr="sk", static_pk_value="tenant#1")
    runs: list[object] = []
    function = bare(lambda message: runs.append(1), over=over)
    function(message={"job_id": "1"})
    function(message={"job_id": "1"})
    table: Any = boto3.resource("dynamodb").Table("composite")
    (stored,) = table.scan()["Items"]
    assert (stored["pk"], stored["status"], len(runs)) == ("tenant#1", "COMPLETED", 1)


def test_a_record_that_vanishes_before_it_can_be_read_is_left_to_powertools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an emulator returns no old item, and the record goes meanwhile: Powertools asks again, and runs."""
    over = layer()
    update = over.client.update_item
    bare(lambda message: "first")(message={"job_id": "1"})

    def vanishing(**request: Any) -> Any:
        monkeypatch.setattr(over.client, "update_item", update)
        try:
            return update(**request | {"ReturnValuesOnConditionCheckFailure": "NONE"})
        finally:
            boto3.client("dynamodb").delete_item(TableName=TABLE, Key={"id": {"S": items()[0]["id"]}})

    monkeypatch.setattr(over.client, "update_item", vanishing)
    assert bare(lambda message: "second", over=over)(message={"job_id": "1"}) == "second"


OTHERS: dict[str, dict[str, Any]] = {
    "event_key_jmespath": {"event_key_jmespath": "order"},
    "payload_validation_jmespath": {"payload_validation_jmespath": "amount"},
    "raise_on_no_idempotency_key": {"raise_on_no_idempotency_key": True},
    "expires_after_seconds": {"expires_after_seconds": 5},
    "hash_function": {"hash_function": "sha256"},
    "use_local_cache": {"use_local_cache": True},
    "jmespath_options": {"jmespath_options": {"custom_functions": None}},
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_second_function_with_another_configuration_is_refused_and_told_what_to_do(name: str) -> None:
    """Powertools would go on with the first one's, and say nothing."""
    runs: list[object] = []
    shared = layer()
    first = bare(lambda message: "first", over=shared, prefix="first")
    second = bare(runs.append, over=shared, prefix="second", **OTHERS[name])
    message = {"job_id": "1", "order": "1"}
    assert first(message=message) == "first"
    for _ in range(2):
        with pytest.raises(IdempotencyPersistenceConfigError, match=rf"{name}.*differs\); give each .* of its own"):
            second(message=message)
    assert runs == []
    assert first(message=message) == "first"
    assert len(items()) == 1


def test_functions_of_one_configuration_share_a_layer() -> None:
    shared = layer()
    for prefix in ("first", "second"):

        def run(message: dict[str, Any], prefix: str = prefix) -> object:
            return prefix

        function = bare(run, over=shared, prefix=prefix, expires_after_seconds=60)
        assert [function(message={"job_id": "1"}) for _ in range(2)] == [prefix] * 2
    assert len(items()) == 2


def test_a_first_configuration_that_is_refused_is_no_configuration() -> None:
    shared = layer()
    for _ in range(2):
        with pytest.raises(AttributeError):
            bare(lambda message: "x", over=shared, hash_function="none")(message={"job_id": "1"})
    assert bare(lambda message: "x", over=shared)(message={"job_id": "1"}) == "x"


def test_a_configuration_that_is_changed_after_its_first_use_is_another_one() -> None:
    shared, config = layer(), IdempotencyConfig(event_key_jmespath="job_id")
    shared.configure(config, "first")
    shared.configure(config, "second")
    config.event_key_jmespath = "order"
    with pytest.raises(IdempotencyPersistenceConfigError, match="event_key_jmespath differs"):
        shared.configure(config, "first")


def test_functions_side_by_side_on_one_layer_keep_their_own_keys() -> None:
    """Powertools keeps the prefix of the keys on the layer, whichever thread called last."""
    shared, config = layer(), IdempotencyConfig(event_key_jmespath="job_id")
    shared.configure(config, key_prefix="here")
    with ThreadPoolExecutor(1) as other:
        other.submit(shared.configure, config, key_prefix="there").result()
        assert (shared.function_name, other.submit(lambda: shared.function_name).result()) == ("here", "there")
    with ThreadPoolExecutor(1) as new:
        assert new.submit(lambda: shared.function_name).result() == "there"
