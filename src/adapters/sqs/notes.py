"""The note on a message, `onejob`: what the worker knew when it gave the message up, and whether a worker wrote it.

A producer may send any attribute, and SQS keeps it when it moves a message. So each note carries a MAC over its facts
and the message's body, under a secret that stands with the records, where no producer reads it. A note without a right
one is what the message claims: it may be shown, and decides nothing.
"""

import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, Protocol

from adapters.sqs.message import Message, from_timestamp

ATTRIBUTE: Final = "onejob"
MAX_NOTE_BYTES: Final = 1000
"""onejob writes no longer note, and parses none."""

MAC: Final = "mac"
MAC_DIGITS: Final = 32
"""Hexadecimal: 128 bits of HMAC-SHA-256."""


class Secret(Protocol):
    """Raises `StoreUnavailableError`. `find` makes none."""

    def find(self) -> str | None: ...
    def get(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Notes:
    """Signs notes, and tells those that were signed. Without a secret it signs nothing and believes nothing."""

    secret: Secret | None = None

    def signed(self, facts: Mapping[str, Any], body: str) -> dict[str, Any]:
        """The facts and their MAC. Raises `StoreUnavailableError`."""
        return dict(facts) if self.secret is None else {**facts, MAC: _mac(self.secret.get(), facts, body)}

    def of(self, message: Message) -> dict[str, Any]:
        """The facts that a worker or an operator's command wrote on this message; empty where none did.

        Raises `StoreUnavailableError`. The store is asked once for all notes, and only if one has a MAC.
        """
        facts = claimed(message)
        mac = facts.pop(MAC, None)
        if self.secret is None or not isinstance(mac, str) or len(mac) != MAC_DIGITS or not mac.isascii():
            return {}
        secret = self.secret.find()
        return facts if secret is not None and hmac.compare_digest(mac, _mac(secret, facts, message.body)) else {}

    def first_sent(self, message: Message) -> datetime | None:
        """When the job was first sent: an earlier burial remembers it, since a redrive sends anew.

        Raises `StoreUnavailableError`.
        """
        return earliest(self.of(message), message)


UNSIGNED: Final = Notes()


def claimed(message: Message) -> dict[str, Any]:
    """The facts of a message's note, signed or not."""
    try:
        text = message.attributes[ATTRIBUTE]["stringValue"]
        facts = json.loads(text) if len(text) <= MAX_NOTE_BYTES else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def earliest(facts: Mapping[str, Any], message: Message) -> datetime | None:
    """The earlier of what these facts tell and what SQS does."""
    remembered = facts.get("first_sent")
    earlier = from_timestamp(remembered) if type(remembered) is int else None
    return min(filter(None, (earlier, message.sent_at)), default=None)


def _mac(secret: str, facts: Mapping[str, Any], body: str) -> str:
    written = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    content = b"onejob note\n" + sha256(body.encode(errors="surrogatepass")).digest() + written
    return hmac.new(secret.encode(), content, sha256).hexdigest()[:MAC_DIGITS]
