"""Situations reported in public, by their ids: keys, payloads, tenants, configuration."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.answer import Answer
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import InvalidJobError
from domain.identity import job_key
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operation, Operations
from domain.outcome import Executed, Rejected, Skipped
from domain.record import Completed, Status
from domain.strict_json import parse
from entrypoints.settings import SettingError, Settings
from tests.support.aws import dynamodb_store, in_process
from tests.support.clock import FakeClock
from tests.support.jobs import answer_ok, job
from tests.support.sqs import Worker, record


def pay(job: Job, attempt: Attempt) -> object:
    return "paid"


def moved_and_renamed_pay(job: Job, attempt: Attempt) -> object:
    return "paid"


def with_operations(*operations: Operation) -> Worker:
    worker = Worker()
    known = Operations(*operations)
    worker.service = replace(worker.service, operations=known)
    worker.batches = replace(worker.batches, process=worker.service.process, factory=JobFactory("test", known))
    return worker


def outcomes(worker: Worker) -> list[Any]:
    return [trace.outcome for trace in worker.events.traces]


def test_B01_moving_or_renaming_the_function_runs_nothing_again() -> None:
    worker = with_operations(Operation("pay", pay))
    worker.handle(record("m", '{"job_id":"j1","operation":"pay"}'))
    redeployed = with_operations(Operation("pay", moved_and_renamed_pay))
    redeployed.store.inner = worker.memory
    redeployed.handle(record("m2", '{"job_id":"j1","operation":"pay"}'))
    assert outcomes(redeployed) == [Skipped(Answer('"paid"'))]


def test_B02_two_operations_share_an_id_and_no_record() -> None:
    effects: list[str] = []
    worker = with_operations(
        Operation("charge", lambda job, attempt: effects.append("charge")),
        Operation("refund", lambda job, attempt: effects.append("refund")),
    )
    for operation in ("charge", "refund", "charge", "refund"):
        worker.handle(record("m", f'{{"job_id":"j1","operation":"{operation}"}}'))
    assert effects == ["charge", "refund"]


def test_B03_the_order_of_members_does_not_count_and_that_of_items_does() -> None:
    def fingerprint(payload: str) -> str:
        return job("1", payload=parse(payload)).fingerprint

    a, b = '{"x":1,"y":{"p":1,"q":2}}', '{"y":{"q":2,"p":1},"x":1}'
    assert fingerprint(a) == fingerprint(b)
    assert fingerprint('{"x":[1,2]}') != fingerprint('{"x":[2,1]}')


@pytest.mark.parametrize("body", ['{"job_id":null}', '{"job_id":""}', '{"amount":5}'])
def test_B04_a_job_without_identity_never_runs_unprotected(body: str) -> None:
    worker = Worker()
    assert worker.handle(record("m", body)) == [], "buried at its first receive"
    assert worker.runs == []
    assert worker.events.told == [("rejected_unread", "missing_job_id")]


@pytest.mark.parametrize("job_id", [" 1", "1\n", "a\u0000b"])
def test_B07_blanks_around_and_control_characters_in_an_id_are_refused(job_id: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        job(job_id)
    assert refused.value.reason == "invalid_job_id"


def test_B11_another_payload_under_the_same_id_is_refused_by_default() -> None:
    amounts: list[object] = []
    worker = Worker(lambda job, attempt: amounts.append(job.payload["amount"]))
    worker.handle(record("a", '{"job_id":"7","amount":10}'))
    worker.handle(record("b", '{"job_id":"7","amount":9999}'))
    assert amounts == [10]
    assert outcomes(worker)[1] == Rejected("payload_mismatch")


@pytest.mark.parametrize("receives", [1, 2])
@pytest.mark.parametrize("old_item", ["ALL_OLD", "NONE"])
def test_B12_a_mismatch_is_seen_on_every_path(receives: int, old_item: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process():
        worker = Worker()
        store = dynamodb_store(worker.clock, timedelta(days=1))
        client = store._layer.client
        update: Callable[..., Any] = client.update_item
        monkeypatch.setattr(
            client,
            "update_item",
            lambda **request: update(**request | {"ReturnValuesOnConditionCheckFailure": old_item}),
        )
        worker.store.inner = store
        worker.handle(record("a", '{"job_id":"7","amount":10}'))
        worker.handle(record("b", '{"job_id":"7","amount":9999}', receives=receives))
        assert outcomes(worker)[1] == Rejected("payload_mismatch")


def test_B14_a_bad_configuration_stops_the_start_and_is_named() -> None:
    with pytest.raises(TypeError, match="operation pay: volatile"):
        Operation("pay", answer_ok, "powertools_json(body).amount")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="MAX_ATTEMPTS='many'"):
        Settings.from_environment({"IDEMPOTENCY_BACKEND": "memory", "MAX_ATTEMPTS": "many"})


def test_B16_an_operation_that_changes_its_input_completes_its_own_record() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        job.payload["processed"] = True
        return None

    worker = Worker(run)
    worker.handle(record("m", '{"job_id":"j1"}'))
    assert [found.status for found in worker.memory._records.values()] == [Status.COMPLETED]
    worker.handle(record("m", '{"job_id":"j1"}'))
    assert worker.runs == ["j1"]


def test_B17_a_nested_job_on_the_same_store_keeps_a_record_of_its_own() -> None:
    def outer(job: Job, attempt: Attempt) -> object:
        inner = worker.batches.factory.job({"job_id": "j1", "operation": "inner"})
        answer = worker.service.process(inner, lease=timedelta(seconds=60), deadline=None, delivery=Delivery())
        assert isinstance(answer, Executed)
        return {"inner": answer.answer.value}

    worker = with_operations(Operation("outer", outer), Operation("inner", lambda job, attempt: "in"))
    worker.handle(record("m", '{"job_id":"j1","operation":"outer"}'))
    assert [found.status for found in worker.memory._records.values()] == [Status.COMPLETED] * 2
    worker.handle(record("m", '{"job_id":"j1","operation":"outer"}'))
    assert outcomes(worker)[-1] == Skipped(Answer('{"inner":"in"}'))


def test_B19_two_tenants_choose_the_same_id_and_share_nothing() -> None:
    worker = Worker(lambda job, attempt: job.tenant)
    worker.handle(record("a", '{"job_id":"k","tenant":"t1"}'))
    worker.handle(record("b", '{"job_id":"k","tenant":"t2"}'))
    assert outcomes(worker) == [Executed(Answer('"t1"')), Executed(Answer('"t2"'))]


def test_B20_two_messages_of_one_job_minutes_apart_are_one_job() -> None:
    worker = Worker()
    worker.handle(record("m1", '{"job_id":"j1"}'))
    worker.clock.advance(seconds=360)
    assert worker.handle(record("m2", '{"job_id":"j1"}')) == []
    assert worker.runs == ["j1"]


def test_B21_a_record_of_another_fingerprint_scheme_is_still_answered_and_keys_are_pinned() -> None:
    """Declined as it stands: instead of looking old keys up, keys never change and schemes never mismatch."""
    clock = FakeClock()
    with in_process():
        store = dynamodb_store(clock, timedelta(days=1))
        old = replace(job("1"), fingerprint="v0:abc")
        claimed: Any = store.claim(old, owner="a", lease=timedelta(seconds=60))
        store.complete(claimed.claim, Answer('"old"'))
        assert store.claim(job("1"), owner="b", lease=timedelta(seconds=60)) == Completed(
            Answer('"old"'), verified=False
        )
    assert str(job_key("onejob", "default", "job-001")).startswith("onejob.default#7cd5b101ccc2b455")
