"""What a message that is sent back says of its age: what the worker then takes it for."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.sqs.dead_letter import ATTRIBUTE, first_sent
from adapters.sqs.letters import Letter, note
from adapters.sqs.message import Message
from adapters.sqs.redrive import attributes_of

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
SENT_BACK = datetime(2026, 6, 1, tzinfo=UTC)
BURIED = SENT_BACK - timedelta(days=1)
FIRST = SENT_BACK - timedelta(days=40)
REASON = {"reason": "broken", "message_id": "m1"}


def letter(facts: dict[str, Any] | None) -> Letter:
    """Buried a day ago, with these facts; None: SQS moved it by itself."""
    attributes: dict[str, Any] = {"trace": {"DataType": "String", "StringValue": "t"}}
    if facts is not None:
        attributes[ATTRIBUTE] = {"DataType": "String", "StringValue": json.dumps(facts)}
    message = Message("m2", "handle", "{}", ARN, sent_at=BURIED, attributes=received(attributes))
    return Letter(message, attributes, note(message))


def received(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: {"dataType": one["DataType"], "stringValue": one["StringValue"]} for name, one in attributes.items()}


def age_of(attributes: dict[str, Any]) -> timedelta:
    """As the worker reads it when the message is back."""
    sent = first_sent(Message("m3", "handle", "{}", ARN, sent_at=SENT_BACK, attributes=received(attributes)))
    assert sent is not None
    return SENT_BACK - sent


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_an_age_that_is_forgotten_is_forgotten_wherever_it_stands() -> None:
    for facts in (None, {**REASON, "first_sent": milliseconds(FIRST)}, {"first_sent": milliseconds(FIRST)}):
        sent = attributes_of(letter(facts), forget_age=True)
        assert age_of(sent) == timedelta(0)
        assert sent["trace"]["StringValue"] == "t"
    sent = attributes_of(letter({**REASON, "first_sent": milliseconds(FIRST)}), forget_age=True)
    assert json.loads(sent[ATTRIBUTE]["StringValue"]) == REASON, "only the age is forgotten"


def test_an_age_that_is_not_to_be_forgotten_goes_with_the_message() -> None:
    told = letter({**REASON, "first_sent": milliseconds(FIRST)})
    assert attributes_of(told, forget_age=False) == told.attributes
    assert age_of(attributes_of(told, forget_age=False)) == timedelta(days=40)
    assert age_of(attributes_of(letter(None), forget_age=False)) == timedelta(days=1)
