"""Dead letters: AWS takes each of them, and who finds one learns what came, why it was given up, and since when."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.sqs.dead_letter import DeadLetter, make_dead_letter
from adapters.sqs.message import Message, read_event
from adapters.sqs.received import lambda_event
from domain.outcome import Rejected
from tests.support.notes import NOTES, signed

ARN = "arn:aws:sqs:us-east-1:123456789012:jobs"
MIB = 1_048_576
SENT = datetime(2026, 1, 1, 12, 0, 0, 123_000, UTC)
REJECTED = Rejected("payload_mismatch", "amount: expected 10", "ValueError", 5)
MESSAGE = Message("m1", "h1", '{"job_id":"1"}', ARN, receives=7, sent_at=SENT)


def text(value: object, data_type: object = "String") -> dict[str, Any]:
    """An attribute in Lambda's shape."""
    return {"stringValue": value, "stringListValues": [], "binaryListValues": [], "dataType": data_type}


def binary(value: object, data_type: str = "Binary") -> dict[str, Any]:
    return {"binaryValue": value, "stringListValues": [], "binaryListValues": [], "dataType": data_type}


def dead_letter(
    attributes: dict[str, Any] | None = None, body: str = "{}", rejected: Rejected = REJECTED
) -> DeadLetter:
    return make_dead_letter(replace(MESSAGE, body=body, attributes=attributes or {}), rejected, "r1", notes=NOTES)


def note(letter: DeadLetter) -> Any:
    return json.loads(letter.attributes["onejob"]["StringValue"])


def redriven(letter: DeadLetter, sent_at: datetime) -> Message:
    """The dead letter as it arrives when an operator has moved it back to the queue: a new message, sent then."""
    received: Any = {
        "MessageId": "m2",
        "ReceiptHandle": "h2",
        "Body": letter.message.body,
        "Attributes": {"SentTimestamp": str(round(sent_at.timestamp() * 1000)), "ApproximateReceiveCount": "1"},
        "MessageAttributes": letter.attributes,
    }
    [message] = read_event(lambda_event([received], ARN))
    return message


def bytes_of(name: str, attribute: dict[str, Any]) -> int:
    value = attribute["BinaryValue"] if "BinaryValue" in attribute else attribute["StringValue"].encode()
    return len(name.encode()) + len(attribute["DataType"].encode()) + len(value)


def bytes_in_all(letter: DeadLetter) -> int:
    return len(letter.message.body.encode()) + sum(bytes_of(*item) for item in letter.attributes.items())


NOTE_BYTES = bytes_of("onejob", dead_letter().attributes["onejob"])

# The reason.


def test_a_dead_letter_says_why_it_was_given_up() -> None:
    letter = make_dead_letter(MESSAGE, REJECTED, "r1", "invoices")
    assert letter.attributes.keys() == {"onejob"}
    assert letter.attributes["onejob"].keys() == {"DataType", "StringValue"}
    assert letter.attributes["onejob"]["DataType"] == "String"
    assert note(letter) == {
        "reason": "payload_mismatch",
        "detail": "amount: expected 10",
        "error_type": "ValueError",
        "attempts": 5,
        "receives": 7,
        "first_sent": 1_767_268_800_123,
        "message_id": "m1",
        "request_id": "r1",
        "operation": "invoices",
    }


def test_what_is_not_known_is_null() -> None:
    letter = make_dead_letter(replace(MESSAGE, sent_at=None), Rejected("not_json"), "r1")
    assert [note(letter)[name] for name in ("first_sent", "attempts", "error_type")] == [None, None, None]


@pytest.mark.parametrize("body", ['{"job_id":"1"}', " \ufeff{ }\r\n", "not json", '"\\ud800"', "é😀\t"])
def test_the_body_is_the_one_that_came(body: str) -> None:
    assert dead_letter(body=body).message.body == body


NASTY = ["x" * 5_000, '"' * 5_000, "\\" * 5_000, "\x00\x1f\x7f\n" * 1_000, "😀" * 5_000, "é\ud800\uffff", "</a>&'%"]


