"""What an operation answered, in the one form in which it is returned, stored and replayed."""

import json
from base64 import b64encode
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final, Self
from uuid import UUID

from domain.strict_json import Json, canonical

_WRITER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a finished job. First delivery and every replay get equal values.

    `omitted` says why the value was not kept (`unserializable: complex`, `too_large: 512000 bytes`); `text` is
    then `null`. The effect happened either way.
    """

    text: str
    omitted: str | None = None

    @property
    def value(self) -> Json:
        """A fresh copy of the value."""
        value: Json = json.loads(self.text)
        return value

    @classmethod
    def of(cls, value: object, max_bytes: int | None) -> Self:
        """The answer for whatever an operation returned. Never raises: what cannot be kept is omitted.

        Beside JSON: `datetime`, `date`, `time` in ISO 8601, `timedelta` in seconds, `UUID` and `Decimal` as
        strings, `bytes` in base64, dataclasses as objects of their fields, `Enum` as its value, tuples as
        arrays, sets as arrays in canonical order. Member names are strings; integers become strings, and members of
        an `Enum` their values.
        """
        try:
            text = _WRITER.encode(_encode(value))
            size = len(text.encode())
        except _UnknownTypeError as error:
            return cls("null", f"unserializable: {error}")
        except Exception as error:
            return cls("null", f"unserializable: {type(error).__name__}")
        if max_bytes is not None and size > max_bytes:
            return cls("null", f"too_large: {size} bytes")
        return cls(text)


class _UnknownTypeError(Exception):
    pass


def _encode(value: object) -> Json:
    match value:
        case Enum():
            return _encode(value.value)
        case None | bool() | int() | float() | str():
            return value
        case datetime() | date() | time():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID() | Decimal():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case Mapping():
            return _encode_members(value)
        case list() | tuple():
            return [_encode(item) for item in value]
        case AbstractSet():
            return sorted((_encode(item) for item in value), key=canonical)
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
    raise _UnknownTypeError(type(value).__name__)


def _encode_members(value: Mapping[object, object]) -> Json:
    members: dict[str, Json] = {}
    for key, member in value.items():
        name = _name(key)
        if name in members:
            raise _UnknownTypeError("two members of one name")
        members[name] = _encode(member)
    return members


def _name(key: object) -> str:
    """What the key holds, as it is encoded as a value: the `str` of a subclass may be another text."""
    while isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str.__str__(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return int.__repr__(key)
    raise _UnknownTypeError(f"member name of type {type(key).__name__}")
