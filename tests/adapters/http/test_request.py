"""What a request asks for, and every way in which it cannot be read."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.problems import BAD_REQUEST, NOT_JSON, TOO_LARGE, HttpProblemError
from adapters.http.request import MAX_BODY_BYTES, HttpRequest, NotAnHttpRequestError, read_event
from domain.job_factory import RESERVED
from tests.support.http import http_event, iam_user

JSON = {"content-type": "application/json", "idempotency-key": '"a"'}


def request(body: str | None = "{}", **parts: Any) -> HttpRequest:
    return HttpRequest(**{"method": "POST", "path": "/jobs", "headers": JSON, "body": body, **parts})


def problem(of: HttpRequest) -> tuple[object, str | None]:
    with pytest.raises(HttpProblemError) as refused:
        of.message("t", "default")
    return refused.value.type, refused.value.reason


def test_it_is_the_message_that_a_producer_would_send() -> None:
    assert request('{"amount": 10}').message("t", "default") == {
        "job_id": "a",
        "operation": "default",
        "tenant": "t",
        "amount": 10,
    }


def test_the_operation_comes_from_header_or_query() -> None:
    assert request(query="x=1&operation=charge").operation("default") == "charge"
    assert request(headers={**JSON, "onejob-operation": "charge"}, query="operation=charge").operation("d") == "charge"
    assert problem(request(headers={**JSON, "onejob-operation": "a"}, query="operation=b"))[1] == "invalid_operation"
    assert problem(request(query="operation=a&operation=b"))[1] == "invalid_operation"


@pytest.mark.parametrize("name", RESERVED)
def test_a_payload_cannot_say_whose_job_it_is(name: str) -> None:
    assert problem(request(f'{{"{name}": "other"}}')) == (BAD_REQUEST, "reserved_member")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "empty_body"),
        ("", "empty_body"),
        ("{", "not_json"),
        ("[]", "not_an_object"),
        ('"a"', "not_an_object"),
        ("null", "not_an_object"),
        ('{"a":1,"a":1}', "duplicate_member"),
        ('{"a":NaN}', "nan_number"),
        ('{"a":1e999}', "number_overflow"),
        ('{"amount":12345678901234567.89}', "inexact_number"),
        ('{"amount":9007199254740993.0}', "inexact_number"),
        ('{"a":' + "[" * 200 + "]" * 200 + "}", "too_deep"),
        ('{"a":"\\ud800"}', "lone_surrogate"),
    ],
)
def test_json_is_read_strictly_and_the_reason_is_told(body: str | None, reason: str) -> None:
    assert problem(request(body)) == (BAD_REQUEST, reason)


def test_base64_bodies() -> None:
    assert request(b64encode('{"a":"ä"}'.encode()).decode(), is_base64=True).payload() == {"a": "ä"}
    assert problem(request("%", is_base64=True)) == (BAD_REQUEST, "not_utf8")
    assert problem(request(b64encode(b'{"a":"\xff"}').decode(), is_base64=True)) == (BAD_REQUEST, "not_utf8")
    assert problem(request('{"a":"\ud800"}')) == (BAD_REQUEST, "not_utf8")


def test_the_limit_is_in_bytes() -> None:
    fits = '{"a":"' + "ä" * ((MAX_BODY_BYTES - 8) // 2) + '"}'
    assert len(fits.encode()) == MAX_BODY_BYTES
    assert request(fits).payload()
    assert problem(request(fits + " ")) == (TOO_LARGE, None)
    assert len(fits) < MAX_BODY_BYTES / 1.9
    assert request(b64encode(fits.encode()).decode(), is_base64=True).payload()
    assert problem(request(b64encode(f"{fits} ".encode()).decode(), is_base64=True)) == (TOO_LARGE, None)


@pytest.mark.parametrize("is_base64", [False, True])
def test_the_limit_is_looked_at_before_the_body_is_decoded(is_base64: bool) -> None:
    """What cannot be decoded is too large before it is tried."""
    assert problem(request("\ud800" * 2 * MAX_BODY_BYTES, is_base64=is_base64)) == (TOO_LARGE, None)


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_what_is_not_declared_as_json_is_not_read(content_type: str | None) -> None:
    headers = {"idempotency-key": '"a"'} | ({"content-type": content_type} if content_type else {})
    assert problem(request(headers=headers)) == (NOT_JSON, None)


@given(st.text(max_size=200))
def test_whatever_comes_is_a_payload_or_a_problem_that_does_not_repeat_it(body: str) -> None:
    told = ""
    try:
        assert isinstance(request(f'{{"secret{body}').payload(), dict)
    except HttpProblemError as refused:
        told = f"{refused.detail}{refused.reason}"
    assert "secret" not in told


def test_an_event_as_it_is_documented() -> None:
    event = http_event("POST", "/jobs", authorizer=iam_user(), headers={"Prefer": "x"}, query="operation=a", body="{}")
    read = read_event(event)
    assert (read.method, read.path, read.base, read.query, read.body) == ("POST", "/jobs", "", "operation=a", "{}")
    assert read.headers["prefer"] == "x"
    assert read.authorizer == iam_user()


def test_a_stage_stands_before_the_path_but_not_behind_a_domain_of_yours() -> None:
    for path, base in (("/prod/jobs", "/prod"), ("/jobs", ""), ("/production/jobs", "")):
        read = read_event(http_event("GET", path, authorizer=None, stage="prod"))
        assert (read.base, read.base + read.path) == (base, path)


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"Records": []},
        {**http_event("GET", "/", authorizer=None), "version": "1.0"},
        {**http_event("GET", "/", authorizer=None), "requestContext": {}},
        {**http_event("GET", "/", authorizer=None), "rawPath": None},
    ],
    ids=lambda event: str(event)[:30],
)
def test_what_is_no_request_is_a_clear_error(event: object) -> None:
    with pytest.raises(NotAnHttpRequestError):
        read_event(event)
