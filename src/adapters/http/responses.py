"""What is answered: one outcome, one response.

    outcome                                   status   body
    ------------------------------------------------------------------------------------------------------------------
    Executed                                  200      the operation's answer
    Skipped                                   200      the same bytes, with `Idempotency-Replayed: true`
    Deferred                                  409      still_running, with `Retry-After`
    Rejected(payload_mismatch)                422      key_reused
    Rejected(unknown_operation)               404      unknown_operation
    Rejected, by any other reason             422      rejected, with the reason
    Failed(unknown_operation)                 404      unknown_operation
    Failed(store_unavailable, not_started)    503      unavailable, with `Retry-After`
    Failed, for any other reason              500      failed, with the reason
    enqueued                                  202      where to look, with `Location`

An answer that could not be kept is `null`, with its reason in `Onejob-Answer-Omitted`: first and every time.
Rejected and Failed are not remembered: the same request sent again runs again.
"""

import json
from datetime import datetime, timedelta
from math import ceil
from typing import Final, assert_never
from urllib.parse import quote, urlencode

from adapters.http.problems import (
    FAILED,
    KEY_REUSED,
    REJECTED,
    STILL_RUNNING,
    UNAVAILABLE,
    UNKNOWN_OPERATION,
    HttpProblemError,
)
from adapters.http.response import Response
from domain.answer import Answer
from domain.job import Job
from domain.operation import DEFAULT_OPERATION
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.record import Record, State
from domain.strict_json import Json

SOON: Final = timedelta(seconds=1)
OUTAGE: Final = timedelta(seconds=10)
LONGEST_WAIT: Final = timedelta(seconds=10)
"""A lease is held for the worst case: most jobs are done long before it ends."""

OMITTED_HEADER: Final = "Onejob-Answer-Omitted"
REPLAYED_HEADER: Final = "Idempotency-Replayed"


def outcome_response(outcome: Outcome, now: datetime) -> Response:
    """The table above. Raises `HttpProblemError` for what is a problem."""
    match outcome:
        case Executed(answer):
            return answer_response(answer)
        case Skipped(answer):
            return answer_response(answer, replayed=True)
        case Deferred(until):
            raise HttpProblemError(STILL_RUNNING, headers=retry_after(min(until - now, LONGEST_WAIT)))
        case Rejected("payload_mismatch", error_type=None):  # an operation's own code, whatever word it is, has a type
            raise HttpProblemError(KEY_REUSED)
        case Rejected("unknown_operation", error_type=None) | Failed(Failure.UNKNOWN_OPERATION):
            raise HttpProblemError(UNKNOWN_OPERATION)
        case Rejected(reason, detail):
            raise HttpProblemError(REJECTED, reason, detail or None)
        case Failed(Failure.STORE_UNAVAILABLE):
            raise store_unavailable()
        case Failed(Failure.NOT_STARTED):
            raise HttpProblemError(UNAVAILABLE, Failure.NOT_STARTED, headers=retry_after(SOON))
        case Failed(reason):
            raise HttpProblemError(FAILED, reason)
        case _:
            assert_never(outcome)


def answer_response(answer: Answer, *, replayed: bool = False) -> Response:
    """The stored text as it is: a replay has the same bytes."""
    headers = {REPLAYED_HEADER: "true"} if replayed else {}
    if answer.omitted is not None:
        headers[OMITTED_HEADER] = answer.omitted.encode("ascii", "backslashreplace").decode()
    return Response(200, answer.text, headers=headers)


def accepted_response(job: Job, base: str) -> Response:
    """For a job that a worker will run."""
    headers = {"Location": location(job, base), "Preference-Applied": "respond-async"}
    body: Json = {"job_id": job.job_id, "operation": job.operation, "status": "accepted"}
    return Response(202, json.dumps(body), headers=headers)


def status_response(job_id: str, record: Record, now: datetime) -> Response:
    """What the record says, without owner, fingerprint and tenant."""
    state = record.state(now)
    told: dict[str, Json] = {
        "job_id": job_id,
        "operation": record.key.operation,
        "status": state if state in (State.COMPLETED, State.RUNNING) else "waiting",
        "attempts": record.attempts,
        "first_seen": record.first_seen.isoformat() if record.first_seen else None,
        "last_error": record.last_error,
    }
    if record.answer is not None and not record.in_progress:
        told |= {"answer": record.answer.value, "answer_omitted": record.answer.omitted}
    body = {name: value for name, value in told.items() if value is not None or name == "answer"}
    return Response(200, json.dumps(body, separators=(",", ":"), ensure_ascii=False))  # no longer than it was stored


def location(job: Job, base: str) -> str:
    """Where to ask for its status."""
    query = "" if job.operation == DEFAULT_OPERATION else f"?{urlencode({'operation': job.operation})}"
    return f"{base}/jobs/{quote(job.job_id, safe=':@=')}{query}"


def store_unavailable() -> HttpProblemError:
    """Nothing was run."""
    return HttpProblemError(UNAVAILABLE, Failure.STORE_UNAVAILABLE, headers=retry_after(OUTAGE))


def retry_after(wait: timedelta) -> dict[str, str]:
    """Whole seconds, at least one."""
    return {"Retry-After": str(max(1, ceil(wait.total_seconds())))}
