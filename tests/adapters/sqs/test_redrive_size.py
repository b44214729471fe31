"""What a redrive adds to a message, or writes anew, is measured: a message that came is never too large to go back."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.sqs.dead_letter import ATTRIBUTE, MAX_ATTRIBUTES, MAX_BYTES
from adapters.sqs.letters import Letter, note
from adapters.sqs.message import Message
from adapters.sqs.redrive import attributes_of

ARN = "arn:aws:sqs:us-east-1:000000000000:dead"
SENT = datetime(2026, 1, 1, tzinfo=UTC)
AGE = '{"first_sent":1767225600000}'
AGE_BYTES = len("onejob" + "String" + AGE)


def text(value: str, data_type: str = "String") -> dict[str, Any]:
    return {"DataType": data_type, "StringValue": value}


def letter(body: str, attributes: dict[str, dict[str, Any]] | None = None) -> Letter:
    given = attributes or {}
    received = {
        name: {"dataType": one["DataType"], "stringValue": one.get("StringValue")} for name, one in given.items()
    }
    message = Message("message-1", "handle", body, ARN, sent_at=SENT, attributes=received)
    return Letter(message, given, note(message))


def size(made: Letter, attributes: dict[str, Any]) -> int:
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
        sent = attributes_of(made, forget_age=False)
        assert sent == {**attributes, ATTRIBUTE: text(AGE)}
        assert size(made, sent) <= MAX_BYTES
    assert size(made, sent) == MAX_BYTES
    assert attributes_of(letter(f"{body}x", attributes), forget_age=False) == attributes


def test_an_eleventh_attribute_is_not_added() -> None:
    attributes = {f"a{number}": text("1") for number in range(MAX_ATTRIBUTES)}
    assert attributes_of(letter("{}", attributes), forget_age=False) == attributes


@pytest.mark.parametrize("filling", ["\x7f", "ä", "\U0001f600"])
def test_a_note_that_is_written_anew_is_not_longer_than_it_came(filling: str) -> None:
    """Whoever wrote it: six bytes for each of its characters would make a message that SQS refuses."""
    came = json.dumps({"first_sent": 1, "reason": filling * 1000}, ensure_ascii=False, separators=(",", ":"))
    attributes = {ATTRIBUTE: text(came)}
    made = letter("x" * (MAX_BYTES - size(letter(""), attributes)), attributes)
    assert size(made, attributes) == MAX_BYTES
    sent = attributes_of(made, forget_age=True)
    assert size(made, sent) <= MAX_BYTES
    assert json.loads(sent[ATTRIBUTE]["StringValue"]) == {"reason": filling * 1000}


def test_a_note_that_is_longer_when_it_is_written_anew_is_left_out() -> None:
    came = '{"first_sent":1,"number":[' + "1e15," * 100 + "1]}"
    attributes = {ATTRIBUTE: text(came), "a": text("1")}
    made = letter("x" * (MAX_BYTES - size(letter(""), attributes)), attributes)
    assert attributes_of(made, forget_age=True) == {"a": text("1")}
