"""Answers: what is stored is what the first delivery got, and nothing an operation returns can undo its effect."""

import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, StrEnum
from uuid import UUID

import pytest

from domain.answer import Answer
from domain.strict_json import Json


@dataclass
class Money:
    amount: Decimal
    currency: str


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Number(Enum):
    ONE = 1


class Flags(IntFlag):
    A = 2
    B = 4


class Switch(Enum):
    ON = True


class Word(StrEnum):
    YES = "yes"


class Mixed(str, Enum):  # noqa: UP042 - as many libraries have it: `str` of a member is its name
    YES = "yes"


class Nested(Enum):
    INNER = Colour.RED


class Loud(str):
    """Its `str` is another text than it holds, as of a markup string."""

    def __str__(self) -> str:
        return "LOUD"


class LoudNumber(int):
    def __str__(self) -> str:
        return "LOUD"

    __repr__ = __str__


@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (None, None),
        ({}, {}),
        ([], []),
        (0, 0),
        (0.0, 0.0),
        ("", ""),
        (False, False),
        ({"a": [1, 2.5, "é", True, None]}, {"a": [1, 2.5, "é", True, None]}),
        (10**30, 10**30),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(minutes=1.5), 90.0),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Decimal("1.10"), "1.10"),
        (b"\x00\xff", "AP8="),
        (bytearray(b"a"), "YQ=="),
        (Money(Decimal(1), "EUR"), {"amount": "1", "currency": "EUR"}),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ((1, (2,)), [1, [2]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset("hgfedcba"), list("abcdefgh")),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "x"}, {"1": "x"}),
        ({Colour.RED: 1}, {"red": 1}),
        ({Word.YES: 1}, {"yes": 1}),
        ({Mixed.YES: 1}, {"yes": 1}),
        ({Level.HIGH: 1, Number.ONE: 2, Flags.A | Flags.B: 3}, {"3": 1, "1": 2, "6": 3}),
        ({Nested.INNER: 1}, {"red": 1}),
        ([{"deep": {Colour.RED: {Mixed.YES: Mixed.YES}}}], [{"deep": {"red": {"yes": "yes"}}}]),
        ({Loud("a"): Loud("a"), LoudNumber(7): LoudNumber(7)}, {"a": "a", "7": 7}),
    ],
)
def test_each_kind_of_value_has_one_encoding(returned: object, value: Json) -> None:
    answer = Answer.of(returned, None)
    assert answer.omitted is None
    assert answer.value == value
    assert type(answer.value) is type(value)


class Hostile:
    def __iter__(self) -> None:
        raise RuntimeError("secret")


@dataclass
class Exploding:
    name: str

    def __getattribute__(self, name: str) -> object:
        if name == "name":
            raise RuntimeError("secret")
        return object.__getattribute__(self, name)


def circular() -> list[object]:
    inner: list[object] = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (1j, "unserializable: complex"),
        (object(), "unserializable: object"),
        (Hostile(), "unserializable: Hostile"),
        (Exploding("x"), "unserializable: RuntimeError"),
        (Money, "unserializable: type"),
        (float("nan"), "unserializable: ValueError"),
        ("\ud800", "unserializable: UnicodeEncodeError"),
        (circular(), "unserializable: RecursionError"),
        ({1: "a", "1": "b"}, "unserializable: two members of one name"),
        ({(1, 2): "a"}, "unserializable: member name of type tuple"),
        ({True: "a"}, "unserializable: member name of type bool"),
        ({Switch.ON: "a"}, "unserializable: member name of type bool"),
        ({Colour.RED: "a", "red": "b"}, "unserializable: two members of one name"),
        ([10**5000], "unserializable: ValueError"),
        ({"deep": [{1j}]}, "unserializable: complex"),
    ],
)
def test_what_cannot_be_kept_is_omitted_and_says_why(returned: object, why: str) -> None:
    assert Answer.of(returned, None) == Answer("null", why)


def test_the_limit_counts_bytes_of_what_is_stored() -> None:
    assert Answer.of("é" * 49, 100).omitted is None
    assert Answer.of("é" * 50, 100) == Answer("null", "too_large: 102 bytes")


def test_a_value_is_a_fresh_copy_each_time() -> None:
    answer = Answer.of({"a": []}, None)
    first = answer.value
    assert isinstance(first, dict)
    first["a"] = 1
    assert answer.value == {"a": []}


def test_the_text_is_plain_json() -> None:
    assert json.loads(Answer.of({"a": {1}}, None).text) == {"a": [1]}


def test_an_answer_is_stored_without_blanks() -> None:
    assert Answer.of({"a": [1, 2], "b": "é"}, None).text == '{"a":[1,2],"b":"é"}'


def test_a_set_of_any_values_has_one_order() -> None:
    assert Answer.of({10, 9, "a", None}, None).value == ["a", 10, 9, None]
