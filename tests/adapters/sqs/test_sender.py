"""Sending in batches: full ones, each message once, and nothing claimed that is not known."""

import json
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
from tests.support.aws_faults import AwsFault, aws_requests, refused_entries
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
    messages = [Outgoing(number, "{}", f"group-{number}", f"id-{number}") for number in range(3)]
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


def in_group(group: str, *numbers: int) -> list[Outgoing]:
    return [Outgoing(number, f'{{"job_id":"{number}"}}', group, f"id-{number}") for number in numbers]


def order_of(queue: SqsSender, group: str) -> list[int]:
    """The numbers of what a FIFO queue holds of that group, in its order."""
    received: list[Any] = []
    while found := queue.client.receive_message(
        QueueUrl=queue.url, MaxNumberOfMessages=10, MessageSystemAttributeNames=["MessageGroupId"]
    ).get("Messages"):
        received += found
        for message in found:
            queue.client.delete_message(QueueUrl=queue.url, ReceiptHandle=message["ReceiptHandle"])
    return [int(json.loads(one["Body"])["job_id"]) for one in received if one["Attributes"]["MessageGroupId"] == group]


@pytest.mark.parametrize("codes", [["InternalError"], ["ServiceUnavailable", "InternalError"], ["RequestThrottled!"]])
def test_what_is_refused_for_a_moment_keeps_its_place_in_its_group(codes: list[str]) -> None:
    jobs = sender("jobs.fifo")
    with refused_entries(**{"2": codes}):
        sent = [number for batch in jobs.send(in_group("g", *range(1, 13))) for number in numbers(batch.sent)]
    assert sent == order_of(jobs, "g") == list(range(1, 13))


def test_nothing_of_a_group_is_sent_behind_what_is_refused_for_good_and_other_groups_go_on() -> None:
    jobs = sender("jobs.fifo")
    messages = [*in_group("g", 1, 2), *in_group("h", 3), *in_group("g", 4), *in_group("h", 5), *in_group("g", 6)]
    with refused_entries(**{"2": ["InvalidMessageContents!"]}):
        done = list(jobs.send(messages))
    assert [message.number for batch in done for message, _ in batch.refused] == [2]
    assert [number for batch in done for number in numbers(batch.held)] == [4, 6]
    assert [number for batch in done for number in numbers(batch.sent)] == [1, 3, 5]
    assert (order_of(jobs, "g"), order_of(jobs, "h")) == ([1], [])


def test_nothing_of_a_group_is_sent_behind_what_is_refused_again_and_again() -> None:
    jobs = sender("jobs.fifo")
    with refused_entries(**{"2": ["InternalError"] * TRIES}):
        done = list(jobs.send([*in_group("g", 1, 2), *in_group("h", 3), *in_group("g", 4)]))
    assert [number for batch in done for number in numbers(batch.unsent)] == [2]
    assert [number for batch in done for number in numbers(batch.held)] == [4]
    assert order_of(jobs, "g") == [1]


def test_a_request_holds_one_message_of_a_group_and_ten_of_ten_groups() -> None:
    assert [numbers(one) for one in batches(in_group("g", 1, 2, 3), in_order=True)] == [[1], [2], [3]]
    groups = [message for number in range(12) for message in in_group(f"g{number}", number)]
    assert [len(one) for one in batches(groups, in_order=True)] == [10, 2]
    assert [numbers(one) for one in batches(in_group("tenant", 1, 2, 3))] == [[1, 2, 3]]


def test_on_a_fifo_queue_one_of_which_the_answer_says_nothing_is_sent_again_before_what_follows() -> None:
    jobs = sender("jobs.fifo")
    with Stubber(jobs.client) as stub:
        for names in ((), ("0",), ("0",)):
            stub.add_response("send_message_batch", {"Successful": landed(*names), "Failed": []})
        done = list(jobs.send(in_group("g", 1, 2)))
    assert [number for batch in done for number in numbers(batch.sent)] == [1, 2]


def test_on_a_fifo_queue_an_answer_that_never_says_it_landed_ends_it_with_an_error() -> None:
    jobs = sender("jobs.fifo")
    with Stubber(jobs.client) as stub:
        for _ in range(TRIES):
            stub.add_response("send_message_batch", {"Successful": [], "Failed": []})
        first, second = jobs.send(in_group("g", 1, 2))
    assert (numbers(first.unsent), numbers(second.held)) == ([1], [2])
    assert first.error is not None