@pytest.mark.parametrize("nasty", NASTY)
@pytest.mark.parametrize("receives", [1, 10**9])
def test_the_reason_is_printable_ascii_json_under_a_kilobyte_whatever_is_in_it(nasty: str, receives: int) -> None:
    message = replace(MESSAGE, message_id=nasty, receives=receives)
    letter = make_dead_letter(message, Rejected(nasty, nasty, nasty, 10**9), nasty)
    written = letter.attributes["onejob"]["StringValue"]
    assert written.isascii()
    assert written.isprintable()
    assert len(written) < 1024
    assert note(letter)["receives"] == receives
    assert note(letter)["attempts"] == 10**9
    assert note(letter)["first_sent"] == 1_767_268_800_123


def test_a_count_beyond_all_reason_drops_the_detail_and_not_the_facts() -> None:
    letter = make_dead_letter(
        replace(MESSAGE, receives=10**300), Rejected("r" * 100, "d" * 300, "e" * 100, 5), "q" * 100
    )
    assert len(letter.attributes["onejob"]["StringValue"]) < 1024
    assert note(letter)["reason"] == "r" * 100
    assert note(letter)["error_type"] == "e" * 100
    assert "detail" not in note(letter)


def test_the_words_of_a_note_have_their_lengths() -> None:
    message = replace(MESSAGE, message_id="m" * 101)
    letter = note(make_dead_letter(message, Rejected("r" * 101, "", "e" * 101, 5), "q" * 101))
    assert [letter[name] for name in ("reason", "error_type", "message_id", "request_id")] == [
        character * 100 for character in "remq"
    ]


def test_a_note_may_have_a_thousand_bytes_and_no_more() -> None:
    def written(receives: int) -> str:
        message = replace(MESSAGE, message_id="m" * 100, receives=receives)
        rejected = Rejected("r" * 100, "d" * 300, "e" * 100, 5)
        return str(make_dead_letter(message, rejected, "q" * 100).attributes["onejob"]["StringValue"])

    digits = 1000 - len(written(0)) + 1
    assert len(written(10 ** (digits - 1))) == 1000
    assert "detail" not in written(10**digits)


def test_beside_a_body_that_leaves_almost_no_room_only_reason_and_age_are_told() -> None:
    assert note(dead_letter(body="x" * (MIB - 150))).keys() == {"reason", "first_sent", "mac"}


@pytest.mark.parametrize("left", [0, 10, 40, 100, 250, 300, 400])
def test_beside_a_body_that_leaves_little_room_the_age_outlives_the_explanations(left: int) -> None:
    body = "x" * (MIB - left)
    letter = make_dead_letter(replace(MESSAGE, body=body), Rejected("card_expired", "d" * 200, "E" * 80, 1), "request")
    size = sum(len(name) + len("String") + len(each["StringValue"]) for name, each in letter.attributes.items())
    assert len(body) + size <= MIB
    if left >= 100:
        assert note(letter)["reason"] == "card_expired"
        assert note(letter)["first_sent"] == 1_767_268_800_123


def test_a_second_burial_of_a_nearly_full_body_still_knows_its_first_sending() -> None:
    body = "x" * (MIB - 260)
    first = make_dead_letter(replace(MESSAGE, body=body), Rejected("stale"), "request", notes=NOTES)
    stored = {"onejob": text(first.attributes["onejob"]["StringValue"])}
    redriven = replace(MESSAGE, body=body, sent_at=SENT + timedelta(days=9), attributes=stored)
    second = make_dead_letter(redriven, Rejected("card_expired", "d" * 100), "request", notes=NOTES)
    assert note(second)["first_sent"] == 1_767_268_800_123


@pytest.mark.parametrize(
    ("detail", "readable"),
    [
        ("lines[0].sku: expected string (1 to 20)", "lines[0].sku: expected string (1 to 20)"),
        ('say "no"', "say ?no?"),
        ("C:\\temp", "C:?temp"),
        ("café\n", "caf??"),
        ("~!#[]{}^", "~!#[]{}^"),
        ("long " * 1_000, "long " * 60),
    ],
)
def test_a_detail_stays_readable(detail: str, readable: str) -> None:
    assert note(dead_letter(rejected=Rejected("r", detail)))["detail"] == readable


# Since when.


def test_a_job_is_as_old_as_its_first_sending_however_often_it_was_buried() -> None:
    letter = make_dead_letter(MESSAGE, REJECTED, "r1", notes=NOTES)
    for day in range(1, 5):
        message = redriven(letter, SENT + timedelta(days=day))
        assert NOTES.first_sent(message) == SENT
        letter = make_dead_letter(message, Rejected("attempts_exhausted"), f"r{day}", notes=NOTES)
        assert note(letter)["first_sent"] == 1_767_268_800_123


