"""Message groups: kept from queue to queue, an order on FIFO queues alone."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from adapters.sqs.dead_letter_queue import ReceivedDeadLetter
from adapters.sqs.groups import group_of, is_group, kept_group
from adapters.sqs.message import Message
from adapters.sqs.redrive import send_back
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operations
from tests.support.notes import NOTES

STANDARD = "https://sqs.us-east-1.amazonaws.com/000000000000/jobs"
ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
TENANTS = ["anonymous", "x" * 128, "x" * 129, "iam 111122223333 AIDACKCEVSQ6C2EXAMPLE", "ü", "a b", "a  b"]


def job(tenant: str | None = None) -> Job:
    return JobFactory("test", Operations()).job({"job_id": "a", **({} if tenant is None else {"tenant": tenant})})


def message(group: str | None) -> Message:
    return Message("m1", "handle", "{}", ARN, group_id=group)


def test_a_tenant_is_a_group_of_its_own_in_characters_that_sqs_takes() -> None:
    groups = [group_of(job(tenant), STANDARD) or "" for tenant in TENANTS]
    assert all(is_group(group) for group in groups)
    assert len(set(groups)) == len(TENANTS)
    assert groups == [group_of(job(tenant), STANDARD) for tenant in TENANTS]
    assert group_of(job(), STANDARD) is None


def test_on_a_fifo_queue_a_job_is_a_group_of_its_own() -> None:
    for tenant in (None, "a"):
        assert group_of(job(tenant), f"{STANDARD}.fifo") == job(tenant).key.digest


@pytest.mark.parametrize("text", ["", "a b", "ü", "x" * 129, "a\n", "\x7f"])
def test_what_sqs_does_not_take_is_no_group(text: str) -> None:
    assert not is_group(text)


@pytest.mark.parametrize(
    ("url", "group", "options"),
    [
        (STANDARD, "g", {"MessageGroupId": "g"}),
        (STANDARD, None, {}),
        (STANDARD, "", {}),
        (f"{STANDARD}.fifo", "g", {"MessageGroupId": "g", "MessageDeduplicationId": "redrive-m1-1"}),
        (f"{STANDARD}.fifo", None, {"MessageGroupId": "m1", "MessageDeduplicationId": "redrive-m1-1"}),
    ],
)
def test_a_message_keeps_its_group_in_another_queue(url: str, group: str | None, options: dict[str, Any]) -> None:
    client = boto3.client("sqs", region_name="us-east-1", aws_access_key_id="t", aws_secret_access_key="t")
    with Stubber(client) as stub:
        stub.add_response("send_message", {"MessageId": "m2"}, {"QueueUrl": url, "MessageBody": "{}", **options})
        assert send_back(client, url, ReceivedDeadLetter(message(group), {}, {}), NOTES) == "m2"
    assert kept_group(message(group), url).get("MessageGroupId") == options.get("MessageGroupId")
