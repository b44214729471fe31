"""What holds for any input, tried on many: nothing breaks the reading, nothing exceeds AWS's limits."""

import json
import struct
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.sqs.dead_letter import MAX_ATTRIBUTES, MAX_BYTES, make_dead_letter
from adapters.sqs.envelope import NothingToDoError, unwrap
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE
from adapters.sqs.visibility import timeout_seconds, visible_again
from domain.answer import Answer
from domain.errors import InvalidJobError
from domain.identity import MAX_ID_BYTES
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.outcome import Deferred, Failed, Failure, Rejected
from domain.strict_json import Json, canonical, parse
from tests.support.notes import NOTES, signed

FACTORY = JobFactory("test", Operations())
NOW = datetime(2026, 1, 1, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
anything = st.recursive(
    scalars
    | st.binary()
    | st.floats()
    | st.decimals()
    | st.uuids()
    | st.datetimes()
    | st.complex_numbers()
    | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=12,
)


@given(values)
def test_a_value_survives_its_canonical_text(value: Json) -> None:
    text = canonical(value)
    assert parse(text) == value
    assert canonical(parse(text)) == text


@given(values)
def test_spelling_does_not_change_the_canonical_text(value: Json) -> None:
    spelled = json.dumps(value, indent=3, ensure_ascii=True)
    assert canonical(parse(spelled)) == canonical(value)


@given(st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "replace")) | values.map(json.dumps))
@example('{"Type":"Notification","TopicArn":"t","Message":"{"}')
@example('{"detail-type":"x","detail":[]}')
def test_any_body_is_a_job_or_a_named_refusal(body: str) -> None:
    try:
        made = FACTORY.job(unwrap(body))
    except NothingToDoError:
        return
    except InvalidJobError as error:
        reason = error.reason
    else:
        reason = "none"
        assert 1 <= len(made.job_id.encode()) <= MAX_ID_BYTES
    assert reason.replace("_", "").isalpha()


@given(st.text(min_size=1))
def test_an_id_is_legal_in_normal_form_or_refused_and_never_changed_otherwise(text: str) -> None:
    try:
        made = FACTORY.job({"job_id": text})
    except InvalidJobError:
        return
    assert made.job_id == unicodedata.normalize("NFC", text)
    assert made.job_id == made.job_id.strip()
    assert not any(unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for character in made.job_id)
    assert FACTORY.job({"job_id": unicodedata.normalize("NFD", text)}).key == made.key


@given(anything, st.integers(0, 200) | st.none())
def test_any_answer_is_kept_whole_or_omitted_with_a_reason(returned: object, limit: int | None) -> None:
    answer = Answer.of(returned, limit)
    assert answer.value is None or answer.omitted is None
    assert limit is None or len(answer.text.encode()) <= max(limit, len("null"))
    assert Answer.of(answer.value, limit).text == answer.text


attribute: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"dataType": st.sampled_from(["String", "Number", "Binary", "String.json", "Binary.png", "", "Boolean"])},
    optional={"stringValue": st.text(max_size=30) | st.none(), "binaryValue": st.text(max_size=20) | st.just("aGk=")},
)


@given(
    st.sampled_from(["{}", "x" * (MAX_BYTES - 400), "x" * MAX_BYTES]),
    st.dictionaries(st.text(max_size=20) | st.sampled_from(["a", "AWS.x", "a..b", ATTRIBUTE]), attribute, max_size=14),
    st.text(max_size=400),
    st.text(max_size=800),
    st.integers(-(10**20), 10**20),
)
def test_a_dead_letter_respects_every_limit_of_sqs(
    body: str, attributes: dict[str, Any], reason: str, detail: str, sent: int
) -> None:
    earlier = signed({"first_sent": sent}, body)
    message = Message("m", "h", body, "arn:aws:sqs:r:1:q", sent_at=NOW, attributes=earlier | attributes)
    letter = make_dead_letter(message, Rejected(reason, detail, reason), "request", notes=NOTES)
    assert letter.message.body == body
    assert len(letter.attributes) <= MAX_ATTRIBUTES
    size = len(body)
    for name, given_attribute in letter.attributes.items():
        value = given_attribute.get("StringValue", given_attribute.get("BinaryValue"))
        assert value
        assert name.isascii()
        assert not name.lower().startswith(("aws.", "amazon."))
        size += len(name) + len(given_attribute["DataType"]) + len(value.encode() if isinstance(value, str) else value)
    assert size <= MAX_BYTES
    if len(body) < MAX_BYTES - 2000:
        text = letter.attributes[ATTRIBUTE]["StringValue"]
        assert text.isascii()
        assert text.isprintable()
        assert len(text) < 1024
    oldest = NOTES.first_sent(message)
    assert oldest is not None
    assert oldest <= NOW


@given(
    st.sampled_from([*(Failed(failure) for failure in Failure), None]),
    st.integers(1, 10**6),
    st.floats(-100, 10**6),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 43_200),
)
def test_a_visibility_is_whole_seconds_and_never_beyond_twelve_hours(
    outcome: Failed | None, receives: int, lease_left: float, jitter: float, elapsed: float
) -> None:
    begun = NOW - timedelta(seconds=elapsed)
    deferred = Deferred(NOW + timedelta(seconds=lease_left))
    again = visible_again(outcome or deferred, receives, NOW, lambda: jitter)
    seconds = timeout_seconds(again, NOW, begun)
    assert isinstance(seconds, int)
    assert 0 <= seconds <= 43_200 - elapsed + 1 or seconds == 0
    if outcome is None:
        doubled = timedelta(seconds=min(2 ** min(receives - 1, 20), 43_200))
        late = max(deferred.until + timedelta(seconds=1), NOW)
        assert min(NOW + doubled / 2, late) <= again <= min(NOW + doubled, late)
    else:
        assert again - NOW >= timedelta(seconds=1 if outcome == Failed(Failure.NOT_STARTED) else 5)
    assert outcome != Failed(Failure.STORE_UNAVAILABLE) or again - NOW >= timedelta(seconds=60)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_each_double_is_read_as_it_is_written(number: float) -> None:
    read = parse(repr(number))
    assert isinstance(read, float)
    assert struct.pack("d", read) == struct.pack("d", number)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,19})\.[0-9]{1,20}", fullmatch=True))
def test_two_numbers_are_never_one(digits: str) -> None:
    """Whatever is read is, to the last digit, what was written."""
    if Decimal(digits) == Decimal(repr(float(digits))):
        assert parse(digits) == float(digits)
    else:
        with pytest.raises(InvalidJobError, match=r"^inexact_number"):
            parse(digits)