def test_a_redriven_letter_that_is_given_up_again_says_so_in_one_reason() -> None:
    again = make_dead_letter(redriven(dead_letter({"a": text("1")}), SENT + timedelta(days=1)), Rejected("stale"), "r2")
    assert again.attributes.keys() == {"onejob", "a"}
    assert [note(again)[name] for name in ("reason", "receives", "message_id", "request_id")] == [
        "stale",
        1,
        "m2",
        "r2",
    ]


def remembering(first_sent: int) -> dict[str, Any]:
    return signed({"first_sent": first_sent}, MESSAGE.body)


def test_a_remembered_sending_cannot_make_a_message_younger() -> None:
    later = round((SENT + timedelta(days=400)).timestamp() * 1000)
    assert NOTES.first_sent(replace(MESSAGE, attributes=remembering(later))) == SENT


def test_a_remembered_sending_counts_where_sqs_says_nothing() -> None:
    message = replace(MESSAGE, sent_at=None, attributes=remembering(1_767_268_800_123))
    assert NOTES.first_sent(message) == SENT


@pytest.mark.parametrize(
    "attribute",
    [
        text("not json"),
        text('{"first_sent":"1000"}'),
        text("[" * 100_000),
        text("[1]"),
        text("7"),
        text("null"),
        text("{}"),
        text('"first_sent"'),
        text(None),
        {},
        binary("AAAA"),
        *[
            text(f'{{"first_sent":{value}}}')
            for value in ("null", "true", "-5", '"1_000"', '"x"', "1.5", "0", "[]", "{}", "1e999")
        ],
        *[text(f'{{"first_sent":{"9" * digits}}}') for digits in (15, 30, 400, 5_000)],
    ],
)
def test_an_attribute_of_that_name_by_somebody_else_tells_nothing(attribute: dict[str, Any]) -> None:
    assert NOTES.first_sent(replace(MESSAGE, attributes={"onejob": attribute})) == SENT
    assert NOTES.first_sent(replace(MESSAGE, attributes={"onejob": attribute}, sent_at=None)) is None
    assert note(dead_letter({"onejob": attribute}))["reason"] == "payload_mismatch"


def test_a_message_that_nobody_dated_has_no_age() -> None:
    assert NOTES.first_sent(replace(MESSAGE, sent_at=None)) is None


# The original attributes, within AWS's limits.


@pytest.mark.parametrize(
    ("attribute", "sent"),
    [
        (text("t"), {"DataType": "String", "StringValue": "t"}),
        (text("{}", "String.json"), {"DataType": "String.json", "StringValue": "{}"}),
        (text("-1.5e3", "Number"), {"DataType": "Number", "StringValue": "-1.5e3"}),
        (text("7", "Number.int"), {"DataType": "Number.int", "StringValue": "7"}),
        (binary("AP8="), {"DataType": "Binary", "BinaryValue": b"\x00\xff"}),
        (binary("AP8=", "Binary.png"), {"DataType": "Binary.png", "BinaryValue": b"\x00\xff"}),
        (text("t", f"String.{'x' * 249}"), {"DataType": f"String.{'x' * 249}", "StringValue": "t"}),
        (text("\t\n\r ~\x7f\x85"), {"DataType": "String", "StringValue": "\t\n\r ~\x7f\x85"}),
        (text("\ud7ff\ue000\ufffd"), {"DataType": "String", "StringValue": "\ud7ff\ue000\ufffd"}),
        (text("\U00010000😀\U0010ffff"), {"DataType": "String", "StringValue": "\U00010000😀\U0010ffff"}),
    ],
)
def test_an_attribute_arrives_as_it_was_sent(attribute: dict[str, Any], sent: dict[str, Any]) -> None:
    assert dead_letter({"a": attribute}).attributes["a"] == sent


