"""What is sent to the dead-letter queue: the message as it came, and why it was given up.

AWS's limits are kept here, since emulators accept what AWS refuses. Source: "Amazon SQS message quotas" and
"Message metadata" in the SQS developer guide.
"""

import json
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, MAX_NOTE_BYTES, UNSIGNED, Notes
from domain.outcome import Rejected

MAX_ATTRIBUTES: Final = 10
MAX_BYTES: Final = 1024 * 1024
MAX_TYPE_LENGTH: Final = 256
_NAME = re.compile(r"(?!(?i:aws|amazon)\.)(?!\.)(?!.*\.\.)[A-Za-z0-9_.-]{1,256}(?<!\.)")
_ILLEGAL: Final = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Compiled when first used (and then kept by `re`): it takes 5 ms, and most workers bury nothing."""

_TYPE = re.compile(r"(String|Number|Binary)(\..+)?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message to send. `attributes` are in the shape of SendMessage's MessageAttributes."""

    message: Message
    attributes: dict[str, dict[str, Any]]


def is_legal(text: str) -> bool:
    """Whether SQS carries every character of it."""
    return re.search(_ILLEGAL, text) is None


def make_dead_letter(
    message: Message, rejected: Rejected, request_id: str, operation: str | None = None, notes: Notes = UNSIGNED
) -> DeadLetter:
    """The unchanged body, the reason, and as many of the original attributes as the limits allow.

    Raises `StoreUnavailableError` where the secret of `notes` cannot be had.
    `operation` is the job's, if it is one: a message that names none means its worker's own, which nobody else knows.
    Beside a body that leaves less room the reason is shortened; where not even that fits, it is left out.
    """
    room = MAX_BYTES - len(message.body.encode(errors="surrogatepass"))
    reason = _reason(message, rejected, request_id, operation, room, notes)
    attributes: dict[str, dict[str, Any]] = {}
    for name, attribute in [(ATTRIBUTE, reason), *_original_attributes(message)]:
        size = attribute_bytes(name, attribute)
        if size <= room and len(attributes) < MAX_ATTRIBUTES:
            attributes[name] = attribute
            room -= size
    return DeadLetter(message, attributes)


def _reason(
    message: Message, rejected: Rejected, request_id: str, operation: str | None, room: int, notes: Notes
) -> dict[str, Any]:
    """The longest note that fits; what only explains goes first, and the age stays to the last."""
    sent = notes.first_sent(message)
    facts = {
        "reason": _printable(rejected.reason, 100),
        "detail": _printable(rejected.detail, 300),
        "error_type": _printable(rejected.error_type, 100),
        "attempts": rejected.attempts,
        "receives": message.receives,
        "first_sent": None if sent is None else round(sent.timestamp() * 1000),
        "message_id": _printable(message.message_id, 100),
        "request_id": _printable(request_id, 100),
        "operation": operation,
    }
    for kept in (facts.keys(), facts.keys() - {"detail"}, {"reason", "first_sent"}):
        told = {name: fact for name, fact in facts.items() if name in kept}
        note = json.dumps(notes.signed(told, message.body))
        attribute = {"DataType": "String", "StringValue": note}
        if len(note) <= MAX_NOTE_BYTES and attribute_bytes(ATTRIBUTE, attribute) <= room:
            break
    return attribute


def _printable(text: str | None, longest: int) -> str | None:
    return None if text is None else re.sub(r"[^ !#-\[\]-~]", "?", text[:longest])


def _original_attributes(message: Message) -> list[tuple[str, dict[str, Any]]]:
    legal = ((name, _sendable(name, attribute)) for name, attribute in message.attributes.items())
    return [(name, attribute) for name, attribute in legal if attribute is not None and name != ATTRIBUTE]


def _sendable(name: str, attribute: Mapping[str, Any]) -> dict[str, Any] | None:
    """Lambda's shape of an attribute in SQS's; None for what SQS would refuse."""
    data_type = attribute.get("dataType")
    if not isinstance(data_type, str) or not _TYPE.fullmatch(data_type) or not _NAME.fullmatch(name):
        return None
    if len(data_type) > MAX_TYPE_LENGTH or re.search(_ILLEGAL, data_type):
        return None
    if data_type.startswith("Binary"):
        try:
            value = b64decode(attribute.get("binaryValue") or "", validate=True)
        except (Base64Error, TypeError, ValueError):
            return None
        return {"DataType": data_type, "BinaryValue": value} if value else None
    text = attribute.get("stringValue")
    if not isinstance(text, str) or not text or re.search(_ILLEGAL, text):
        return None
    return {"DataType": data_type, "StringValue": text}


def attribute_bytes(name: str, attribute: Mapping[str, Any]) -> int:
    """How much of a message's limit an attribute of SendMessage takes: the bytes of its name, type and value."""
    value = attribute.get("BinaryValue") or str(attribute.get("StringValue")).encode()
    return len(name) + len(attribute["DataType"].encode()) + len(value)
