"""Notes under a secret that tests know, and messages that bear one. Imports nothing of AWS."""

import json
from dataclasses import dataclass
from typing import Any

from adapters.sqs.notes import ATTRIBUTE, Notes
from domain.errors import StoreUnavailableError


@dataclass
class KnownSecret:
    """`find` counts; it cannot be had for as long as it is away."""

    text: str | None = "secret"
    is_away: bool = False
    asked: int = 0

    def find(self) -> str | None:
        self.asked += 1
        if self.is_away:
            raise StoreUnavailableError("told to fail")
        return self.text

    def get(self) -> str:
        self.text = self.find() or "made"
        return self.text


NOTES = Notes(KnownSecret())


def signed(facts: dict[str, Any], body: str, notes: Notes = NOTES) -> dict[str, Any]:
    """The attribute in Lambda's shape, as a worker wrote it for this body."""
    return {ATTRIBUTE: {"dataType": "String", "stringValue": json.dumps(notes.signed(facts, body))}}
