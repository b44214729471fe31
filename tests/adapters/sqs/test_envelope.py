"""Envelopes: one job is one job, however many services wrapped it, and a job is never taken for an envelope."""

import json
from collections.abc import Callable

import pytest

from adapters.sqs import envelope
from adapters.sqs.envelope import DEEPEST, unwrap, unwrap_line
from domain.errors import InvalidJobError
from domain.job_factory import JobFactory
from domain.strict_json import Json
from tests.support.jobs import operations

RAW = '{"job_id":"1","amount":10}'
S3_TEST = (
    '{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-01-01T00:00:00.000Z","Bucket":"b","RequestId":"r"}'
)


def sns(message: str) -> str:
    return json.dumps(
        {
            "Type": "Notification",
            "MessageId": "x",
            "TopicArn": "arn:aws:sns:us-east-1:1:t",
            "Message": message,
            "Timestamp": "2026-01-01T00:00:00.000Z",
        }
    )


def event_bridge(detail: str) -> str:
    return f'{{"version":"0","id":"x","detail-type":"Job","source":"app","account":"1","detail":{detail}}}'


def bom(text: str) -> str:
    return f"\ufeff{text}"


@pytest.mark.parametrize(
    "body",
    [
        RAW,
        bom(RAW),
        sns(RAW),
        sns(bom(RAW)),
        bom(sns(RAW)),
        event_bridge(RAW),
        bom(event_bridge(RAW)),
        sns(event_bridge(RAW)),
        sns(bom(event_bridge(RAW))),
        sns(sns(RAW)),
        event_bridge(sns(RAW)),
        sns(sns(event_bridge(RAW))),
    ],
)
def test_a_wrapped_job_is_the_same_job_as_a_raw_one(body: str) -> None:
    factory = JobFactory("test", operations())
    assert unwrap(body) == {"job_id": "1", "amount": 10}
    assert factory.job(unwrap(body)) == factory.job(unwrap(RAW))


@pytest.mark.parametrize("wrap", [sns, event_bridge])
def test_wrapping_without_end_is_not_followed(wrap: Callable[[str], str]) -> None:
    body = RAW
    for _ in range(DEEPEST):
        body = wrap(body)
    assert unwrap(body) == json.loads(RAW)
    assert unwrap(wrap(body)) != json.loads(RAW)


@pytest.mark.parametrize("job_id", ["1", None, 7])
@pytest.mark.parametrize("look_alike", [sns('{"job_id":"2"}'), event_bridge('{"job_id":"2"}'), S3_TEST])
@pytest.mark.parametrize("wrap", [str, sns, event_bridge])
def test_what_has_a_job_id_of_its_own_is_never_an_envelope(
    wrap: Callable[[str], str], look_alike: str, job_id: Json
) -> None:
    message = json.loads(look_alike) | {"job_id": job_id}
    assert unwrap(wrap(json.dumps(message))) == message


@pytest.mark.parametrize(
    "content",
    [
        {"Type": "Notification", "Message": RAW},
        {"TopicArn": "t", "Message": RAW},
        {"detail": {"job_id": "1"}},
        {"detail-type": "Job"},
        {"Event": "s3:ObjectCreated:Put"},
        {"event": "s3:TestEvent"},
        {"payload": {"Event": "s3:TestEvent"}},
        {"Message": RAW},
        {},
        [json.loads(RAW)],
        RAW,
        None,
    ],
)
def test_what_only_resembles_an_envelope_stays_as_it_is(content: Json) -> None:
    assert unwrap(json.dumps(content)) == content


@pytest.mark.parametrize("body", [S3_TEST, bom(S3_TEST), sns(S3_TEST), sns(bom(S3_TEST)), sns(sns(S3_TEST))])
def test_s3s_test_event_is_told_apart_also_through_sns(body: str) -> None:
    with pytest.raises(envelope.NothingToDoError):
        unwrap(body)


@pytest.mark.parametrize("detail", ['"text"', "7", "null", "true", "[]", json.dumps(RAW)])
@pytest.mark.parametrize("wrap", [str, sns])
def test_a_detail_that_is_not_an_object_is_no_job(wrap: Callable[[str], str], detail: str) -> None:
    content = unwrap(wrap(event_bridge(detail)))
    assert content == json.loads(detail)
    with pytest.raises(InvalidJobError, match="not_an_object: expected object, got "):
        JobFactory("test", operations()).job(content)


@pytest.mark.parametrize("message", [None, 7, {"job_id": "1"}, [RAW]])
def test_an_sns_message_that_is_not_text_is_refused(message: Json) -> None:
    with pytest.raises(InvalidJobError, match=r"^invalid_payload: Message: expected string$"):
        unwrap(json.dumps(json.loads(sns("")) | {"Message": message}))


def test_an_sns_notification_without_a_message_is_refused() -> None:
    with pytest.raises(InvalidJobError, match=r"^invalid_payload: Message: expected string$"):
        unwrap('{"Type":"Notification","TopicArn":"t"}')


@pytest.mark.parametrize("wrap", [str, sns, bom, lambda text: sns(sns(text))])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "not_json"),
        ("", "empty_body"),
        (" \n", "empty_body"),
        ('{"job_id":"1","job_id":"2"}', "duplicate_member"),
        ('{"job_id":"1","x":NaN}', "nan_number"),
        ('{"job_id":"1","x":-Infinity}', "infinite_number"),
        ('{"job_id":"1","x":1e999}', "number_overflow"),
        ('{"job_id":"1","x":12345678901234567.89}', "inexact_number"),
        ("[" * 100_000, "too_deep"),
        (r'{"job_id":"\ud800"}', "lone_surrogate"),
    ],
)
def test_json_is_as_strict_inside_an_envelope_as_outside(text: str, reason: str, wrap: Callable[[str], str]) -> None:
    with pytest.raises(InvalidJobError) as refused:
        unwrap(wrap(text))
    assert refused.value.reason == reason


def test_an_envelope_that_readers_could_read_in_two_ways_is_refused() -> None:
    twice = sns(RAW).removesuffix("}") + ', "Message": "{}"}'
    with pytest.raises(InvalidJobError, match="duplicate_member"):
        unwrap(twice)


@pytest.mark.parametrize(
    "body",
    [
        '{"Type":"SubscriptionConfirmation","TopicArn":"arn:aws:sns:us-east-1:1:t","Token":"x","Message":"You have"}',
        '{"Type":"UnsubscribeConfirmation","TopicArn":"arn:aws:sns:us-east-1:1:t","Token":"x","Message":"You have"}',
        '{"AccountId":"1","AutoScalingGroupName":"g","Event":"autoscaling:TEST_NOTIFICATION","Service":"x"}',
    ],
)
def test_what_a_service_sends_when_it_is_set_up_is_nothing_to_do(body: str) -> None:
    for sent in (body, bom(body), sns(body)):
        with pytest.raises(envelope.NothingToDoError):
            unwrap(sent)
        with pytest.raises(InvalidJobError, match="test or confirmation message"):
            unwrap_line(sent)
    job = {**json.loads(body), "job_id": "1"}
    assert unwrap(json.dumps(job)) == job
