"""The demo's story: two deliveries of one job and a malformed message, through the real handler."""

import io
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from domain.shared_secret import NAMESPACE as SECRETS
from entrypoints.emulator.launcher import Emulator, EmulatorError, emulator, only_environment

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

JOB: Final = '{"job_id":"job-001"}'
MALFORMED: Final = '{"job_id":"job-002"'
TABLE: Final = "onejob-records"
RECEIVE_WITHIN_SECONDS: Final = 10

type Step = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that was sent, and what the handler's log says became of it."""

    body: str
    message_id: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """A claim of the demo, and whether it is so."""

    claim: str
    passed: bool


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Everything that the demo saw."""

    deliveries: list[Delivery]
    record: dict[str, Any]
    dead_letters: list[dict[str, Any]]
    checks: list[Check]
    seconds: float

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)


class _Context:
    """A Lambda context with 30 seconds left."""

    aws_request_id = "demo"

    def get_remaining_time_in_millis(self) -> int:
        return 30_000


def run_demo(step: Step) -> DemoResult:
    """Tell each step as it is done. Raises `EmulatorError`."""
    started = time.monotonic()
    step("starting AWS on this machine (the first time installs the emulator)")
    with emulator() as aws, only_environment(aws.environment()):
        step(f"AWS emulator on 127.0.0.1:{aws.port}")
        return _story(aws, step, started)


def _story(aws: Emulator, step: Step, started: float) -> DemoResult:
    import boto3

    sqs, dynamodb = boto3.client("sqs"), boto3.client("dynamodb")
    dead_letter_url = sqs.create_queue(QueueName="jobs-dead")["QueueUrl"]
    queue_url = sqs.create_queue(QueueName="jobs", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    step("queue, dead-letter queue and table made")

    bodies = (JOB, JOB, MALFORMED)
    sent = [sqs.send_message(QueueUrl=queue_url, MessageBody=body)["MessageId"] for body in bodies]
    step(f"sent {JOB} twice as two messages, and one malformed message")

    logs = _work_off(sqs, queue_url, arn, sent, aws, dead_letter_url)
    step("the Lambda handler has worked off the SQS event")

    deliveries = [
        Delivery(body, message_id, next((line for line in logs if line.get("sqs_message_id") == message_id), {}))
        for body, message_id in zip(bodies, sent, strict=True)
    ]
    items = boto3.resource("dynamodb").Table(TABLE).scan()["Items"]
    records = [item for item in items if not str(item["id"]).startswith(f"{SECRETS}.")]
    dead = sqs.receive_message(QueueUrl=dead_letter_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    letters = [
        {"body": letter["Body"], **json.loads(letter.get("MessageAttributes", {})["onejob"]["StringValue"])}
        for letter in dead.get("Messages", [])
    ]
    left = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["All"])["Attributes"]
    record: dict[str, Any] = dict(records[0]) if records else {}
    checks = list(_checks(deliveries, logs, len(records), record, letters, left))
    return DemoResult(deliveries, record, letters, checks, round(time.monotonic() - started, 2))


def _work_off(
    sqs: "SQSClient", queue_url: str, arn: str, sent: list[str], aws: Emulator, dead_letter_url: str
) -> list[dict[str, Any]]:
    """What Lambda's event source mapping does: receive, call the handler, delete what is done. The handler's logs."""
    from adapters.sqs.received import lambda_event
    from entrypoints.registered import registered_operations
    from entrypoints.sqs_worker import make_handler

    worker = {
        "IDEMPOTENCY_BACKEND": "dynamodb",
        "IDEMPOTENCY_TABLE": TABLE,
        "DEAD_LETTER_QUEUE_URL": dead_letter_url,
        "POWERTOOLS_SERVICE_NAME": "onejob-demo",  # a logger of its own, whatever an operation has set up
    }
    received = _receive(sqs, queue_url, len(sent))
    if not received:
        raise EmulatorError(f"the emulator delivered no message within {RECEIVE_WITHIN_SECONDS} s")
    received.sort(key=lambda message: sent.index(message["MessageId"]))
    with only_environment(aws.environment() | worker), _captured_lines() as lines:
        answer = make_handler(registered_operations())(lambda_event(received, arn), _Context())
    failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
    for message in received:
        if message["MessageId"] not in failed:
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
    return [log for log in map(_log, lines) if log.get("sqs_message_id") in sent]


def _log(line: str) -> dict[str, Any]:
    """A log line of the worker; an operation may print what it likes beside, and before it on the same line."""
    try:
        log = json.loads(line[max(0, line.find('{"level"')) :])
    except ValueError:
        return {}
    return log if isinstance(log, dict) else {}


def _receive(sqs: "SQSClient", queue_url: str, number: int) -> list[Any]:
    received: list[Any] = []
    deadline = time.monotonic() + RECEIVE_WITHIN_SECONDS
    while len(received) < number and time.monotonic() < deadline:
        answer = sqs.receive_message(
            QueueUrl=queue_url,
            MaxNumberOfMessages=10,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
            WaitTimeSeconds=1,
        )
        received += answer.get("Messages", [])
    return received


@contextmanager
def _captured_lines() -> Iterator[list[str]]:
    lines: list[str] = []
    before, output = sys.stdout, io.StringIO()
    sys.stdout = output
    try:
        yield lines
    except (KeyboardInterrupt, SystemExit):  # the process leaves: threads that still log must not be heard
        raise
    except BaseException:
        sys.stdout = before
        raise
    sys.stdout = before
    lines += output.getvalue().splitlines()


def _checks(
    deliveries: list[Delivery],
    logs: list[dict[str, Any]],
    record_count: int,
    record: dict[str, Any],
    letters: list[dict[str, Any]],
    left: Any,
) -> Iterator[Check]:
    first, second, malformed = (delivery.event for delivery in deliveries)
    events = [line.get("event") for line in logs]
    executed, skipped = "business_operation_executed", "job_skipped"
    yield Check(f"{executed} once", events.count(executed) == 1 and first.get("event") == executed)
    yield Check(f"{skipped} once, the second message", events.count(skipped) == 1 and second.get("event") == skipped)
    yield Check("one record, COMPLETED", record_count == 1 and record.get("status") == "COMPLETED")
    yield Check(
        "the record's execution_id is that of the run",
        bool(first.get("execution_id")) and record.get("owner") == first["execution_id"],
    )
    yield Check(
        "the malformed message is in the dead-letter queue with its reason",
        [(letter["body"], letter["reason"]) for letter in letters] == [(MALFORMED, "not_json")]
        and malformed.get("event") == "job_rejected",
    )
    waiting = [left.get("ApproximateNumberOfMessages"), left.get("ApproximateNumberOfMessagesNotVisible")]
    yield Check("nothing is left in the queue", waiting == ["0", "0"])
