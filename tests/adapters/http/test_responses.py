"""One outcome, one response: every row of the table."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.problems import PROBLEMS, HttpProblemError, problem_response
from adapters.http.response import Response
from adapters.http.responses import outcome_response, status_response
from domain.answer import Answer
from domain.identity import job_key
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.record import RELEASED, Record, Status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def response(outcome: Outcome) -> Response:
    try:
        return outcome_response(outcome, NOW)
    except HttpProblemError as problem:
        return problem_response(problem)


def told(outcome: Outcome) -> tuple[int, str, str | None]:
    """Status, reason, Retry-After."""
    made = response(outcome)
    return made.status, json.loads(made.body)["reason"], made.headers.get("Retry-After")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_first_and_replay_have_the_same_bytes(value: Any) -> None:
    answer = Answer.of(value, None)
    first, replay = response(Executed(answer)), response(Skipped(answer))
    assert (first.status, first.body, first.media_type) == (replay.status, replay.body, replay.media_type)
    assert json.loads(first.body) == value
    assert replay.headers == {**first.headers, "Idempotency-Replayed": "true"}


def test_an_omitted_answer_has_the_same_marker_both_times() -> None:
    answer = Answer("null", "unserializable: Größe")
    for made in (response(Executed(answer)), response(Skipped(answer))):
        assert (made.status, made.body) == (200, "null")
        assert made.headers["Onejob-Answer-Omitted"] == r"unserializable: Gr\xf6\xdfe"


@given(st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=5))
def test_a_status_has_the_answer_in_the_bytes_that_were_measured(value: Any) -> None:
    answer = Answer.of(value, None)
    told_of = record(status=Status.COMPLETED, answer=answer)
    assert f'"answer":{answer.text}' in status_response("a", told_of, NOW).body


@pytest.mark.parametrize(("seconds", "wait"), [(-5, "1"), (0, "1"), (2.1, "3"), (900, "10")])
def test_a_running_job_is_asked_for_again_soon(seconds: float, wait: str) -> None:
    assert told(Deferred(NOW + timedelta(seconds=seconds))) == (409, "still_running", wait)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Rejected("payload_mismatch"), (422, "key_reused", None)),
        (Rejected("account_closed"), (422, "account_closed", None)),
        (Rejected("payload_mismatch", error_type="PermanentError"), (422, "payload_mismatch", None)),
        (Rejected("unknown_operation", error_type="PermanentError"), (422, "unknown_operation", None)),
        (Rejected("attempts_exhausted"), (422, "attempts_exhausted", None)),
        (Rejected("unknown_operation"), (404, "unknown_operation", None)),
        (Failed(Failure.UNKNOWN_OPERATION), (404, "unknown_operation", None)),
        (Failed(Failure.STORE_UNAVAILABLE), (503, "store_unavailable", "10")),
        (Failed(Failure.NOT_STARTED), (503, "not_started", "1")),
        (Failed(Failure.OPERATION_RAISED, "OSError"), (500, "operation_raised", None)),
        (Failed(Failure.LEASE_LOST), (500, "lease_lost", None)),
        (Failed(Failure.COMPLETION_LOST), (500, "completion_lost", None)),
        (Failed(Failure.UNEXPECTED), (500, "unexpected", None)),
    ],
    ids=str,
)
def test_what_is_no_answer_is_a_problem(outcome: Outcome, expected: tuple[int, str, str | None]) -> None:
    assert told(outcome) == expected
    assert response(outcome).media_type == "application/problem+json"


def test_every_failure_is_in_the_table() -> None:
    assert {told(Failed(failure))[0] for failure in Failure} == {404, 500, 503}


def test_the_operations_own_words_reach_its_caller_and_an_errors_type_does_not() -> None:
    assert json.loads(response(Rejected("account_closed", "account: closed")).body)["detail"] == "account: closed"
    assert "OSError" not in response(Failed(Failure.OPERATION_RAISED, "OSError")).body


def test_a_problems_type_leads_to_its_description_below_the_stage() -> None:
    for kind in PROBLEMS:
        made = json.loads(problem_response(HttpProblemError(kind), "/prod").body)
        assert made["type"] == f"/prod/openapi.json#/components/responses/{kind.name}"
        assert (made["status"], made["reason"]) == (kind.status, kind.name)


def record(**changed: Any) -> Record:
    made: dict[str, Any] = {
        "key": job_key("test", "charge", "a", "t"),
        "job_id": "a",
        "status": Status.IN_PROGRESS,
        "owner": "run-1",
        "attempts": 2,
        "lease_until": NOW + timedelta(seconds=5),
        "expires_at": NOW + timedelta(days=1),
        "fingerprint": "v1:secret",
        "first_seen": NOW,
        **changed,
    }
    return Record(**made)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, {"status": "running"}),
        ({"lease_until": RELEASED, "last_error": "OSError"}, {"status": "waiting", "last_error": "OSError"}),
        ({"lease_until": NOW - timedelta(seconds=1)}, {"status": "waiting"}),
        (
            {"status": Status.COMPLETED, "answer": Answer("null")},
            {"status": "completed", "answer": None},
        ),
        (
            {"status": Status.COMPLETED, "answer": Answer("null", "too_large: 9 bytes")},
            {"status": "completed", "answer": None, "answer_omitted": "too_large: 9 bytes"},
        ),
    ],
    ids=["running", "released", "lapsed", "done", "omitted"],
)
def test_a_status(changed: dict[str, Any], expected: dict[str, Any]) -> None:
    made = status_response("a", record(**changed), NOW)
    assert made.status == 200
    assert json.loads(made.body) == {
        "job_id": "a",
        "operation": "charge",
        "attempts": 2,
        "first_seen": "2026-01-01T00:00:00+00:00",
        **expected,
    }
