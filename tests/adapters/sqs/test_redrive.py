"""What a message that is sent back says of its age: what the worker then takes it for."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from adapters.sqs.dead_letter_queue import ReceivedDeadLetter, read_dead_letter
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, Notes, claimed
from adapters.sqs.redrive import attributes_of
from tests.support.notes import NOTES

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
SENT_BACK = datetime(2026, 6, 1, tzinfo=UTC)
BURIED = SENT_BACK - timedelta(days=1)
FIRST = SENT_BACK - timedelta(days=40)
REASON = {"reason": "broken", "message_id": "m1"}


def letter(facts: dict[str, Any] | None, body: str = "{}", notes: Notes = NOTES) -> ReceivedDeadLetter:
    """Buried a day ago, with these facts; None: SQS moved it by itself."""
    attributes: dict[str, Any] = {"trace": {"DataType": "String", "StringValue": "t"}}
    if facts is not None:
        text = json.dumps(notes.signed(facts, body))
        attributes[ATTRIBUTE] = {"DataType": "String", "StringValue": text}
    message = Message("m2", "handle", body, ARN, sent_at=BURIED, attributes=received(attributes))
    return read_dead_letter(message, attributes, NOTES)


def received(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: {"dataType": one["DataType"], "stringValue": one["StringValue"]} for name, one in attributes.items()}


def age_of(attributes: dict[str, Any], body: str = "{}") -> timedelta:
    """As the worker reads it when the message is back."""
    sent = NOTES.first_sent(Message("m3", "handle", body, ARN, sent_at=SENT_BACK, attributes=received(attributes)))
    assert sent is not None
    return SENT_BACK - sent


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def test_an_age_that_is_forgotten_is_forgotten_wherever_it_stands() -> None:
    for facts in (None, {**REASON, "first_sent": milliseconds(FIRST)}, {"first_sent": milliseconds(FIRST)}):
        sent = attributes_of(letter(facts), NOTES, forget_age=True)
        assert age_of(sent) == timedelta(0)
        assert sent["trace"]["StringValue"] == "t"
    sent = attributes_of(letter({**REASON, "first_sent": milliseconds(FIRST)}), NOTES, forget_age=True)
    message = Message("m3", "handle", "{}", ARN, attributes=received(sent))
    assert NOTES.of(message) == REASON, "only the age is forgotten"


def test_what_a_message_claims_of_its_age_does_not_go_with_it() -> None:
    """Its own time does: whoever wrote the note, the job is no older for the worker, and no younger."""
    claims = letter({**REASON, "first_sent": milliseconds(FIRST)}, notes=Notes())
    assert (claims.note, claims.claim["reason"], claims.first_sent) == ({}, "broken", BURIED)
    sent = attributes_of(claims, NOTES, forget_age=False)
    assert age_of(sent) == timedelta(days=1)
    assert claimed(Message("m3", "handle", "{}", ARN, attributes=received(sent))).keys() == {"first_sent", "mac"}
    assert attributes_of(claims, NOTES, forget_age=True).keys() == {"trace"}


def test_an_age_that_is_not_to_be_forgotten_goes_with_the_message() -> None:
    told = letter({**REASON, "first_sent": milliseconds(FIRST)})
    assert attributes_of(told, NOTES, forget_age=False) == told.attributes
    assert age_of(attributes_of(told, NOTES, forget_age=False)) == timedelta(days=40)
    assert age_of(attributes_of(letter(None), NOTES, forget_age=False)) == timedelta(days=1)
