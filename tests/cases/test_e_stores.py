"""Situations reported in public, by their ids: retention, throttling, long tasks, details of refusals."""

import json
from collections.abc import Iterator
from datetime import timedelta

import boto3
import pytest

from adapters.system import SystemClock
from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.outcome import Deferred, Executed, Failed, Failure, Skipped
from domain.record import Acquired, Claim
from tests.support.aws import TABLE, dynamodb_store, in_process
from tests.support.aws_faults import AwsFault, aws_requests
from tests.support.cli import objects, onejob
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.sqs import Context, Worker, event, record
from tests.support.worker import handler

BODY = '{"job_id":"1"}'
JOB = job("1")


@pytest.fixture
def aws() -> Iterator[None]:
    with in_process():
        yield


@pytest.mark.usefixtures("aws")
def test_E02_an_expired_item_that_still_stands_is_found_expired_and_taken() -> None:
    clock = FakeClock()
    store = dynamodb_store(clock, timedelta(seconds=60))
    held = store.claim(JOB, owner="a", lease=timedelta(seconds=10))
    assert isinstance(held, Acquired)
    store.complete(held.claim, Answer("1"))
    clock.advance(seconds=62)
    assert boto3.client("dynamodb").get_item(TableName=TABLE, Key={"id": {"S": str(JOB.key)}})["Item"]
    found = store.find(JOB.key)
    assert found is not None
    assert found.retention_is_over(clock.now())
    assert isinstance(store.claim(JOB, owner="b", lease=timedelta(seconds=10)), Acquired)


@pytest.mark.usefixtures("aws")
def test_E03_a_throttled_claim_runs_nothing_and_is_tried_again_within_bounds() -> None:
    clock = FakeClock()
    effects: list[str] = []
    handle = handler(lambda job, attempt: effects.append(job.job_id), clock=clock)
    with aws_requests(UpdateItem=["throttled"] * 10) as requests:
        answer = handle(event(record("m", BODY)), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m"}]}
    assert effects == []
    assert requests.count["UpdateItem"] == 3
    assert timedelta(0) < sum(clock.slept, timedelta()) < timedelta(seconds=1)


def test_E03_near_the_margin_a_claim_is_not_tried_again() -> None:
    worker = Worker()
    worker.store._faults = {"claim": ["fails"] * 10}
    worker.handle(record("m", BODY), seconds=5.01)
    assert worker.store.calls["claim"] == 1
    assert worker.events.traces[0].outcome == Failed(Failure.STORE_UNAVAILABLE, "StoreUnavailableError")


@pytest.mark.usefixtures("aws")
def test_E05_a_ttl_that_cannot_be_told_or_is_not_set_up_fails_and_names_the_table() -> None:
    plans: list[tuple[AwsFault, str]] = [("ok", "TTL of records: is DISABLED"), ("denied", "is denied")]
    for fault, told in plans:
        with aws_requests(DescribeTimeToLive=[fault]):
            result = onejob("doctor", "--table", TABLE)
        (line,) = [line for line in result.stdout.splitlines() if "TTL of" in line]
        assert (result.exit_code, line.split()[0]) == (1, "fail")
        assert f"TTL of {TABLE}" in line
        assert told in line


def test_E07_a_repeat_in_the_same_process_is_answered() -> None:
    worker = Worker()
    worker.handle(record("a", BODY))
    worker.handle(record("b", BODY))
    assert [type(trace.outcome) for trace in worker.events.traces] == [Executed, Skipped]


@pytest.mark.usefixtures("aws")
def test_E10_one_job_is_found_by_its_id_shown_and_evicted_only_as_it_was_shown_and_audited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
    monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
    store = dynamodb_store(SystemClock(), timedelta(days=1))
    held = store.claim(JOB, owner="a", lease=timedelta(seconds=60))
    assert isinstance(held, Acquired)
    (running,) = objects(onejob("show", "1", "--json"))
    assert (running["status"], running["attempts"], running["key"]) == ("running", 1, str(JOB.key))
    assert running["lease_until"]
    assert running["fingerprint"] == JOB.fingerprint
    assert onejob("forget", "1", "--yes").exit_code == 1  # a worker holds it
    store.complete(held.claim, Answer('"secret"'))
    assert objects(onejob("show", "1", "--json", "--show-payload"))[0]["answer"] == '"secret"'
    evicted = onejob("forget", "1", "--yes", "--json")
    audited = json.loads(evicted.stderr)
    assert (audited["event"], audited["before"]["epoch"], audited["after"]["epoch"]) == ("job_forgotten", 1, 2)
    assert ":assumed-role/" in audited["who"] or ":user/" in audited["who"] or ":root" in audited["who"]


def test_E11_a_task_longer_than_every_visibility_timeout_runs_once() -> None:
    worker = Worker()
    running = worker.batches.factory.job({"job_id": "1"})
    start = worker.clock.now()
    worker.memory.claim(running, owner="first", lease=timedelta(hours=6))
    for receives in range(1, 6):
        worker.clock.time = start + timedelta(hours=receives)
        assert worker.handle(record("m", BODY, receives=receives)) == ["m"]
        assert worker.events.traces[-1].outcome == Deferred(start + timedelta(hours=6))
        assert worker.queue.timeouts["m"] <= 2 ** (receives - 1), "it is answered soon after the task is done"
    worker.memory.complete(Claim(running.key, "first", 1), Answer("1"))
    assert worker.handle(record("m", BODY, receives=6)) == []
    assert worker.runs == []


def test_E14_a_refusal_says_where_and_what_was_expected_and_never_the_value() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if not isinstance(job.payload.get("amount"), int):
            raise PermanentError("invalid_payload", "amount: expected number")
        return None

    worker = Worker(run)
    assert worker.handle(record("m", '{"job_id":"1","amount":"secret"}')) == []
    text = worker.queue.letters[0].attributes["onejob"]["StringValue"]
    reason = json.loads(text)
    assert f"{reason['reason']}: {reason['detail']}" == "invalid_payload: amount: expected number"
    assert "secret" not in text
