"""What a redrive adds to a message, or writes anew, is measured: a message that came is never too large to go back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.sqs.dead_letter import MAX_ATTRIBUTES, MAX_BYTES
from adapters.sqs.dead_letter_queue import ReceivedDeadLetter, read_dead_letter
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE
from adapters.sqs.redrive import attributes_of
from tests.support.notes import NOTES

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
SENT = datetime(2026, 1, 1, tzinfo=UTC)


def age(body: str) -> str:
    return json.dumps(NOTES.signed({"first_sent": 1767225600000}, body), separators=(",", ":"))


AGE_BYTES = len("onejob" + "String" + age(""))


def text(value: str, data_type: str = "String") -> dict[str, Any]:
    return {"DataType": data_type, "StringValue": value}


def letter(body: str, attributes: dict[str, dict[str, Any]] | None = None) -> ReceivedDeadLetter:
    given = attributes or {}
    received = {
        name: {"dataType": one["DataType"], "stringValue": one.get("StringValue")} for name, one in given.items()
    }
    message = Message("message-1", "handle", body, ARN, sent_at=SENT, attributes=received)
    return read_dead_letter(message, given, NOTES)


def size(made: ReceivedDeadLetter, attributes: dict[str, Any]) -> int:
    sizes = (
        len(name.encode()) + len(one["DataType"].encode()) + len(one.get("BinaryValue") or one["StringValue"].encode())
        for name, one in attributes.items()
    )
    return len(made.message.body.encode()) + sum(sizes)


@pytest.mark.parametrize("filling", ["x", "ä"])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"a": text("ä")}, {"a": text("1", "Number.größe")}, {"a": {"DataType": "Binary", "BinaryValue": b"123"}}],
)
def test_the_age_is_added_as_long_as_it_fits(attributes: dict[str, Any], filling: str) -> None:
    room = MAX_BYTES - AGE_BYTES - size(letter(""), attributes)
    body = "x" * (room % len(filling.encode())) + filling * (room // len(filling.encode()))
    for fits in (body[1:], body):
        made = letter(fits, attributes)
        sent = attributes_of(made, NOTES, forget_age=False)
        assert sent == {**attributes, ATTRIBUTE: text(age(fits))}
        assert size(made, sent) <= MAX_BYTES
    assert size(made, sent) == MAX_BYTES
    assert attributes_of(letter(f"{body}x", attributes), NOTES, forget_age=False) == attributes


def test_an_eleventh_attribute_is_not_added() -> None:
    attributes = {f"a{number}": text("1") for number in range(MAX_ATTRIBUTES)}
    assert attributes_of(letter("{}", attributes), NOTES, forget_age=False) == attributes


def test_a_note_that_is_written_anew_is_not_longer_than_it_came() -> None:
    def note(body: str) -> dict[str, Any]:
        return {ATTRIBUTE: text(json.dumps(NOTES.signed({"first_sent": 1, "reason": "r" * 800}, body)))}

    body = "x" * (MAX_BYTES - size(letter(""), note("")))
    sent = attributes_of(letter(body, note(body)), NOTES, forget_age=True)
    assert size(letter(body), sent) < MAX_BYTES
    facts = json.loads(sent[ATTRIBUTE]["StringValue"])
    assert (facts.keys(), facts["reason"]) == ({"reason", "mac"}, "r" * 800)


def test_a_claim_gives_way_to_an_age_and_is_left_out_where_that_does_not_fit() -> None:
    claim = {ATTRIBUTE: text("{}"), "a": text("1")}
    made = letter("x" * (MAX_BYTES - size(letter(""), claim)), claim)
    assert attributes_of(made, NOTES, forget_age=False) == {"a": text("1")}
