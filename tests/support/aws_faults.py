"""Faults where botocore talks to AWS: what the SDK, the stores and the service see of a bad day."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from types import SimpleNamespace
from typing import Any, Literal
from unittest.mock import patch

from botocore.endpoint import Endpoint
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

type AwsFault = Literal["ok", "lost", "unreachable", "timeout", "throttled", "denied", "broken", "skewed", "expired"]
"""`lost`: it landed, and the answer did not arrive. `timeout`: it never arrived there. `skewed`, `expired`: this
machine's clock is so far off that AWS refuses what it signed.
"""

_ERRORS = {
    "throttled": (400, "ProvisionedThroughputExceededException"),
    "denied": (400, "AccessDeniedException"),
    "broken": (500, "InternalServerError"),
    "skewed": (403, "RequestTimeTooSkewed"),
    "expired": (400, "InvalidSignatureException"),
}


@dataclass
class Requests:
    """What was asked of AWS, by operation, and the requests' bodies."""

    count: Counter[str] = field(default_factory=Counter)
    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    awaited: dict[str, Event] = field(default_factory=dict)
    """Set as soon as a request of that name is made."""


@contextmanager
def aws_requests(**plans: Sequence[AwsFault]) -> Iterator[Requests]:
    """Count requests, and let the first ones of each named operation (`UpdateItem=[...]`) go as planned."""
    seen, left = Requests(), {name: list(plan) for name, plan in plans.items()}
    original = vars(Endpoint)["_do_get_response"]

    def respond(self: Endpoint, request: Any, operation: Any, *rest: Any) -> Any:
        seen.count[operation.name] += 1
        seen.bodies.setdefault(operation.name, []).append(_body(request))
        if operation.name in seen.awaited:
            seen.awaited[operation.name].set()
        plan = left.get(operation.name)
        fault = plan.pop(0) if plan else "ok"
        match fault:
            case "ok":
                return original(self, request, operation, *rest)
            case "lost":
                original(self, request, operation, *rest)
                return None, ReadTimeoutError(endpoint_url=request.url)
            case "timeout":
                return None, ConnectTimeoutError(endpoint_url=request.url)
            case "unreachable":
                return None, EndpointConnectionError(endpoint_url=request.url)
        status, code = _ERRORS[fault]
        parsed = {"Error": {"Code": code, "Message": "told to"}, "ResponseMetadata": {"HTTPStatusCode": status}}
        return (SimpleNamespace(status_code=status, headers={}, content=b""), parsed), None

    with patch.object(Endpoint, "_do_get_response", respond):
        yield seen


def _body(request: Any) -> dict[str, Any]:
    """Empty where the service does not speak JSON (STS)."""
    try:
        body: dict[str, Any] = json.loads(request.body)
    except (TypeError, ValueError):
        return {}
    return body


@contextmanager
def refused_entries(**failures: Sequence[str]) -> Iterator[None]:
    """SendMessageBatch where SQS refuses single entries: those of a job id (`a=[...]`) fail with these codes, one a
    request, and the others of the request land. A code that ends in `!` is the sender's fault, and lasts.
    """
    left, original = {name: list(codes) for name, codes in failures.items()}, vars(Endpoint)["_do_get_response"]

    def respond(self: Endpoint, request: Any, operation: Any, *rest: Any) -> Any:
        if operation.name != "SendMessageBatch":
            return original(self, request, operation, *rest)
        body, failed = _body(request), []
        for entry in list(body["Entries"]):
            if codes := left.get(json.loads(entry["MessageBody"])["job_id"]):
                code = codes.pop(0)
                failed.append({"Id": entry["Id"], "Code": code.rstrip("!"), "SenderFault": code.endswith("!")})
                body["Entries"].remove(entry)
        if not body["Entries"]:
            told = {"HTTPStatusCode": 200, "HTTPHeaders": {"x-amzn-requestid": "r"}}
            parsed = {"Successful": [], "Failed": failed, "ResponseMetadata": told}
            return (SimpleNamespace(status_code=200, headers={}, content=b""), parsed), None
        request.body = json.dumps(body).encode()
        request.headers["Content-Length"] = str(len(request.body))
        (response, parsed), error = original(self, request, operation, *rest)
        return (response, {**parsed, "Failed": [*parsed.get("Failed", ()), *failed]}), error

    with patch.object(Endpoint, "_do_get_response", respond):
        yield
