"""Reading a dead-letter queue through: each letter once, and an end, however long it takes."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from adapters.sqs.dead_letter_queue import DeadLetterQueue, read_dead_letter
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from domain.job_factory import JobFactory
from tests.support.aws import in_process
from tests.support.aws_faults import aws_requests
from tests.support.jobs import operations
from tests.support.notes import NOTES

ARN = "arn:aws:sqs:us-east-1:123456789012:dead"


@pytest.fixture
def box(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadLetterQueue]:
    monkeypatch.setattr("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0)
    with in_process():
        client = boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))
        yield DeadLetterQueue(client, client.create_queue(QueueName="dead")["QueueUrl"], ARN, NOTES)


def ids(box: DeadLetterQueue) -> list[str]:
    return [letter.message.message_id for letter in box.letters()]


def answer(*names: str) -> dict[str, object]:
    return {"Messages": [{"MessageId": name, "ReceiptHandle": f"{name}-now", "Body": "{}"} for name in names]}


def reading(box: DeadLetterQueue, *answers: dict[str, object]) -> list[str]:
    with Stubber(box.client) as stub:
        for one in answers:
            stub.add_response("receive_message", one)
        return list(islice(ids(box), 100))


def test_one_that_is_visible_again_while_others_are_read_is_told_once(box: DeadLetterQueue) -> None:
    assert reading(box, answer("a", "b"), answer("a"), answer("c", "b"), {}) == ["a", "b", "c"]
    assert box.held == {"a": "a-now", "b": "b-now", "c": "c-now"}


def test_a_queue_whose_letters_come_back_faster_than_they_are_read_comes_to_an_end(box: DeadLetterQueue) -> None:
    assert reading(box, answer("a"), answer("a"), answer("a")) == ["a"]


def test_what_cannot_be_read_is_an_error_and_what_cannot_be_put_back_is_counted(box: DeadLetterQueue) -> None:
    with aws_requests(ReceiveMessage=["denied"]), pytest.raises(QueueUnavailableError):
        ids(box)
    box.held.update({str(number): "handle" for number in range(12)})
    with aws_requests(ChangeMessageVisibilityBatch=["denied", "broken"]):
        assert box.put_back() == 12
    assert box.held == {}


@pytest.mark.parametrize("note", ["nonsense", "[]", "null", json.dumps({"reason": 7, "attempts": "many"})])
def test_a_note_that_nobody_of_ours_wrote_is_none(box: DeadLetterQueue, note: str) -> None:
    attributes: Any = {"onejob": {"DataType": "String", "StringValue": note}}
    box.client.send_message(QueueUrl=box.url, MessageBody="{}", MessageAttributes=attributes)
    (letter,) = box.letters()
    assert (letter.reason, letter.attempts, letter.detail) == (None, None, None)
    assert letter.source_message_id == letter.message.message_id
    assert letter.first_sent is not None


def test_a_claimed_operation_is_not_the_jobs() -> None:
    attributes = {"onejob": {"dataType": "String", "stringValue": '{"operation":"bill"}'}}
    message = Message("m", "h", '{"job_id":"1"}', ARN, attributes=attributes)
    found = read_dead_letter(message, {}, NOTES).job(JobFactory("test", operations()))
    assert found is not None
    assert found.operation == "default"
