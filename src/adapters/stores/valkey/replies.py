"""What the server's replies are like. Each function raises `ValueError` for one that the command does not give: it came
from a proxy, a server of something else or a broken line, and says nothing of a record.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

from adapters.stores.valkey.mapping import to_life
from domain.life import Life

type Hash = dict[bytes, bytes]

_WHOLE: Final = re.compile(rb"[0-9]{1,16}")
_CURSOR: Final = re.compile(rb"[0-9]{1,20}")


def landed_of(reply: object) -> bool:
    """Of a write under a fence: whether it landed."""
    if type(reply) is not int or reply not in (0, 1):
        raise ValueError("neither 0 nor 1")
    return reply == 1


def judged_of(reply: object) -> int:
    """Of `PURGE` and `IS_OVER`."""
    if type(reply) is int and -1 <= reply <= 1:
        return reply
    raise ValueError("none of -1, 0 and 1")


def hash_of(reply: object) -> Hash:
    """A hash as name, value, name, value."""
    if not isinstance(reply, list) or len(reply) % 2 or not all(isinstance(each, bytes) for each in reply):
        raise ValueError("no hash")
    found = dict(zip(reply[::2], reply[1::2], strict=True))
    if 2 * len(found) != len(reply):
        raise ValueError("a name that stands twice")
    return found


def changed_of(reply: object) -> tuple[bool, Hash]:
    """Of `FORGET`: whether it landed, and the record."""
    match reply:
        case [landed, found]:
            return landed_of(landed), hash_of(found)
    raise ValueError("no pair")


@dataclass(frozen=True, slots=True)
class Taken:
    """Of a claim that landed. `last_error` is empty where there is none."""

    attempt: int
    epoch: int
    verified: bool
    last_error: bytes
    life: Life


def claim_of(reply: Any) -> Taken | Hash:
    """Of `CLAIM`: what was taken, or the record that stands in the way."""
    match reply:
        case [0, found] if type(reply[0]) is int:
            if not (record := hash_of(found)):
                raise ValueError("refused by no record")
            return record
        case [1, bytes(attempt), bytes(epoch), 0 | 1 as verified, bytes(last_error), *life] if len(life) == 4 and all(
            isinstance(each, bytes) for each in life
        ):
            count = to_life(*(each.decode() for each in life))
            return Taken(_first_or_later(attempt), _first_or_later(epoch), verified == 1, last_error, count)
    raise ValueError("neither taken nor refused")


def page_of(reply: object) -> tuple[int, list[bytes]]:
    """Of `SCAN`: where to go on, 0 at the end, and names."""
    match reply:
        case [bytes(cursor), list(names)] if _CURSOR.fullmatch(cursor) and all(isinstance(e, bytes) for e in names):
            return int(cursor), names
    raise ValueError("no page")


def replicas_of(reply: object) -> int:
    """Of `WAIT`."""
    if type(reply) is not int or reply < 0:
        raise ValueError("no count")
    return reply


def _first_or_later(text: bytes) -> int:
    if not _WHOLE.fullmatch(text) or (number := int(text)) < 1:
        raise ValueError("no number from 1")
    return number
