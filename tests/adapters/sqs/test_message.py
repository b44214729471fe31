"""A Lambda event read: what a message is made of, and which events are no SQS batch, so that nothing is lost unread."""

from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.sqs.message import Message, NotAnSqsBatchError, from_timestamp, read_event
from domain.delivery import Delivery

ARN = "arn:aws:sqs:us-east-2:123456789012:jobs"
BARE = {
    "eventSource": "aws:sqs",
    "eventSourceARN": ARN,
    "messageId": "m1",
    "receiptHandle": "h1",
    "body": '{"job_id":"1"}',
}
FULL = BARE | {
    "eventSourceARN": f"{ARN}.fifo",
    "attributes": {
        "ApproximateReceiveCount": "3",
        "SentTimestamp": "1573251510774",
        "SequenceNumber": "18849496460467696128",
        "MessageGroupId": "g1",
        "SenderId": "AIDAIO23YVJENQZJOL4VO",
        "MessageDeduplicationId": "d1",
        "ApproximateFirstReceiveTimestamp": "1573251510780",
    },
    "messageAttributes": {
        "trace": {"stringValue": "t1", "stringListValues": [], "binaryListValues": [], "dataType": "String"}
    },
    "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
    "awsRegion": "us-east-2",
}


def only(record: dict[str, Any]) -> Message:
    [message] = read_event({"Records": [record]})
    return message


def test_a_message_keeps_what_lambda_says_of_it() -> None:
    assert only(FULL) == Message(
        message_id="m1",
        receipt_handle="h1",
        body='{"job_id":"1"}',
        queue_arn=f"{ARN}.fifo",
        receives=3,
        sent_at=datetime(2019, 11, 8, 22, 18, 30, 774_000, UTC),
        group_id="g1",
        attributes=FULL["messageAttributes"],  # type: ignore[arg-type]
    )


def test_a_record_without_attributes_is_a_first_receive_sent_nobody_knows_when() -> None:
    assert only(BARE) == Message("m1", "h1", '{"job_id":"1"}', ARN, receives=1, sent_at=None, group_id=None)


@pytest.mark.parametrize("arn", ["", "not-an-arn", "arn:aws:sqs:us-east-1:1", "arn:aws:sqs:us-east-1:1:a:b"])
def test_an_arn_that_names_no_queue_is_refused_before_anything_runs(arn: str) -> None:
    with pytest.raises(NotAnSqsBatchError, match="eventSourceARN"):
        read_event({"Records": [BARE | {"eventSourceARN": arn}]})


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({}, 'expected an SQS batch: {"Records": [...]} with at least one record'),
        ({"Records": [{}]}, "expected records with eventSource aws:sqs"),
        ({"Records": [BARE | {"eventSourceARN": "jobs"}]}, "a record's eventSourceARN is not the ARN of a queue"),
    ],
)
def test_an_error_says_what_was_expected(event: object, said: str) -> None:
    with pytest.raises(NotAnSqsBatchError) as refused:
        read_event(event)
    assert str(refused.value) == said


@pytest.mark.parametrize("group", [7, None, ["g"]])
def test_a_group_that_is_no_text_is_none(group: object) -> None:
    assert only(BARE | {"attributes": {"MessageGroupId": group}}).group_id is None


def test_a_count_has_fifteen_digits_at_most() -> None:
    assert only(BARE | {"attributes": {"ApproximateReceiveCount": "9" * 15}}).receives == 10**15 - 1
    assert only(BARE | {"attributes": {"ApproximateReceiveCount": "9" * 16}}).receives == 1


def test_messages_keep_the_order_of_their_records() -> None:
    records = [BARE | {"messageId": message_id} for message_id in ("m2", "m1", "m3")]
    assert [message.message_id for message in read_event({"Records": records})] == ["m2", "m1", "m3"]


