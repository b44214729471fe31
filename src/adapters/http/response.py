"""An HTTP answer before any library makes it its own."""

from dataclasses import dataclass, field
from typing import Final

JSON: Final = "application/json"
PROBLEM_JSON: Final = "application/problem+json"


@dataclass(frozen=True, slots=True)
class Response:
    """`body` is text of the media type."""

    status: int
    body: str
    media_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
