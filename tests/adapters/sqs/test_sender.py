"""Sending in batches: full ones, each message once, and nothing claimed that is not known."""

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.sender import TRIES, BatchSent, Outgoing, SqsSender, batches
from tests.support.aws import in_process
from tests.support.aws_faults import AwsFault, aws_requests
from tests.support.clock import FakeClock

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with in_process():
        yield


def numbered(count: int, **fifo: Any) -> list[Outgoing]:
    return [Outgoing(number, f'{{"job_id":"{number}"}}', **fifo) for number in range(count)]


def client() -> "SQSClient":
    return boto3.client("sqs", config=Config(retries={"total_max_attempts": 1}))


def sender(name: str = "jobs", clock: FakeClock | None = None) -> SqsSender:
    attributes: dict[Any, str] = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    url = client().create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return SqsSender(client(), url, clock or FakeClock(), lambda: 0.0)


def arrived(of: SqsSender) -> int:
    counted = of.client.get_queue_attributes(QueueUrl=of.url, AttributeNames=["ApproximateNumberOfMessages"])
    return int(counted["Attributes"]["ApproximateNumberOfMessages"])


def numbers(messages: list[Outgoing]) -> list[int]:
    return [message.number for message in messages]


def test_ten_a_request_in_order() -> None:
    jobs = sender()
    with aws_requests() as requests:
        sent = [number for batch in jobs.send(numbered(25)) for number in numbers(batch.sent)]
    assert sent == list(range(25))
    assert [len(body["Entries"]) for body in requests.bodies["SendMessageBatch"]] == [10, 10, 5]
    assert arrived(jobs) == 25


def test_a_request_holds_no_more_than_a_mebibyte() -> None:
    large = [Outgoing(number, "ü" * 200_000) for number in range(5)]
    assert [numbers(batch) for batch in batches(large)] == [[0, 1], [2, 3], [4]]
    whole = [Outgoing(0, "x" * 1024 * 1024), Outgoing(1, "x")]
    assert [numbers(batch) for batch in batches(whole)] == [[0], [1]]


@pytest.mark.parametrize("fault", ["lost", "broken"])
def test_on_a_standard_queue_an_answer_that_was_lost_is_told_and_nothing_is_sent_again(fault: AwsFault) -> None:
    jobs = sender()
    with aws_requests(SendMessageBatch=[fault]) as requests:
        first, second = jobs.send(numbered(12))
    assert (numbers(first.uncertain), first.sent) == (list(range(10)), [])
    assert numbers(second.sent) == [10, 11]
    assert requests.count["SendMessageBatch"] == 2
    assert arrived(jobs) == (12 if fault == "lost" else 2)


def test_on_a_fifo_queue_it_is_sent_again_and_arrives_once() -> None:
    jobs = sender("jobs.fifo")
    messages = [Outgoing(number, "{}", "all", f"id-{number}") for number in range(3)]
    with aws_requests(SendMessageBatch=["lost"]) as requests:
        (batch,) = jobs.send(messages)
    assert numbers(batch.sent) == [0, 1, 2]
    assert requests.count["SendMessageBatch"] == 2
    assert arrived(jobs) == 3


def test_what_never_arrived_is_tried_again_with_backoff() -> None:
    clock = FakeClock()
    jobs = sender(clock=clock)
    with aws_requests(SendMessageBatch=["unreachable", "timeout"]):
        (batch,) = jobs.send(numbered(3))
    assert (numbers(batch.sent), batch.error) == ([0, 1, 2], None)
    assert clock.slept == [timedelta(milliseconds=100), timedelta(milliseconds=200)]


def test_after_so_many_tries_it_is_told_that_nothing_was_sent() -> None:
    jobs = sender()
    with aws_requests(SendMessageBatch=["unreachable"] * TRIES) as requests:
        (batch,) = jobs.send(numbered(3))
    assert (numbers(batch.unsent), batch.sent) == ([0, 1, 2], [])
    assert batch.error is not None
    assert requests.count["SendMessageBatch"] == TRIES


def test_a_refusal_that_stays_ends_it() -> None:
    jobs = sender()
    with aws_requests(SendMessageBatch=["denied"]) as requests, pytest.raises(QueueUnavailableError):
        list(jobs.send(numbered(3)))
    assert requests.count["SendMessageBatch"] == 1


def answers(*made: dict[str, list[Any]]) -> tuple[BatchSent, list[int]]:
    """What becomes of three messages, and how many each request held."""
    jobs = sender()
    asked: list[int] = []
    jobs.client.meta.events.register(
        "provide-client-params.sqs.SendMessageBatch", lambda params, **_: asked.append(len(params["Entries"]))
    )
    with Stubber(jobs.client) as stub:
        for answer in made:
            stub.add_response("send_message_batch", {"Successful": [], "Failed": [], **answer})
        (batch,) = jobs.send(numbered(3))
        stub.assert_no_pending_responses()
    return batch, asked


def landed(*ids: str) -> list[dict[str, str]]:
    return [{"Id": name, "MessageId": name, "MD5OfMessageBody": ""} for name in ids]


def failed(name: str, code: str, *, sender_fault: bool) -> dict[str, Any]:
    return {"Id": name, "Code": code, "SenderFault": sender_fault}


def test_only_those_of_a_batch_that_failed_are_sent_again() -> None:
    batch, asked = answers(
        {"Successful": landed("0", "2"), "Failed": [failed("1", "InternalError", sender_fault=False)]},
        {"Successful": landed("0")},
    )
    assert (numbers(batch.sent), asked, batch.error) == ([0, 2, 1], [3, 1], None)


def test_one_that_sqs_will_never_take_is_told_and_not_sent_again() -> None:
    batch, asked = answers(
        {"Successful": landed("0", "1"), "Failed": [failed("2", "InvalidMessageContents", sender_fault=True)]}
    )
    assert [(message.number, code) for message, code in batch.refused] == [(2, "InvalidMessageContents")]
    assert asked == [3]


def test_throttling_is_no_fault_of_the_message() -> None:
    batch, asked = answers(
        {"Successful": landed("0", "1"), "Failed": [failed("2", "RequestThrottled", sender_fault=True)]},
        {"Successful": landed("0")},
    )
    assert (numbers(batch.sent), asked) == ([0, 1, 2], [3, 1])


def test_one_of_which_the_answer_says_nothing_is_uncertain() -> None:
    batch, _ = answers({"Successful": landed("0", "1")})
    assert numbers(batch.uncertain) == [2]
