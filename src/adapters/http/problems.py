"""What can be wrong with a request, as problem documents (RFC 9457): one table for answers and OpenAPI document.

No value of a payload, a claim or a header gets into one.
"""

import json
from dataclasses import dataclass, field
from typing import Final

from adapters.http.response import PROBLEM_JSON, Response


@dataclass(frozen=True, slots=True)
class ProblemType:
    """`meaning` says what to do about it; `retryable` ones carry `Retry-After`."""

    name: str
    status: int
    title: str
    meaning: str
    retryable: bool = False


NO_KEY: Final = ProblemType(
    "key_missing", 400, "Idempotency-Key is missing", "Send one of your own making, the same on each retry."
)
BAD_KEY: Final = ProblemType(
    "key_invalid",
    400,
    "Idempotency-Key is not what it must be",
    "A quoted string (RFC 8941), once: a letter or digit, then up to 255 letters, digits and . _ ~ : @ = -",
)
BAD_REQUEST: Final = ProblemType(
    "request_invalid", 400, "The request cannot be read", "`reason` and `detail` say what was expected and where."
)
NO_IDENTITY: Final = ProblemType(
    "no_identity",
    403,
    "Nobody has said who is calling",
    "The function must stand behind IAM or a JWT authorizer; one caller never gets another's answers.",
)
NOT_FOUND: Final = ProblemType(
    "not_found", 404, "There is nothing here", "No such path; or no job of yours under this id has been begun."
)
UNKNOWN_OPERATION: Final = ProblemType(
    "unknown_operation", 404, "No such operation", "No operation of that name is deployed."
)
WRONG_METHOD: Final = ProblemType(
    "method_not_allowed", 405, "The path does not take this method", "`Allow` lists those that it takes."
)
STILL_RUNNING: Final = ProblemType(
    "still_running",
    409,
    "A request with this Idempotency-Key is still running",
    "Send the same request again after `Retry-After`: it is answered when the first is done.",
    retryable=True,
)
TOO_LARGE: Final = ProblemType(
    "too_large",
    413,
    "The body is too large",
    "A payload may have 262,144 bytes; with `Prefer: respond-async` the message that is made of it has a limit of its "
    "own, which `detail` names.",
)
NOT_JSON: Final = ProblemType(
    "not_json_content", 415, "The body is not declared as JSON", "Send `Content-Type: application/json`, in UTF-8."
)
KEY_REUSED: Final = ProblemType(
    "key_reused",
    422,
    "Idempotency-Key was used with another payload",
    "A key stands for one request: send another key, or the payload that it was first used with.",
)
REJECTED: Final = ProblemType(
    "rejected",
    422,
    "The operation refuses this payload",
    "`reason` is the operation's own code. Nothing was done; a corrected payload may come under the same key.",
)
FAILED: Final = ProblemType(
    "failed",
    500,
    "The job was not finished",
    "Send the same request again. With the `reason` completion_lost or lease_lost the effect may have happened.",
)
UNAVAILABLE: Final = ProblemType(
    "unavailable",
    503,
    "The service cannot do this now",
    "Nothing was run. Send the same request again after `Retry-After`; `queue_unavailable` may have been sent already.",
    retryable=True,
)

PROBLEMS: Final = (
    NO_KEY,
    BAD_KEY,
    BAD_REQUEST,
    NO_IDENTITY,
    NOT_FOUND,
    UNKNOWN_OPERATION,
    WRONG_METHOD,
    STILL_RUNNING,
    TOO_LARGE,
    NOT_JSON,
    KEY_REUSED,
    REJECTED,
    FAILED,
    UNAVAILABLE,
)


@dataclass(slots=True)
class HttpProblemError(Exception):
    """A request is answered with this problem. `reason` is a word, `detail` a line for people, `cause` a line for
    operators, which is not answered.
    """

    type: ProblemType
    reason: str | None = None
    detail: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    cause: str | None = None


def problem_response(problem: HttpProblemError, base: str = "") -> Response:
    """Its document. `type` leads to the problem's description, below `base` (the path of the stage)."""
    kind = problem.type
    document = {
        "type": f"{base}/openapi.json#/components/responses/{kind.name}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail or kind.meaning,
        "reason": problem.reason or kind.name,
    }
    return Response(kind.status, json.dumps(document), PROBLEM_JSON, dict(problem.headers))
