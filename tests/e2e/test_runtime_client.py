"""The zipped bundle under Lambda's real runtime client, which the emulator does not use."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adapters.sqs.received import lambda_event
from entrypoints.emulator.deployment import HOST_ARCHITECTURE
from entrypoints.emulator.launcher import Emulator
from infra.bundle import Bundle, build
from infra.worker_props import Architecture
from tests.support.aws import TABLE, emulated
from tests.support.runtime_api import Answer, Sandbox, function, sandbox
from tests.support.sqs_aws import Queues, make_queues

NOTHING_FAILED = Answer("response", {"batchItemFailures": []})


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return build(Architecture(HOST_ARCHITECTURE))


@pytest.fixture
def aws() -> Iterator[Emulator]:
    with emulated() as running:
        yield running


@pytest.fixture
def queues(aws: Emulator) -> Queues:
    return make_queues()


@pytest.fixture
def worker(bundle: Bundle, tmp_path: Path, aws: Emulator, queues: Queues) -> Iterator[Sandbox]:
    settings = {"IDEMPOTENCY_TABLE": TABLE, "DEAD_LETTER_QUEUE_URL": queues.dead_letter_url}
    with sandbox(bundle, tmp_path, aws.environment() | settings) as started:
        yield started


def received(queues: Queues, *bodies: str) -> dict[str, Any]:
    queues.send(*bodies)
    return lambda_event(queues.receive(len(bodies)), queues.arn)


def metrics(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: line[name] for name in line if name.startswith("Jobs")} for line in lines if "_aws" in line]


def test_an_event_is_worked_off(worker: Sandbox, queues: Queues) -> None:
    assert worker.api.invoke(received(queues, '{"job_id":"1"}', '{"job_id":')) == NOTHING_FAILED
    told = {line["event"]: line for line in worker.lines() if "event" in line}
    assert told.keys() == {"business_operation_executed", "job_rejected"}
    (letter,) = queues.receive(1, url=queues.dead_letter_url)
    burial = json.loads(letter["MessageAttributes"]["onejob"]["StringValue"])
    assert (burial["reason"], burial["request_id"]) == ("not_json", "request-1")


def test_a_warm_second_event_has_nothing_left_over_from_the_first(worker: Sandbox, queues: Queues) -> None:
    assert worker.api.invoke(received(queues, '{"job_id":"1"}', '{"job_id":"2"}')) == NOTHING_FAILED
    first = worker.lines()
    assert metrics(first) == [{"JobsExecuted": [1.0, 1.0]}]
    assert worker.api.invoke(received(queues, '{"job_id":"3"}', "{"), "request-2") == NOTHING_FAILED
    second = worker.lines()[len(first) :]
    assert [line.get("job_id") for line in second if "event" in line].count("3") == 1
    assert not [line for line in second if line.get("job_id") in ("1", "2")]
    assert metrics(second) == [{"JobsExecuted": [1.0], "JobsRejected": [1.0]}]
    (letter,) = queues.receive(1, url=queues.dead_letter_url)
    assert json.loads(letter["MessageAttributes"]["onejob"]["StringValue"])["request_id"] == "request-2"


def test_what_is_no_sqs_batch_is_an_error_and_the_next_event_is_worked_off(worker: Sandbox, queues: Queues) -> None:
    failed = worker.api.invoke({"detail-type": "Scheduled Event"})
    assert (failed.kind, failed.body["errorType"]) == ("error", "NotAnSqsBatchError")
    assert worker.api.invoke(received(queues, '{"job_id":"1"}'), "request-2") == NOTHING_FAILED


def test_a_bad_setting_stops_the_start_and_is_named(bundle: Bundle, tmp_path: Path) -> None:
    with function(bundle, tmp_path, {"AWS_DEFAULT_REGION": "us-east-1"}) as (api, _):
        answer = api.answer()
    assert answer.kind == "init error"
    assert "IDEMPOTENCY_TABLE is not set" in answer.body["errorMessage"]


def test_a_cold_start_prints_nothing_and_takes_everything_from_the_bundle_and_the_runtime(worker: Sandbox) -> None:
    assert worker.log.read_text() == ""


@pytest.mark.parametrize("package", ["dependency_injector", "aws_lambda_powertools", "typing_extensions"])
def test_what_the_bundle_lacks_is_missed(bundle: Bundle, tmp_path: Path, package: str) -> None:
    poorer = Bundle(tmp_path / "poorer", bundle.architecture)
    shutil.copytree(bundle.folder, poorer.folder, ignore=shutil.ignore_patterns(package, f"{package}.*"))
    settings = {"AWS_DEFAULT_REGION": "us-east-1", "IDEMPOTENCY_TABLE": TABLE}
    with function(poorer, tmp_path, settings) as (api, _):
        answer = api.answer()
    assert answer.kind == "init error"
    assert f"No module named '{package}'" in answer.body["errorMessage"]
