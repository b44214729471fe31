"""A note is believed if a worker signed it for this very body; whatever else a message says of itself is a claim."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, MAX_NOTE_BYTES, Notes, claimed
from domain.errors import StoreUnavailableError
from tests.support.notes import NOTES, KnownSecret, signed

SENT = datetime(2026, 6, 1, tzinfo=UTC)
FACTS = {"reason": "broken", "operation": "bill", "first_sent": 1_700_000_000_000, "detail": None}
BODY = '{"job_id":"1"}'
MESSAGE = Message("m1", "h1", BODY, "arn:aws:sqs:us-east-1:0:jobs", sent_at=SENT)


def with_note(text: str) -> Message:
    return replace(MESSAGE, attributes={ATTRIBUTE: {"dataType": "String", "stringValue": text}})


def test_what_a_worker_signed_is_believed() -> None:
    message = replace(MESSAGE, attributes=signed(FACTS, BODY))
    assert NOTES.of(message) == FACTS
    assert NOTES.first_sent(message) == datetime.fromtimestamp(1_700_000_000, UTC)


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "default"},
        {"first_sent": 1},
        {"reason": None},
        {"more": 1},
        {"mac": ""},
        {"mac": None},
        {"mac": 7},
        {"mac": ["0"] * 32},
        {"mac": "0" * 32},
        {"mac": "0" * 64},
        {"mac": "\u00fc" * 32},
    ],
)
def test_a_note_that_was_changed_or_is_not_signed_is_a_claim(change: dict[str, Any]) -> None:
    message = with_note(json.dumps({**NOTES.signed(FACTS, BODY), **change}))
    assert NOTES.of(message) == {}
    assert NOTES.first_sent(message) == SENT
    assert claimed(message)


def test_a_note_belongs_to_its_body_and_to_its_namespaces_secret() -> None:
    message = replace(MESSAGE, attributes=signed(FACTS, BODY))
    assert NOTES.of(replace(message, body='{"job_id":"2"}')) == {}
    assert Notes(KnownSecret("another")).of(message) == {}
    assert Notes(KnownSecret(None)).of(message) == {}
    assert Notes().of(message) == {}
    assert Notes().signed(FACTS, BODY) == FACTS


def test_a_body_that_is_no_text_for_utf_8_is_signed_too() -> None:
    message = replace(MESSAGE, body="\ud800", attributes=signed(FACTS, "\ud800"))
    assert NOTES.of(message) == FACTS


def test_a_note_without_a_mac_asks_no_store_and_a_long_one_is_not_even_parsed() -> None:
    secret = KnownSecret(is_away=True)
    notes = Notes(secret)
    assert notes.of(with_note(json.dumps(FACTS))) == {}
    assert notes.of(with_note(json.dumps({**FACTS, "mac": "0" * 32, "more": "x" * MAX_NOTE_BYTES}))) == {}
    assert claimed(with_note("[" * 1_000_000)) == {}
    assert secret.asked == 0
    with pytest.raises(StoreUnavailableError):
        notes.of(with_note(json.dumps({**FACTS, "mac": "0" * 32})))


def test_an_age_is_never_younger_than_what_sqs_tells() -> None:
    later = round((SENT + timedelta(days=1)).timestamp() * 1000)
    assert NOTES.first_sent(replace(MESSAGE, attributes=signed({"first_sent": later}, BODY))) == SENT