@pytest.mark.parametrize(
    "event",
    [
        None,
        "Records",
        [BARE],
        {},
        {"job_id": "1"},
        {"Records": None},
        {"Records": {"0": BARE}},
        {"Records": "x"},
        {"Records": 7},
        {"Records": []},
        {"Records": [None]},
        {"Records": [[]]},
        {"Records": [{}]},
        {"Records": [{"EventSource": "aws:sns", "Sns": {"Message": "{}"}}]},
        {"Records": [BARE | {"eventSource": "aws:s3"}]},
        {"Records": [BARE, BARE | {"eventSource": "aws:kinesis"}]},
        {"detail-type": "Job", "detail": {"job_id": "1"}},
    ],
)
def test_another_event_is_an_error_and_not_an_empty_success(event: object) -> None:
    with pytest.raises(NotAnSqsBatchError, match="expected"):
        read_event(event)


@pytest.mark.parametrize("name", ["messageId", "receiptHandle", "body", "eventSourceARN"])
@pytest.mark.parametrize("value", [None, 7, {}])
def test_a_record_that_lacks_what_settling_needs_is_an_error_that_names_it(name: str, value: object) -> None:
    with pytest.raises(NotAnSqsBatchError, match=f"a record has no {name}"):
        read_event({"Records": [BARE, BARE | {name: value}]})
    with pytest.raises(NotAnSqsBatchError, match=f"a record has no {name}"):
        read_event({"Records": [{key: kept for key, kept in BARE.items() if key != name}]})


@pytest.mark.parametrize("body", ["", " ", "not json", "\ufeff{}"])
def test_a_body_is_not_looked_into(body: str) -> None:
    assert only(BARE | {"body": body}).body == body


@pytest.mark.parametrize(
    ("count", "receives"),
    [("1", 1), ("17", 17), (4, 4), ("0", 1), ("-2", 1), ("", 1), ("many", 1), (None, 1), (2.5, 1), ([], 1)],
)
def test_receives_count_from_one_whatever_is_said(count: object, receives: int) -> None:
    message = only(BARE | {"attributes": {"ApproximateReceiveCount": count}})
    assert message.delivery == Delivery(receives, "m1")
    assert message.delivery.is_redelivery is (receives > 1)


@pytest.mark.parametrize(
    ("milliseconds", "moment"),
    [
        ("1573251510774", datetime(2019, 11, 8, 22, 18, 30, 774_000, UTC)),
        (1_000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        (None, None),
        ("", None),
        ("yesterday", None),
        (0, None),
        (1.5e12, None),
        ("9" * 15, None),
        ("9" * 30, None),
        ("9" * 400, None),
        ("9" * 5_000, None),
    ],
)
def test_a_time_that_is_none_is_no_time(milliseconds: object, moment: datetime | None) -> None:
    assert from_timestamp(milliseconds) == moment
    assert only(BARE | {"attributes": {"SentTimestamp": milliseconds}}).sent_at == moment


@pytest.mark.parametrize("group", [None, "tenant-1"])
@pytest.mark.parametrize(("arn", "fifo"), [(ARN, False), (f"{ARN}.fifo", True), (f"{ARN}-fifo", False)])
def test_the_queue_decides_what_is_fifo_and_a_group_does_not(arn: str, fifo: bool, group: str | None) -> None:
    message = only(BARE | {"eventSourceARN": arn, "attributes": {"MessageGroupId": group}})
    assert message.is_fifo is fifo
    assert message.group_id == group


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (None, {}),
        ([], {}),
        ({"a": {"dataType": "String"}, "b": None, "c": "text"}, {"a": {"dataType": "String"}}),
    ],
)
def test_message_attributes_of_another_shape_are_left_out(found: object, kept: object) -> None:
    assert only(BARE | {"messageAttributes": found}).attributes == kept


@pytest.mark.parametrize("found", [None, [], "x"])
def test_system_attributes_of_another_shape_are_as_good_as_none(found: object) -> None:
    assert only(BARE | {"attributes": found}) == only(BARE)
