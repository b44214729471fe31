"""Long polling on boto3: what is asked of SQS, and which of its refusals a worker may wait out."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError, NoCredentialsError, ReadTimeoutError
from botocore.stub import Stubber

from adapters.sqs.polling.ports import QueueUnusableError
from adapters.sqs.polling.receiver import SqsReceiver
from adapters.sqs.ports import QueueUnavailableError
from entrypoints.emulator.launcher import only_environment

URL = "https://sqs.eu-central-1.amazonaws.com/210987654321/jobs"
ARN = "arn:aws:sqs:eu-central-1:210987654321:jobs"
ASKED = {
    "QueueUrl": URL,
    "MaxNumberOfMessages": 3,
    "VisibilityTimeout": 302,
    "WaitTimeSeconds": 20,
    "MessageSystemAttributeNames": ["All"],
    "MessageAttributeNames": ["All"],
}
META = {"ResponseMetadata": {"RequestId": "r-1", "HTTPStatusCode": 200}}


@contextmanager
def stubbed() -> Iterator[tuple[SqsReceiver, Stubber]]:
    with only_environment({"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}):
        client = boto3.client(
            "sqs",
            region_name="eu-central-1",
            aws_access_key_id="t",
            aws_secret_access_key="t",
            config=Config(retries={"total_max_attempts": 1}),
        )
    with Stubber(client) as stub:
        yield SqsReceiver(client, URL, visibility=timedelta(seconds=302), poll=timedelta(seconds=20)), stub
        stub.assert_no_pending_responses()


def found(stub: Stubber) -> None:
    asked = {"QueueUrl": URL, "AttributeNames": ["QueueArn"]}
    stub.add_response("get_queue_attributes", {"Attributes": {"QueueArn": ARN}}, asked)


def test_a_message_comes_as_lambda_would_hand_it_over() -> None:
    raw = {
        "MessageId": "m1",
        "ReceiptHandle": "h1",
        "Body": "{}",
        "Attributes": {"ApproximateReceiveCount": "2", "MessageGroupId": "g"},
        "MessageAttributes": {"a": {"DataType": "String", "StringValue": "x"}},
    }
    with stubbed() as (receiver, stub):
        found(stub)
        stub.add_response("receive_message", {"Messages": [raw], **META}, ASKED)
        assert receiver.find() == ARN
        received = receiver.receive(3)
    (message,) = received.messages
    assert (message.message_id, message.receipt_handle, message.queue_arn) == ("m1", "h1", ARN)
    assert (message.receives, message.group_id) == (2, "g")
    assert message.attributes["a"]["stringValue"] == "x"
    assert received.request_id == "r-1"


def test_an_empty_poll_brings_nothing() -> None:
    with stubbed() as (receiver, stub):
        stub.add_response("receive_message", META, ASKED)
        assert receiver.receive(3).messages == []


@pytest.mark.parametrize(
    ("code", "status", "may_pass"),
    [
        ("AWS.SimpleQueueService.NonExistentQueue", 400, False),
        ("AccessDenied", 403, False),
        ("InvalidClientTokenId", 403, False),
        ("SignatureDoesNotMatch", 403, False),
        ("RequestThrottled", 400, True),
        ("ThrottlingException", 400, True),
        ("ExpiredToken", 403, True),
        ("RequestTimeTooSkewed", 403, True),
        ("InternalError", 500, True),
        ("ServiceUnavailable", 503, True),
    ],
)
def test_a_refusal_is_told_by_name_and_whether_it_may_pass(code: str, status: int, may_pass: bool) -> None:
    for request, ask in (("get_queue_attributes", SqsReceiver.find), ("receive_message", lambda one: one.receive(3))):
        with stubbed() as (receiver, stub):
            stub.add_client_error(request, code, http_status_code=status)
            with pytest.raises(QueueUnavailableError, match=rf"^SQS \w+: {code}$") as raised:
                ask(receiver)
        assert isinstance(raised.value, QueueUnusableError) is not may_pass


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (EndpointConnectionError(endpoint_url="u"), True),
        (ReadTimeoutError(endpoint_url="u"), True),
        (NoCredentialsError(), False),
        (ValueError("Invalid endpoint"), False),
    ],
)
def test_what_keeps_a_request_from_sqs_is_told_too(error: Exception, may_pass: bool) -> None:
    class Client:
        def receive_message(self, **_: Any) -> Any:
            raise error

    receiver = SqsReceiver(Client(), URL, visibility=timedelta(seconds=9), poll=timedelta())  # type: ignore[arg-type]
    with pytest.raises(QueueUnavailableError, match=type(error).__name__) as raised:
        receiver.receive(1)
    assert isinstance(raised.value, QueueUnusableError) is not may_pass
