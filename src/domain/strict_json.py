"""JSON from outside: read so that one text has one value, written so that one value has one text."""

import json
import re
from collections.abc import Iterable
from decimal import Decimal
from operator import is_
from typing import Final, Never

from domain.errors import InvalidJobError

type Json = bool | int | float | str | list[Json] | dict[str, Json] | None

PLAIN_BELOW: Final = 1e21
"""Integral numbers below it are written without fraction and exponent (RFC 8785, 3.2.2.3)."""

ALWAYS_EXACT: Final = 16
"""Characters with which a number with a point and no exponent has at most 15 digits: a double holds each such."""

MAX_DEPTH: Final = 100
"""Containers inside one another. Far below the interpreter's recursion limit, so that every later walk is safe."""

MAX_VALUES: Final = 100_000
"""Values in one text. Measured, the worst shapes hold 200 bytes a value: 20 MB at the limit (`benchmarks.memory`)."""

_STRINGS_AND_VALUES: Final = r'"(?>[^"\\]+|\\.)*+"?|[,\[{]'
"""A string is passed over whole, one that never ends too. Compiled when first used, and then kept by `re`."""


def parse(text: str) -> Json:
    """Read one JSON text (RFC 8259), refusing what readers disagree on.

    Raises `InvalidJobError`: `empty_body`, `too_many_values`, `not_json`, `duplicate_member`, `nan_number`,
    `infinite_number`, `number_overflow`, `inexact_number`, `too_deep`, `lone_surrogate`. A leading byte order mark is
    dropped (RFC 8259, 8.1). Values are counted before they are made: small ones take 25 times the memory of their text.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip(" \t\r\n"):
        raise InvalidJobError("empty_body")
    if has_too_many_values(text):
        raise InvalidJobError("too_many_values", f"more than {MAX_VALUES}")
    try:
        value: Json = _READER.decode(text)
    except InvalidJobError:
        raise
    except json.JSONDecodeError as error:
        raise InvalidJobError("not_json", f"at character {error.pos}") from None
    except RecursionError:
        raise InvalidJobError("too_deep", f"more than {MAX_DEPTH} levels") from None
    except Exception as error:
        raise InvalidJobError("not_json", type(error).__name__) from None
    _check(value)
    return value


def has_too_many_values(text: str) -> bool:
    """Whether a JSON text has more than `MAX_VALUES` values, told by its commas and opening brackets outside strings.

    An empty list or object counts twice. Takes time in proportion to the text, and no memory.
    """
    if text.count(",") + text.count("[") + text.count("{") <= MAX_VALUES:  # those in strings among them
        return False
    found = 0
    for match in re.finditer(_STRINGS_AND_VALUES, text, re.DOTALL):
        found += text[match.start()] != '"'
        if found > MAX_VALUES:
            return True
    return False


def canonical(value: Json) -> str:
    """The one text of a value: members sorted by code point, no blanks, integral numbers without fraction.

    `1`, `1.0` and `1e0` are one number (as in RFC 8785), so that a producer in another language which writes
    them otherwise does not change a fingerprint. Raises `ValueError` for what is not JSON.
    """
    return _WRITER.encode(_plain(value))


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidJobError("duplicate_member")
    return members


def _constant(name: str) -> Never:
    raise InvalidJobError("nan_number" if name == "NaN" else "infinite_number")


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise InvalidJobError("number_overflow")
    if not _is_exact(digits, number):
        raise InvalidJobError("inexact_number", "more digits than a double holds: send it as a string")
    return number


def _is_exact(digits: str, number: float) -> bool:
    """Whether the double is written as that number again: else two numbers would be one, and an operation be given
    another amount than was sent. Integers have no such bound.
    """
    if len(digits) <= ALWAYS_EXACT and "e" not in digits and "E" not in digits:
        return True
    if number == 0.0:  # a tiny one has become zero, or it is zero; its exponent may be more than Decimal takes
        return not any(digit in "123456789" for digit in digits.lower().partition("e")[0])
    return Decimal(digits) == Decimal(repr(number))


def _int(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # longer than sys.get_int_max_str_digits()
        raise InvalidJobError("number_overflow") from None


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
)
_WRITER: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
"""Both made once: `json.loads` and `json.dumps` make one a call."""


def _check(root: Json) -> None:
    level: list[Json] = [root]
    for _ in range(MAX_DEPTH + 1):
        for value in level:
            if isinstance(value, str):
                _check_text((value,))
            elif isinstance(value, dict):
                _check_text(value)
        containers = [value for value in level if isinstance(value, dict | list)]
        if not containers:
            return
        level = [child for container in containers for child in _children(container)]
    raise InvalidJobError("too_deep", f"more than {MAX_DEPTH} levels")


def _children(container: dict[str, Json] | list[Json]) -> Iterable[Json]:
    return container.values() if isinstance(container, dict) else container


def _check_text(texts: Iterable[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise InvalidJobError("lone_surrogate") from None


def _plain(value: Json) -> Json:
    """The value itself where nothing in it changes: a second tree would take as much memory again."""
    if isinstance(value, float) and abs(value) < PLAIN_BELOW and value.is_integer():
        return int(value)
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, dict):
        members = {name: _plain(member) for name, member in value.items()}
        return value if all(map(is_, members.values(), value.values())) else members
    return value
