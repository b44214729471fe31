"""The queue on boto3: what reaches SQS, and that whatever SQS refuses is told as exactly that and loses nothing."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.stub import Stubber

from adapters.sqs.dead_letter import DeadLetter, make_dead_letter
from adapters.sqs.message import Message, read_event
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import SqsQueue
from adapters.sqs.received import lambda_event
from domain.outcome import Rejected
from entrypoints.emulator.launcher import only_environment
from tests.support.aws import emulated, in_process

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

ARN = "arn:aws:sqs:eu-central-1:210987654321:jobs"
DEAD = "https://sqs.eu-central-1.amazonaws.com/210987654321/dead"
MESSAGE = Message("m1", "h1", '{"secret":1}', ARN)
LETTER = make_dead_letter(MESSAGE, Rejected("stale"), "r1")


def client(**options: Any) -> "SQSClient":
    keys = {"aws_access_key_id": "t", "aws_secret_access_key": "t"}
    return boto3.client(
        "sqs", region_name="eu-central-1", config=Config(retries={"total_max_attempts": 1}), **keys | options
    )


def unreachable() -> "SQSClient":
    return client(endpoint_url="http://127.0.0.1:1")


def from_environment() -> "SQSClient":
    return boto3.client("sqs")


def misspelled() -> "SQSClient":
    return client(endpoint_url="garbage")


def without_credentials() -> "SQSClient":
    return boto3.client("sqs", region_name="eu-central-1")


def never() -> "SQSClient":
    raise AssertionError("a client was made")


UNCONFIGURED = {
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}


@pytest.fixture
def unconfigured() -> Iterator[None]:
    with only_environment(UNCONFIGURED):
        yield


@contextmanager
def stubbed(dead_letter_url: str = DEAD) -> Iterator[tuple[SqsQueue, Stubber]]:
    """A client that expects the requests it is told to, in order."""
    with only_environment(UNCONFIGURED):
        made = client()
    with Stubber(made) as stub:
        yield SqsQueue(lambda: made, dead_letter_url), stub
        stub.assert_no_pending_responses()


def create(name: str) -> str:
    sqs = from_environment()
    if name.endswith(".fifo"):
        return sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})["QueueUrl"]
    return sqs.create_queue(QueueName=name)["QueueUrl"]


def receive(url: str) -> list[Any]:
    """All that is visible, as SQS gives it."""
    received: list[Any] = []
    options: Any = {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"], "VisibilityTimeout": 600}
    while batch := from_environment().receive_message(QueueUrl=url, MaxNumberOfMessages=10, **options).get("Messages"):
        received += batch
    return received


def messages(url: str, number: int) -> list[Message]:
    """So many messages of that queue, sent and received."""
    for count in range(number):
        from_environment().send_message(QueueUrl=url, MessageBody=str(count))
    asked = from_environment().get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    received = read_event(lambda_event(receive(url), asked["Attributes"]["QueueArn"]))
    assert len(received) == number
    return received


def left(url: str) -> int:
    """Messages of a queue, visible or not."""
    counts = from_environment().get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return int(counts["ApproximateNumberOfMessages"]) + int(counts["ApproximateNumberOfMessagesNotVisible"])


# Burying.


def test_a_dead_letter_arrives_with_its_body_and_attributes() -> None:
    attributes: dict[str, dict[str, Any]] = {
        "onejob": {"DataType": "String", "StringValue": "{}"},
        "count": {"DataType": "Number.int", "StringValue": "7"},
        "image": {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"},
    }
    with in_process():
        url = create("dead")
        SqsQueue(from_environment, url).dead_letter(DeadLetter(MESSAGE, attributes))
        [letter] = receive(url)
    assert (letter["Body"], letter["MessageAttributes"]) == (MESSAGE.body, attributes)


def test_a_letter_that_has_room_for_nothing_but_its_body_is_sent_without_attributes() -> None:
    body = "x" * 1_048_576
    with stubbed() as (queue, stub):
        stub.add_response("send_message", {"MessageId": "m2"}, {"QueueUrl": DEAD, "MessageBody": body})
        queue.dead_letter(make_dead_letter(Message("m1", "h1", body, ARN), Rejected("stale"), "r1"))


@pytest.mark.parametrize("group", ["g1", None])
@pytest.mark.parametrize("arn", [ARN, f"{ARN}.fifo"])
def test_a_standard_dead_letter_queue_is_sent_the_group_if_there_is_one_and_no_deduplication_id(
    arn: str, group: str | None
) -> None:
    message = Message("m1", "h1", "{}", arn, group_id=group)
    letter = make_dead_letter(message, Rejected("stale"), "r1")
    with stubbed() as (queue, stub):
        expected = {"QueueUrl": DEAD, "MessageBody": "{}", "MessageAttributes": letter.attributes}
        expected |= {"MessageGroupId": group} if group else {}
        stub.add_response("send_message", {"MessageId": "m2"}, expected)
        queue.dead_letter(letter)


def test_a_fifo_dead_letter_keeps_its_group_and_arrives_once_however_often_it_is_sent() -> None:
    message = Message("m1", "h1", "{}", f"{ARN}.fifo", group_id="g1")
    with emulated():
        url = create("dead.fifo")
        queue = SqsQueue(from_environment, url)
        queue.dead_letter(make_dead_letter(message, Rejected("stale"), "r1"))
        queue.dead_letter(make_dead_letter(message, Rejected("stale"), "r2"))
        [letter] = receive(url)
    assert letter["Attributes"]["MessageGroupId"] == "g1"
    assert letter["Attributes"]["MessageDeduplicationId"] == "m1"


def test_equal_bodies_are_letters_of_their_own_and_without_a_group_wait_for_nobody() -> None:
    with emulated():
        url = create("dead.fifo")
        queue = SqsQueue(from_environment, url)
        for message_id in ("m1", "m2"):
            queue.dead_letter(make_dead_letter(Message(message_id, "h", "{}", ARN), Rejected("stale"), "r1"))
        assert {letter["Attributes"]["MessageGroupId"] for letter in receive(url)} == {"m1", "m2"}


@pytest.mark.parametrize(("group", "sent"), [("g1", "g1"), (None, "m1")])
def test_a_fifo_dead_letter_queue_is_sent_a_group_and_a_deduplication_id(group: str | None, sent: str) -> None:
    letter = DeadLetter(Message("m1", "h1", "{}", f"{ARN}.fifo", group_id=group), {})
    with stubbed(f"{DEAD}.fifo") as (queue, stub):
        expected = {
            "QueueUrl": f"{DEAD}.fifo",
            "MessageBody": "{}",
            "MessageGroupId": sent,
            "MessageDeduplicationId": "m1",
        }
        stub.add_response("send_message", {"MessageId": "m2"}, expected)
        queue.dead_letter(letter)


def test_without_a_dead_letter_queue_nothing_can_be_buried() -> None:
    with pytest.raises(QueueUnavailableError, match=r"^DEAD_LETTER_QUEUE_URL is not set$"):
        SqsQueue(never, None).dead_letter(LETTER)


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidMessageContents", "RequestThrottled"])
def test_a_burial_that_sqs_refuses_is_an_error_that_names_the_reason_and_no_content(code: str) -> None:
    with stubbed() as (queue, stub):
        stub.add_client_error("send_message", code, "secret")
        with pytest.raises(QueueUnavailableError) as failed:
            queue.dead_letter(LETTER)
    assert str(failed.value) == f"SQS SendMessage: {code}"
    assert failed.value.__cause__ is not None


def test_a_dead_letter_queue_that_is_not_there_is_an_error() -> None:
    with in_process(), pytest.raises(QueueUnavailableError, match=r"^SQS SendMessage: .*NonExistentQueue$"):
        SqsQueue(from_environment, "https://sqs.us-east-1.amazonaws.com/1/dead").dead_letter(LETTER)


BROKEN = {
    "NoRegionError": from_environment,
    "NoCredentialsError": without_credentials,
    "EndpointConnectionError": unreachable,
    "ValueError": misspelled,
}


@pytest.mark.usefixtures("unconfigured")
@pytest.mark.parametrize(("error", "make_client"), BROKEN.items())
def test_a_burial_that_never_reaches_sqs_is_an_error(error: str, make_client: "Callable[[], SQSClient]") -> None:
    with pytest.raises(QueueUnavailableError, match=rf"^SQS SendMessage: {error}$"):
        SqsQueue(make_client, DEAD).dead_letter(LETTER)


# Settling.


def test_done_messages_are_deleted_and_others_are_not() -> None:
    with in_process():
        url = create("jobs")
        first, _, third = messages(url, 3)
        assert SqsQueue(from_environment, None).delete([first, third]) == []
        assert left(url) == 1


def test_each_message_gets_the_visibility_that_was_set_for_it() -> None:
    with in_process():
        url = create("jobs")
        first, second, third = messages(url, 3)
        timeouts = [(first, 0), (second, 900), (third, 0)]
        assert SqsQueue(from_environment, None).set_visibility(timeouts) == []
        assert {received["Body"] for received in receive(url)} == {first.body, third.body}


def test_more_messages_than_a_request_takes_are_all_deleted() -> None:
    with emulated():
        url = create("jobs")
        assert SqsQueue(from_environment, None).delete(messages(url, 23)) == []
        assert left(url) == 0


def test_more_messages_than_a_request_takes_all_become_visible() -> None:
    with emulated():
        url = create("jobs")
        timeouts = [(message, 0) for message in messages(url, 23)]
        assert SqsQueue(from_environment, None).set_visibility(timeouts) == []
        assert len(receive(url)) == 23


@pytest.mark.parametrize("name", ["jobs", "jobs.fifo"])
def test_the_queues_url_comes_from_the_messages_own_arn(name: str) -> None:
    message = Message("m1", "h1", "{}", f"arn:aws:sqs:eu-central-1:210987654321:{name}")
    url = f"https://sqs.eu-central-1.amazonaws.com/210987654321/{name}"
    entry = {"Id": "0", "ReceiptHandle": "h1"}
    done: dict[str, Any] = {"Successful": [{"Id": "0"}], "Failed": []}
    with stubbed() as (queue, stub):
        stub.add_response("delete_message_batch", done, {"QueueUrl": url, "Entries": [entry]})
        later = {**entry, "VisibilityTimeout": 60}
        stub.add_response("change_message_visibility_batch", done, {"QueueUrl": url, "Entries": [later]})
        assert queue.delete([message]) == []
        assert queue.set_visibility([(message, 60)]) == []


def test_what_sqs_refuses_of_a_request_is_counted_and_the_rest_is_done() -> None:
    with in_process():
        url = create("jobs")
        first, second = messages(url, 2)
        stale = [Message("m", handle, "{}", first.queue_arn) for handle in ("stale-1", "stale-2")]
        queue = SqsQueue(from_environment, None)
        refused = ["ReceiptHandleIsInvalid"] * 2
        assert queue.set_visibility([(stale[0], 0), (first, 0), (second, 0), (stale[1], 0)]) == refused
        assert len(receive(url)) == 2
        assert queue.delete([*stale, first]) == refused
        assert left(url) == 1


@pytest.mark.parametrize("request_name", ["delete_message_batch", "change_message_visibility_batch"])
def test_a_request_that_fails_counts_whole_and_stops_no_other(request_name: str) -> None:
    refused = [{"Id": str(number), "SenderFault": True, "Code": "ReceiptHandleIsInvalid"} for number in range(3)]
    with stubbed() as (queue, stub):
        stub.add_client_error(request_name, "AccessDenied")
        stub.add_response(
            request_name, {"Successful": [{"Id": str(number)} for number in range(3, 10)], "Failed": refused}
        )
        stub.add_client_error(request_name, "RequestThrottled")
        settle = queue.delete if request_name == "delete_message_batch" else visibility(queue)
        expected = ["AccessDenied"] * 10 + ["ReceiptHandleIsInvalid"] * 3 + ["RequestThrottled"] * 5
        assert settle([MESSAGE] * 25) == expected


def test_an_answer_that_does_not_name_an_entry_has_not_done_it() -> None:
    nameless: Any = [{"Id": "0", "SenderFault": True}]
    with only_environment(UNCONFIGURED):
        made = client()
    answers = iter([{"Successful": []}, {"Failed": nameless}])
    made.delete_message_batch = lambda **_: next(answers)  # type: ignore[method-assign, assignment]
    queue = SqsQueue(lambda: made, None)
    assert (queue.delete([MESSAGE]), queue.delete([MESSAGE])) == (["NoEvidenceError"], ["unknown"])


def test_an_endpoint_may_end_in_a_slash() -> None:
    with only_environment(UNCONFIGURED):
        made = client(endpoint_url="http://127.0.0.1:1/")
    asked: list[Any] = []
    made.delete_message_batch = lambda **request: asked.append(request) or {}  # type: ignore[method-assign, assignment, func-returns-value]
    SqsQueue(lambda: made, None).delete([MESSAGE])
    assert asked[0]["QueueUrl"] == "http://127.0.0.1:1/210987654321/jobs"


@pytest.mark.usefixtures("unconfigured")
@pytest.mark.parametrize("make_client", BROKEN.values(), ids=BROKEN.keys())
def test_settling_that_never_reaches_sqs_is_counted_and_raises_nothing(make_client: "Callable[[], SQSClient]") -> None:
    queue = SqsQueue(make_client, None)
    assert len(queue.delete([MESSAGE] * 12)) == 12
    assert len(visibility(queue)([MESSAGE] * 12)) == 12


def visibility(queue: SqsQueue) -> Callable[[list[Message]], list[str]]:
    return lambda messages: queue.set_visibility([(message, 60) for message in messages])


# The client.


def test_no_client_is_made_for_nothing() -> None:
    queue = SqsQueue(never, DEAD)
    assert (queue.delete([]), queue.set_visibility([])) == ([], [])


@pytest.mark.usefixtures("unconfigured")
def test_one_client_is_made_and_kept() -> None:
    made: list[SQSClient] = []

    def make_client() -> "SQSClient":
        made.append(unreachable())
        return made[-1]

    queue = SqsQueue(make_client, DEAD)
    assert (len(queue.delete([MESSAGE] * 11)), len(visibility(queue)([MESSAGE]))) == (11, 1)
    with pytest.raises(QueueUnavailableError):
        queue.dead_letter(LETTER)
    assert len(made) == 1


def test_a_client_that_could_not_be_made_is_tried_again_at_the_next_need() -> None:
    with in_process():
        url = create("jobs")
        received = messages(url, 1)
        queue = SqsQueue(from_environment, None)
        with only_environment(UNCONFIGURED):
            assert queue.delete(received) == ["NoRegionError"]
        assert queue.delete(received) == []
        assert left(url) == 0


@pytest.mark.usefixtures("unconfigured")
def test_threads_that_need_the_client_at_once_share_one() -> None:
    made = []
    only = unreachable()

    def make_client() -> "SQSClient":
        made.append(only)
        if len(made) == 1:
            other.start()
            other.join(0.05)  # time enough to come in here too, if nothing kept it out
        return only

    queue = SqsQueue(make_client, None)
    other = Thread(target=queue.delete, args=([MESSAGE],))
    queue.delete([MESSAGE])
    other.join()
    assert len(made) == 1
