"""What a poller makes of received messages is what Lambda would have made of them."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from adapters.sqs.dead_letter import make_dead_letter
from adapters.sqs.message import Message, read_event
from adapters.sqs.received import lambda_event
from domain.outcome import Rejected
from tests.support.aws import in_process

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef

ARN = "arn:aws:sqs:eu-central-1:123456789012:jobs"
ATTRIBUTES: dict[str, Any] = {
    "name": {"DataType": "String", "StringValue": "é😀"},
    "count": {"DataType": "Number.int", "StringValue": "7"},
    "image": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
}
BARE: "MessageTypeDef" = {"MessageId": "m1", "ReceiptHandle": "h1", "Body": "{}"}


@pytest.fixture
def received() -> Iterator["MessageTypeDef"]:
    """A message as SQS gives it."""
    with in_process():
        sqs = boto3.client("sqs")
        url = sqs.create_queue(QueueName="jobs")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody='{"job_id":"1"}', MessageAttributes=ATTRIBUTES)
        [message] = sqs.receive_message(
            QueueUrl=url, MessageSystemAttributeNames=["All"], MessageAttributeNames=["All"]
        )["Messages"]
        yield message


def test_a_received_message_becomes_a_record_in_lambdas_shape(received: "MessageTypeDef") -> None:
    empty: dict[str, list[str]] = {"stringListValues": [], "binaryListValues": []}
    assert lambda_event([received], ARN) == {
        "Records": [
            {
                "messageId": received["MessageId"],
                "receiptHandle": received["ReceiptHandle"],
                "body": '{"job_id":"1"}',
                "attributes": received["Attributes"],
                "messageAttributes": {
                    "name": {"dataType": "String", "stringValue": "é😀", **empty},
                    "count": {"dataType": "Number.int", "stringValue": "7", **empty},
                    "image": {"dataType": "Binary.png", "binaryValue": "AP8=", **empty},
                },
                "md5OfBody": received["MD5OfBody"],
                "eventSource": "aws:sqs",
                "eventSourceARN": ARN,
                "awsRegion": "eu-central-1",
            }
        ]
    }


def test_an_event_is_json_as_lambdas_is(received: "MessageTypeDef") -> None:
    event = lambda_event([received], ARN)
    assert json.loads(json.dumps(event)) == event


def test_a_dead_letter_has_the_attributes_that_the_message_was_sent_with(received: "MessageTypeDef") -> None:
    [message] = read_event(lambda_event([received], ARN))
    letter = make_dead_letter(message, Rejected("stale"), "r1")
    assert {name: value for name, value in letter.attributes.items() if name != "onejob"} == ATTRIBUTES


def test_receive_count_time_and_group_are_read_from_it() -> None:
    system: Any = {"ApproximateReceiveCount": "3", "SentTimestamp": "1573251510774", "MessageGroupId": "g1"}
    [message] = read_event(lambda_event([{**BARE, "Attributes": system}], f"{ARN}.fifo"))
    assert (message.receives, message.group_id, message.is_fifo) == (3, "g1", True)
    assert message.sent_at is not None
    assert message.sent_at.timestamp() == 1573251510.774


def test_a_message_that_was_received_without_attributes_is_a_record_too() -> None:
    assert read_event(lambda_event([BARE], ARN)) == [Message("m1", "h1", "{}", ARN)]


def test_a_record_without_a_checksum_has_an_empty_one() -> None:
    assert lambda_event([BARE], ARN)["Records"][0]["md5OfBody"] == ""


def test_records_keep_the_order_of_the_messages() -> None:
    order = ["m3", "m1", "m2"]
    event = lambda_event([{**BARE, "MessageId": message_id} for message_id in order], ARN)
    assert [message.message_id for message in read_event(event)] == order
