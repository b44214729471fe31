"""The OpenAPI document of the door, made from the tables that it answers by."""

from typing import Final

from adapters.http.answers import OMITTED_HEADER, REPLAYED_HEADER
from adapters.http.fields import KEY
from adapters.http.problems import (
    BAD_KEY,
    BAD_REQUEST,
    FAILED,
    KEY_REUSED,
    NO_IDENTITY,
    NO_KEY,
    NOT_FOUND,
    NOT_JSON,
    PROBLEMS,
    REJECTED,
    STILL_RUNNING,
    TOO_LARGE,
    UNAVAILABLE,
    UNKNOWN_OPERATION,
    ProblemType,
)
from adapters.http.reply import JSON, PROBLEM_JSON
from adapters.http.request import RESERVED
from domain.identity import NAME
from domain.operation import DEFAULT_OPERATION
from domain.strict_json import Json

_KEY_SCHEMA: Final[Json] = {"type": "string", "pattern": f"^{KEY.pattern}$"}
_NAME_SCHEMA: Final[Json] = {"type": "string", "pattern": f"^{NAME.pattern}$", "default": DEFAULT_OPERATION}
_SECONDS: Final[Json] = {"required": True, "schema": {"type": "integer", "minimum": 1}, "description": "Seconds."}

_OPERATION_PARAMETERS: Final[list[Json]] = [
    {"name": "operation", "in": "query", "description": "Which operation.", "schema": _NAME_SCHEMA},
    {"name": "Onejob-Operation", "in": "header", "description": "The same, as a header.", "schema": _NAME_SCHEMA},
]


API_VERSION: Final = "1"


def document() -> dict[str, Json]:
    """OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "onejob",
            "version": API_VERSION,
            "description": "Runs each job's effect once: a request that is sent again gets the first one's answer.",
        },
        "paths": {
            "/jobs": {"post": _submit()},
            "/jobs/{id}": {"get": _status()},
            "/openapi.json": {"get": _description()},
        },
        "components": {
            "responses": {problem.name: _problem(problem) for problem in PROBLEMS},
            "schemas": {"Problem": _PROBLEM_SCHEMA, "Status": _STATUS_SCHEMA, "Accepted": _ACCEPTED_SCHEMA},
        },
    }


def _submit() -> Json:
    return {
        "operationId": "submitJob",
        "summary": "Run a job, once for its key, and answer; or have it run, with `Prefer: respond-async`.",
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": True,
                "description": "The job's id, quoted (draft-ietf-httpapi-idempotency-key-header-07).",
                "schema": {
                    "type": "string",
                    "pattern": f'^"{KEY.pattern}"$',
                    "examples": ['"8e03978e-40d5-43e8-bc93-6894a57f9324"'],
                },
            },
            {
                "name": "Prefer",
                "in": "header",
                "description": "`respond-async` (RFC 7240): send it to the queue; honoured where there is one.",
                "schema": {"type": "string", "examples": ["respond-async"]},
            },
            *_OPERATION_PARAMETERS,
        ],
        "requestBody": {
            "required": True,
            "description": "The payload, at most 262,144 bytes.",
            "content": {JSON: {"schema": {"type": "object", "properties": dict.fromkeys(RESERVED, False)}}},
        },
        "responses": {
            "200": {
                "description": "The operation's answer: now, or the one that it gave before.",
                "headers": {
                    REPLAYED_HEADER: _header("`true` where the job was done before.", {"enum": ["true"]}),
                    OMITTED_HEADER: _header("Why the answer could not be kept; the body is then `null`."),
                },
                "content": {JSON: {"schema": {}}},
            },
            "202": {
                "description": "Sent to the queue.",
                "headers": {
                    "Location": _header("Where its status is."),
                    "Preference-Applied": _header("What was asked."),
                },
                "content": {JSON: {"schema": _ref("schemas", "Accepted")}},
            },
            **_responses(
                (NO_KEY, BAD_KEY, BAD_REQUEST),
                (NO_IDENTITY,),
                (UNKNOWN_OPERATION,),
                (STILL_RUNNING,),
                (TOO_LARGE,),
                (NOT_JSON,),
                (KEY_REUSED, REJECTED),
                (FAILED,),
                (UNAVAILABLE,),
            ),
        },
    }


def _status() -> Json:
    return {
        "operationId": "showJob",
        "summary": "What became of a job of yours. A job that was sent to the queue is there once a worker begins it.",
        "parameters": [
            {"name": "id", "in": "path", "required": True, "description": "Its key.", "schema": _KEY_SCHEMA},
            *_OPERATION_PARAMETERS,
        ],
        "responses": {
            "200": {"description": "Its status.", "content": {JSON: {"schema": _ref("schemas", "Status")}}},
            **_responses((BAD_REQUEST,), (NO_IDENTITY,), (NOT_FOUND,), (FAILED,), (UNAVAILABLE,)),
        },
    }


def _description() -> Json:
    return {
        "operationId": "describe",
        "summary": "This document.",
        "responses": {
            "200": {"description": "OpenAPI 3.1.", "content": {JSON: {"schema": {"type": "object"}}}},
            **_responses((FAILED,)),
        },
    }


def _responses(*same_status: tuple[ProblemType, ...]) -> dict[str, Json]:
    """A status with one problem refers to it; one with several lists them."""
    responses: dict[str, Json] = {}
    for problems in same_status:
        status = str(problems[0].status)
        if len(problems) == 1:
            responses[status] = _ref("responses", problems[0].name)
        else:
            told = " ".join(f"`{problem.name}`: {problem.title}. {problem.meaning}" for problem in problems)
            responses[status] = {"description": told, "content": _PROBLEM_CONTENT}
    return responses


def _problem(problem: ProblemType) -> Json:
    response: dict[str, Json] = {
        "description": f"{problem.title}. {problem.meaning}",
        "content": _PROBLEM_CONTENT,
    }
    if problem.retryable:
        response["headers"] = {"Retry-After": _SECONDS}
    return response


def _header(description: str, schema: dict[str, Json] | None = None) -> Json:
    return {"description": description, "schema": {"type": "string", **(schema or {})}}


def _ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


_PROBLEM_SCHEMA: Final[Json] = {
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
_PROBLEM_CONTENT: Final[Json] = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}

_STATUS_SCHEMA: Final[Json] = {
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
_ACCEPTED_SCHEMA: Final[Json] = {
    "type": "object",
    "required": ["job_id", "operation", "status"],
    "properties": {
        "job_id": {"type": "string"},
        "operation": {"type": "string"},
        "status": {"const": "accepted"},
    },
}