@pytest.mark.parametrize(
    "attribute",
    [
        {},
        text(""),
        text(None),
        text(7),
        {"dataType": "String"},
        text("", "Number"),
        *[text(f"a{illegal}") for illegal in "\x00\x08\x0b\x0c\x0e\x1f\ud800\udfff\ufffe\uffff"],
        text("\x01", "String.json"),
        binary(""),
        binary(None),
        {"dataType": "Binary"},
        {"dataType": "Binary", "stringValue": "AP8="},
        binary("AP8"),
        binary("é"),
        binary(7),
        text("t", None),
        text("t", 7),
        text("t", ""),
        text("t", "string"),
        text("t", "Strings"),
        text("t", "String."),
        text("t", "String.json\x01"),
        text("t", "String.\ud800"),
        text("t", "StringList"),
        text("t", "Float"),
        text("t", f"String.{'x' * 250}"),
        binary("AP=8"),
        binary("AP8=\n"),
    ],
)
def test_an_attribute_that_sqs_would_refuse_stays_behind_and_the_rest_goes(attribute: dict[str, Any]) -> None:
    assert dead_letter({"a": attribute, "b": text("t")}).attributes.keys() == {"onejob", "b"}


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a\n", "é", "a/b", "a:b", ".a", "a.", "a..b", ".", "aws.a", "AWS.a", "amazon.a", "AmaZon.a", "x" * 257],
)
def test_an_illegal_name_stays_behind_and_the_rest_goes(name: str) -> None:
    assert dead_letter({name: text("t"), "b": text("t")}).attributes.keys() == {"onejob", "b"}


@pytest.mark.parametrize("name", ["a", "0", "_", "-", "a.b.c-D_1", "aws", "awsome.a", "my.aws.a", "Onejob", "x" * 256])
def test_a_legal_name_is_kept(name: str) -> None:
    assert dead_letter({name: text("t")}).attributes.keys() == {"onejob", name}


def test_ten_attributes_are_kept_the_reason_first() -> None:
    letter = dead_letter({f"a{number}": text("t") for number in range(10)})
    assert list(letter.attributes) == ["onejob", *[f"a{number}" for number in range(9)]]


def test_neither_an_earlier_reason_nor_an_illegal_attribute_takes_a_place() -> None:
    legal = {f"a{number}": text("t") for number in range(9)}
    assert dead_letter({"onejob": text("{}"), "empty": text("")} | legal).attributes.keys() == {"onejob", *legal}


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("name", text("value")),
        ("name", text("é😀\ud7ff" * 10)),
        ("name", text("1", "Number.of-a-kind")),
        ("n" * 256, binary(b64encode(bytes(500)).decode(), "Binary.png")),
    ],
)
@pytest.mark.parametrize("filler", ["x", "é"])
def test_one_mebibyte_holds_body_and_attributes_to_the_last_byte(
    name: str, attribute: dict[str, Any], filler: str
) -> None:
    """Bytes of UTF-8, of body, names, types and values."""
    room = MIB - NOTE_BYTES - bytes_of(name, dead_letter({name: attribute}).attributes[name])
    body = filler * (room // len(filler.encode()))
    body += "x" * (room - len(body.encode()))
    full = dead_letter({name: attribute}, body)
    assert full.attributes.keys() == {"onejob", name}
    assert bytes_in_all(full) == MIB
    assert dead_letter({name: attribute}, f"{body}x").attributes.keys() == {"onejob"}


def test_an_attribute_that_does_not_fit_leaves_its_room_to_smaller_ones() -> None:
    attributes = {"a": text("1"), "big": text("x" * MIB), "b": text("2")}
    letter = dead_letter(attributes, "x" * 500_000)
    assert letter.attributes.keys() == {"onejob", "a", "b"}
    assert bytes_in_all(letter) <= MIB


def test_the_reason_goes_before_the_original_attributes_when_room_is_short() -> None:
    assert dead_letter({"a": text("1")}, "x" * (MIB - NOTE_BYTES)).attributes.keys() == {"onejob"}


@pytest.mark.parametrize("body", ["x" * MIB, "é" * (MIB // 2), "😀" * (MIB // 4)])
def test_a_body_that_alone_fills_a_mebibyte_travels_alone(body: str) -> None:
    letter = dead_letter({"a": text("1")}, body)
    assert (letter.message.body, letter.attributes) == (body, {})


def test_a_body_that_leaves_no_room_for_the_reason_is_still_within_the_limit() -> None:
    assert bytes_in_all(dead_letter({"a": text("1")}, "x" * (MIB - NOTE_BYTES + 1))) <= MIB
