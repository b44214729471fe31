"""An HTTP request as Lambda hands it over (payload format 2.0), and the job message that it asks for."""

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final
from urllib.parse import parse_qsl

from adapters.http.headers import idempotency_key, is_json
from adapters.http.problems import BAD_REQUEST, NOT_JSON, TOO_LARGE, HttpProblemError
from domain.errors import InvalidJobError
from domain.job_factory import RESERVED
from domain.strict_json import Json, parse

MAX_BODY_BYTES: Final = 262_144
"""Of a payload as it comes. What is made of it for a queue is measured by who sends it."""

_MAX_BASE64: Final = 4 * ceil(MAX_BODY_BYTES / 3)

OPERATION_HEADER: Final = "onejob-operation"


class NotAnHttpRequestError(Exception):
    """The event is not what a function URL or an HTTP API sends. Nothing was run."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Header names in lower case. `base` is the part of the path that names a stage, `authorizer` who is calling."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    body: str | None = None
    is_base64: bool = False
    base: str = ""
    authorizer: object = None

    def payload(self) -> dict[str, Json]:
        """The body as a JSON object. Raises `HttpProblemError`."""
        if not is_json(self.headers.get("content-type")):
            raise HttpProblemError(NOT_JSON)
        body = self.body or ""
        if len(body) > (_MAX_BASE64 if self.is_base64 else MAX_BODY_BYTES):
            raise HttpProblemError(TOO_LARGE)
        try:
            content = b64decode(body, validate=True) if self.is_base64 else body.encode()
            if len(content) > MAX_BODY_BYTES:
                raise HttpProblemError(TOO_LARGE)
            payload = parse(content.decode())
        except InvalidJobError as error:
            raise HttpProblemError(BAD_REQUEST, error.reason, error.detail or None) from None
        except (Base64Error, UnicodeError):
            raise HttpProblemError(BAD_REQUEST, "not_utf8", "the body is not UTF-8") from None
        if not isinstance(payload, dict):
            raise HttpProblemError(BAD_REQUEST, "not_an_object", "the body: expected object")
        for name in RESERVED:
            if name in payload:
                raise HttpProblemError(BAD_REQUEST, "reserved_member", f"{name}: not a member of a payload")
        return payload

    def operation(self, default: str) -> str:
        """From the header `Onejob-Operation` or the query's `operation`. Raises `HttpProblemError`."""
        told = [value for name, value in parse_qsl(self.query, keep_blank_values=True) if name == "operation"]
        if OPERATION_HEADER in self.headers:
            told.append(self.headers[OPERATION_HEADER])
        if len(set(told)) > 1:
            raise HttpProblemError(BAD_REQUEST, "invalid_operation", "the operation is named twice, differently")
        return told[0] if told else default

    def message(self, tenant: str, default_operation: str) -> dict[str, Json]:
        """What a producer would send to the queue for the same job. Raises `HttpProblemError`."""
        return {
            "job_id": idempotency_key(self.headers.get("idempotency-key")),
            "operation": self.operation(default_operation),
            "tenant": tenant,
            **self.payload(),
        }


def read_event(event: object) -> HttpRequest:
    """The request in a Lambda event. Raises `NotAnHttpRequestError`."""
    told = _members(event)
    context = _members(told.get("requestContext"))
    method, path = _members(context.get("http")).get("method"), told.get("rawPath")
    if told.get("version") != "2.0" or not isinstance(method, str) or not isinstance(path, str):
        raise NotAnHttpRequestError("expected a function URL's or an HTTP API's request, payload format 2.0")
    base = _base(path, context.get("stage"))
    body, query = told.get("body"), told.get("rawQueryString")
    return HttpRequest(
        method=method.upper(),
        path=path.removeprefix(base),
        headers={name.lower(): str(value) for name, value in _members(told.get("headers")).items()},
        query=query if isinstance(query, str) else "",
        body=body if isinstance(body, str) else None,
        is_base64=told.get("isBase64Encoded") is True,
        base=base,
        authorizer=context.get("authorizer"),
    )


def _base(path: str, stage: object) -> str:
    """A stage stands first in the path, but not behind a domain of yours, and `$default` never."""
    if isinstance(stage, str) and re.fullmatch(r"[A-Za-z0-9_-]+", stage) and path.startswith(f"/{stage}/"):
        return f"/{stage}"
    return ""


def _members(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
