"""The header fields that decide what a request means: Idempotency-Key, Prefer, Content-Type."""

import re
from typing import Final

from adapters.http.problems import BAD_KEY, NO_KEY, HttpProblemError

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~:@=-]{0,255}")
"""Of the strings that RFC 8941 allows, those that stand in a path as they are: gateways differ in what they decode."""

LONGEST_PREFER: Final = 1000
"""Characters; taking a list apart takes the square of its length where quotes do not match."""

_STRING: Final = re.compile(r' *"((?:[ !#-\[\]-~]|\\["\\])*)" *')
"""RFC 8941, 3.3.3: printable ASCII, quotes and backslashes escaped; blanks around it are discarded (4.2)."""

_ELEMENT: Final = re.compile(r'(?:[^,"]|"(?:\\.|[^"\\])*"|")+')
"""Of a list: commas inside quoted strings do not end it."""


def idempotency_key(value: str | None) -> str:
    """The key in an `Idempotency-Key` field (draft-ietf-httpapi-idempotency-key-header-07). Raises `HttpProblemError`.

    Two fields in one request arrive joined by a comma, and are no string.
    """
    if value is None or not value.strip(" "):
        raise HttpProblemError(NO_KEY)
    string = _STRING.fullmatch(value)
    if string is None:
        raise HttpProblemError(BAD_KEY, detail="expected one string in double quotes (RFC 8941)")
    key = re.sub(r"\\(.)", r"\1", string[1])
    if not KEY.fullmatch(key):
        raise HttpProblemError(BAD_KEY)
    return key


def prefers_async(value: str | None) -> bool:
    """Whether `respond-async` is among the preferences of a `Prefer` field (RFC 7240); all others are ignored."""
    if value is None or len(value) > LONGEST_PREFER:
        return False
    named = (re.split("[;=]", element, maxsplit=1)[0] for element in _ELEMENT.findall(value))
    return any(name.strip(" \t").lower() == "respond-async" for name in named)


def is_json(value: str | None) -> bool:
    """Whether a `Content-Type` field says JSON in UTF-8, which is JSON's only encoding (RFC 8259, 8.1)."""
    media_type, *parameters = (part.strip(" \t").lower() for part in (value or "").split(";"))
    charsets = {part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")}
    return media_type == "application/json" and charsets <= {"utf-8", "utf8"}
