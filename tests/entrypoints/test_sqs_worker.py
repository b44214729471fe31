"""The Lambda door on real SQS and DynamoDB (emulated): messages in, effects once, every message accounted for."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest

from adapters.sqs.message import NotAnSqsBatchError
from adapters.sqs.received import lambda_event
from adapters.system import SystemClock
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operations
from entrypoints import sqs_worker
from entrypoints.emulator.launcher import Emulator
from tests.support.aws import TABLE, emulated, in_process, item
from tests.support.aws_faults import aws_requests
from tests.support.jobs import operations
from tests.support.sqs import Context, event, record
from tests.support.sqs_aws import make_queues
from tests.support.worker import handler

JOB = '{"job_id":"job-001"}'
ROOT = Path(__file__).parents[2]


@pytest.fixture
def aws() -> Iterator[Emulator]:
    with emulated() as running:
        yield running


def key(job_id: str) -> object:
    return JobFactory("test", Operations()).job({"job_id": job_id}).key


def logs(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line for line in lines if "event" in line]


@pytest.mark.usefixtures("aws")
def test_two_messages_of_one_job_make_one_effect_and_a_malformed_one_is_buried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queues = make_queues()
    handle = handler(clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
    first, second, malformed = queues.send(JOB, JOB, '{"job_id":')
    assert queues.invoke(handle, queues.receive(3)) == []
    told = {line["sqs_message_id"]: line["event"] for line in logs(capsys)}
    assert told == {
        first: "business_operation_executed",
        second: "job_skipped",
        malformed: "job_rejected",
    }
    stored = item(key("job-001"))
    assert stored["status"] == "COMPLETED"
    assert json.loads(stored["data"])["execution_id"] == stored["owner"]
    (letter,) = queues.receive(1, url=queues.dead_letter_url)
    assert letter["Body"] == '{"job_id":'
    assert json.loads(letter["MessageAttributes"]["onejob"]["StringValue"])["reason"] == "not_json"
    assert queues.counts() == (0, 0)


@pytest.mark.usefixtures("aws")
def test_a_failing_message_stays_invisible_for_its_backoff() -> None:
    queues = make_queues()

    def fail(job: Job, attempt: Attempt) -> object:
        raise OSError

    handle = handler(fail, clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
    (message_id,) = queues.send(JOB)
    with aws_requests() as requests:
        assert queues.invoke(handle, queues.receive(1)) == [message_id]
    (asked,) = requests.bodies["ChangeMessageVisibilityBatch"]
    assert asked["QueueUrl"].endswith("/000000000000/jobs")
    assert [5 <= entry["VisibilityTimeout"] <= 10 for entry in asked["Entries"]] == [True]
    assert queues.counts() == (0, 1)


@pytest.mark.usefixtures("aws")
def test_a_fifo_group_keeps_its_order_and_its_dead_letters_their_group() -> None:
    queues = make_queues(fifo=True)
    ran: list[str] = []

    def run(job: Job, attempt: Attempt) -> object:
        ran.append(job.job_id)
        if job.job_id == "2":
            raise PermanentError("refused")
        if job.job_id == "4":
            raise OSError
        return None

    handle = handler(run, clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
    sent = [
        queues.send(f'{{"job_id":"{n}"}}', MessageGroupId="g", MessageDeduplicationId=f"d{n}")[0] for n in range(1, 6)
    ]
    assert queues.invoke(handle, queues.receive(5)) == sent[3:]
    assert ran == ["1", "2", "3", "4"]
    (letter,) = queues.receive(1, url=queues.dead_letter_url)
    assert letter["Attributes"]["MessageGroupId"] == "g"
    assert letter["Attributes"]["MessageDeduplicationId"] == sent[1]


def test_a_hung_operation_holds_only_its_own_message_and_is_taken_over_after_its_lease(aws: Emulator) -> None:
    queues = make_queues(visibility=4)
    queues.send('{"job_id":"hung"}', *(f'{{"job_id":"{number}"}}' for number in range(9)))
    messages = queues.receive(10)
    environment = aws.environment() | {
        "IDEMPOTENCY_BACKEND": "dynamodb",
        "IDEMPOTENCY_TABLE": TABLE,
        "IDEMPOTENCY_NAMESPACE": "test",
        "DEADLINE_MARGIN_SECONDS": "3",
        "LEASE_GRACE_SECONDS": "0",
        "DEAD_LETTER_QUEUE_URL": queues.dead_letter_url,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
    }
    command = [sys.executable, str(Path(__file__).with_name("hanging_worker.py")), "5"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, text=True)
    try:
        assert worker.stdin is not None
        worker.stdin.write(json.dumps(lambda_event(messages, queues.arn)))
        worker.stdin.close()
        queues.wait_for_counts(0, 1)
        assert worker.poll() is None, "the nine others are deleted while it still waits"
    finally:
        worker.kill()
        worker.wait()
    assert item(key("hung"))["status"] == "INPROGRESS"

    ran: list[tuple[str, int]] = []
    handle = handler(lambda job, attempt: ran.append((job.job_id, attempt.number)), clock=SystemClock())
    deadline = time.monotonic() + 20
    while not ran:
        assert time.monotonic() < deadline
        back = queues.receive(1)
        assert [message["Body"] for message in back] == ['{"job_id":"hung"}'], "none of the nine comes back"
        if queues.invoke(handle, back):
            _make_visible(queues, back)
    assert ran == [("hung", 2)]
    assert queues.counts() == (0, 0)


def _make_visible(queues: Any, messages: list[Any]) -> None:
    for message in messages:
        queues.sqs.change_message_visibility(
            QueueUrl=queues.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )


@pytest.mark.usefixtures("aws")
def test_64_jobs_with_10_duplicates_each_in_16_threads_make_64_effects(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[str] = []
    make = boto3.client
    monkeypatch.setattr("boto3.client", lambda name, **rest: clients.append(name) or make(name, **rest))  # type: ignore[func-returns-value]
    effects: list[str] = []
    handle = handler(lambda job, attempt: effects.append(job.job_id), clock=SystemClock(), concurrency=16)
    deliveries = [record(f"m{n}", f'{{"job_id":"job-{n % 64}"}}') for n in range(640)]
    Random(1).shuffle(deliveries)

    with ThreadPoolExecutor(16) as callers:  # 16 callers of one handler, whose lanes share 16 threads
        while deliveries:
            batches = [deliveries[start : start + 10] for start in range(0, len(deliveries), 10)]
            answers = list(callers.map(lambda batch: handle(event(*batch), Context()), batches))
            failed = {failure["itemIdentifier"] for answer in answers for failure in answer["batchItemFailures"]}
            deliveries = [delivery for delivery in deliveries if delivery["messageId"] in failed]

    assert Counter(effects) == Counter({f"job-{number}": 1 for number in range(64)})
    assert clients.count("dynamodb") == 1
    assert clients.count("sqs") <= 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    told = Counter(line["event"] for line in lines if "event" in line)
    emitted: Counter[str] = Counter()
    for line in lines:
        for metric in line.get("_aws", {}).get("CloudWatchMetrics", [{}])[0].get("Metrics", []):
            if metric["Unit"] == "Count":
                emitted[metric["Name"]] += int(sum(line[metric["Name"]]))
    assert told["business_operation_executed"] == emitted["JobsExecuted"] == 64
    assert told["job_skipped"] == emitted["JobsSkipped"] == 576
    assert told["job_deferred"] == emitted["JobsDeferred"]


@pytest.mark.usefixtures("aws")
def test_a_burial_is_tried_a_second_time_by_the_sdk() -> None:
    queues = make_queues()
    handle = handler(clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
    queues.send("not json")
    messages = queues.receive(1)
    with aws_requests(SendMessage=["broken"]) as requests:
        assert queues.invoke(handle, messages) == []
    assert requests.count["SendMessage"] == 2
    assert queues.counts(queues.dead_letter_url) == (1, 0)


def test_an_attribute_error_of_a_users_module_is_not_taken_for_a_missing_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqs_worker, "make_handler", lambda operations: operations.nothing)
    with pytest.raises(RuntimeError, match=r"the handler cannot be built: .* has no attribute 'nothing'"):
        _ = sqs_worker.handler


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"Records": []},
        {"Records": [None]},
        {"Records": [{"eventSource": "aws:sns"}]},
        {"Records": [{k: v for k, v in record("a", "{}").items() if k != "receiptHandle"}]},
        {"source": "aws.events", "detail": {}},
    ],
)
def test_an_event_that_is_no_sqs_batch_is_a_clear_error_and_never_an_empty_success(wrong: Any) -> None:
    from tests.support.aws import in_process

    with in_process():
        handle = handler(known=operations())
        with pytest.raises(NotAnSqsBatchError):
            handle(wrong, Context())


@pytest.mark.parametrize("error", [asyncio.CancelledError("x"), GeneratorExit(), KeyboardInterrupt()])
@pytest.mark.parametrize("others", [0, 2])
def test_what_ends_no_process_is_a_failure_of_its_job_and_not_of_the_invocation(
    error: BaseException, others: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id == "job-001":
            raise error
        return None

    records = [record("m0", JOB), *(record(f"m{each}", f'{{"job_id":"{each}"}}') for each in range(1, others + 1))]
    with in_process():
        handle = handler(run)
        assert handle(event(*records), Context()) == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
        assert item(key("job-001"))["last_error"] == type(error).__name__
    (failed,) = (line for line in logs(capsys) if line["event"] == "job_failed")
    assert (failed["reason"], failed["error_type"]) == ("operation_raised", type(error).__name__)


def test_ctrl_c_ends_the_invocation_and_leaves_the_job_to_its_lease() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        signal.raise_signal(signal.SIGINT)
        return None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with in_process():
            handle = handler(run)
            with pytest.raises(KeyboardInterrupt):
                handle(event(record("m", JOB)), Context())
            assert "last_error" not in item(key("job-001"))
            assert item(key("job-001"))["owner"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
