"""What the OpenAPI document says of single values: parameters, problems, a job's status."""

from typing import Final

from adapters.http.headers import KEY
from adapters.http.response import PROBLEM_JSON
from domain.identity import NAME
from domain.operation import DEFAULT_OPERATION
from domain.strict_json import Json

KEY_SCHEMA: Final[Json] = {"type": "string", "pattern": f"^{KEY.pattern}$"}
NAME_SCHEMA: Final[Json] = {"type": "string", "pattern": f"^{NAME.pattern}$", "default": DEFAULT_OPERATION}
SECONDS: Final[Json] = {"required": True, "schema": {"type": "integer", "minimum": 1}, "description": "Seconds."}

OPERATION_PARAMETERS: Final[list[Json]] = [
    {"name": "operation", "in": "query", "description": "Which operation.", "schema": NAME_SCHEMA},
    {"name": "Onejob-Operation", "in": "header", "description": "The same, as a header.", "schema": NAME_SCHEMA},
]

PROBLEM: Final[Json] = {
    "type": "object",
    "description": "RFC 9457.",
    "required": ["type", "title", "status", "detail", "reason"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "description": "Leads to the problem's description here.",
        },
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "reason": {"type": "string", "description": "A word to go by."},
    },
}
PROBLEM_CONTENT: Final[Json] = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}

STATUS: Final[Json] = {
    "type": "object",
    "required": ["job_id", "operation", "status", "attempts"],
    "properties": {
        "job_id": {"type": "string"},
        "operation": {"type": "string"},
        "status": {
            "enum": ["completed", "running", "waiting"],
            "description": "`waiting`: begun and not finished, and nobody is at it now; a rejected job stays so.",
        },
        "attempts": {"type": "integer", "minimum": 0},
        "first_seen": {"type": "string", "format": "date-time"},
        "last_error": {"type": "string", "description": "The type of the last attempt's error."},
        "answer": {"description": "Of a completed job."},
        "answer_omitted": {"type": "string", "description": "Why the answer could not be kept."},
    },
}
ACCEPTED: Final[Json] = {
    "type": "object",
    "required": ["job_id", "operation", "status"],
    "properties": {
        "job_id": {"type": "string"},
        "operation": {"type": "string"},
        "status": {"const": "accepted"},
    },
}
