"""Bodies of other services become jobs by `from_body`, as docs/foreign-bodies.md has it, wherever a message is read."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from domain.job import Job
from domain.operation import Operation, Operations
from entrypoints.poll_worker import PollOptions, make_poll_worker
from entrypoints.settings import Backend, Settings
from tests.support.aws import TABLE, emulated
from tests.support.cli import file_of, objects, onejob
from tests.support.jobs import answer_ok
from tests.support.polling import until
from tests.support.sqs import Worker, record
from tests.support.sqs_aws import Queues, make_queues
from tests.support.worker import handler

PAGE = Path(__file__).parents[2] / "docs" / "foreign-bodies.md"


def documented() -> Operations:
    """The page's example, as it stands there."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    known: dict[str, Any] = {"Operations": Operations, "Operation": Operation, "run_business_operation": answer_ok}
    exec(code, known)
    made: Operations = known["OPERATIONS"]
    return made


def notification(key: str = "a+b%2Bc.csv", sequencer: str = "1", **more: Any) -> str:
    """As S3 sends it, shortened."""
    written = {"key": key, "size": 1024, "eTag": "e", "sequencer": sequencer, **more}
    one = {
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "eventTime": "2026-01-01T00:00:00.000Z",
        "eventName": "ObjectCreated:Put",
        "s3": {"s3SchemaVersion": "1.0", "bucket": {"name": "uploads"}, "object": written},
    }
    return json.dumps({"Records": [one]})


def sns(message: str) -> str:
    return json.dumps({"Type": "Notification", "TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": message})


@pytest.fixture
def queues() -> Iterator[Queues]:
    with emulated():
        yield make_queues()


def test_in_lambda_an_s3_notification_is_a_job_that_runs_once(queues: Queues) -> None:
    ran: list[dict[str, Any]] = []

    def run(job: Job, attempt: Any) -> object:
        ran.append(job.payload)
        return None

    known = documented().wrapped(lambda _: run)
    handle = handler(known=known, dead_letter_queue_url=queues.dead_letter_url)
    queues.send(notification(), sns(notification()), notification(sequencer="2"), '{"Records":[]}', "[1]")
    assert queues.invoke(handle, queues.receive(5)) == []
    assert ran == [{"bucket": "uploads", "key": "a b+c.csv", "size": 1024}] * 2
    letters = queues.receive(2, url=queues.dead_letter_url)
    reasons = [json.loads(one["MessageAttributes"]["onejob"]["StringValue"])["reason"] for one in letters]
    assert reasons == ["no_s3_notification"] * 2


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit(3), GeneratorExit(), RecursionError()])
def test_what_it_raises_rejects_its_message_alone_and_tells_no_value(error: BaseException) -> None:
    def from_body(body: Any) -> object:
        raise error

    worker = translating(from_body)
    assert worker.handle(record("a", '{"specversion":"1.0"}'), record("b", '{"job_id":"1"}')) == []
    assert worker.runs == ["1"]
    (letter,) = worker.queue.letters
    note = json.loads(letter.attributes["onejob"]["StringValue"])
    assert (note["reason"], note["detail"]) == ("untranslatable", f"from_body: {type(error).__name__}")


@pytest.mark.parametrize(
    ("body", "job_id"),
    [
        ('{"specversion":"1.0","id":"e-1","data":{}}', "e-1"),
        ('["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3Key":"k-1"}]', "k-1"),
        ('{"job_id":"1","id":"e-1"}', "1"),
    ],
)
def test_cloud_events_and_pointers_and_never_a_job(body: str, job_id: str) -> None:
    worker = translating(
        lambda body: {"job_id": body[1]["s3Key"]} if isinstance(body, list) else {"job_id": body["id"]}
    )
    assert worker.handle(record("a", body)) == []
    assert worker.runs == [job_id]


def test_wrapped_operations_translate_too() -> None:
    made = documented()
    assert made.wrapped(lambda run: run).from_body is made.from_body


def translating(from_body: Callable[[Any], object]) -> Worker:
    worker = Worker()
    worker.batches.factory.operations.from_body = from_body
    return worker


def test_run_send_and_dlq_read_it_the_same_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queues: Queues) -> None:
    monkeypatch.setattr("operations.OPERATIONS", documented())
    monkeypatch.setattr("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0)
    file = file_of(tmp_path, notification(), notification(), '{"Records":[]}')
    result = onejob("run", file, "--db", str(tmp_path / "records" / "r.sqlite"), "--json", "--operation", "import")
    summary = objects(result)[-1]["summary"]
    assert (summary["executed"], summary["skipped"], summary["rejected_by_reason"]) == (1, 1, {"no_s3_notification": 1})
    sent = onejob("send", file, "--queue-url", queues.url, "--skip-invalid")
    assert sent.stdout == "2 of 2 jobs sent, 1 lines are no job\n"
    assert "line 3: no_s3_notification" in sent.stderr
    queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody=notification())
    (row,) = objects(onejob("dlq", "list", "--json", "--dead-letter-url", queues.dead_letter_url))
    assert (row["operation"], len(row["job_id"])) == ("import", 64)


def test_a_poll_worker_runs_it_once_and_a_redrive_knows_its_record(
    monkeypatch: pytest.MonkeyPatch, queues: Queues
) -> None:
    ran: list[str] = []
    known = documented().wrapped(lambda _: lambda job, attempt: ran.append(job.job_id))
    options = PollOptions(queue_url=queues.url, lease=timedelta(seconds=60), poll=timedelta())
    dead = queues.dead_letter_url
    settings = Settings(backend=Backend.DYNAMODB, table=TABLE, dead_letter_queue_url=dead, namespace="test")
    parts = make_poll_worker(known, "default", options, settings)
    queues.send(notification(), notification())
    parts.worker.start()
    try:
        until(lambda: queues.counts() == (0, 0))
    finally:
        parts.worker.stop()
        assert parts.worker.wait(timedelta(seconds=10)) == []
        parts.close()
    assert len(ran) == 1

    monkeypatch.setattr("operations.OPERATIONS", known)
    monkeypatch.setattr("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0)
    queues.sqs.send_message(QueueUrl=dead, MessageBody=notification())
    told = onejob(
        *("dlq", "redrive", "--all", "--json", "--backend", "dynamodb", "--table", TABLE, "--namespace", "test"),
        *("--queue-url", queues.url, "--dead-letter-url", dead),
    )
    (row,) = objects(told)
    assert (row["job_id"], row["verdict"], row["sent"]) == (ran[0], "answered", True)
