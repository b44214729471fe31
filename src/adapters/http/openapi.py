"""The OpenAPI document of the door, made from the tables that it answers by."""

from typing import Final

from adapters.http.headers import KEY
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
from adapters.http.response import JSON
from adapters.http.responses import OMITTED_HEADER, REPLAYED_HEADER
from adapters.http.schemas import (
    ACCEPTED,
    KEY_SCHEMA,
    OPERATION_PARAMETERS,
    PROBLEM,
    PROBLEM_CONTENT,
    SECONDS,
    STATUS,
)
from domain.job_factory import RESERVED
from domain.strict_json import Json

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
            "schemas": {"Problem": PROBLEM, "Status": STATUS, "Accepted": ACCEPTED},
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
            *OPERATION_PARAMETERS,
        ],
        "requestBody": {
            "required": True,
            "description": "The payload, at most 262,144 bytes. For a queue it is measured again, as it is sent.",
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
            {"name": "id", "in": "path", "required": True, "description": "Its key.", "schema": KEY_SCHEMA},
            *OPERATION_PARAMETERS,
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
            responses[status] = {"description": told, "content": PROBLEM_CONTENT}
    return responses


def _problem(problem: ProblemType) -> Json:
    response: dict[str, Json] = {
        "description": f"{problem.title}. {problem.meaning}",
        "content": PROBLEM_CONTENT,
    }
    if problem.retryable:
        response["headers"] = {"Retry-After": SECONDS}
    return response


def _header(description: str, schema: dict[str, Json] | None = None) -> Json:
    return {"description": description, "schema": {"type": "string", **(schema or {})}}


def _ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}
