"""What the header fields mean, by their grammars."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.headers import KEY, idempotency_key, is_json, prefers_async
from adapters.http.problems import BAD_KEY, NO_KEY, HttpProblemError, ProblemType
from domain.identity import clean_id

keys = st.from_regex(KEY, fullmatch=True)


def refused(value: str | None) -> ProblemType:
    with pytest.raises(HttpProblemError) as problem:
        idempotency_key(value)
    return problem.value.type


@given(keys)
def test_a_quoted_key_is_read_as_it_is_and_is_a_legal_job_id(key: str) -> None:
    assert idempotency_key(f' "{key}"  ') == key == clean_id(key, "job_id")


@pytest.mark.parametrize("value", [None, "", "  "])
def test_no_key(value: str | None) -> None:
    assert refused(value) is NO_KEY


@pytest.mark.parametrize(
    "value",
    [
        "job-001",  # a token
        '"job-001',
        'job-001"',
        '"a", "b"',  # two fields
        '"a";q=1',  # an item with a parameter is no sf-string
        ":am9i:",
        "1",
        '"a" b',
        '\t"a"',
        '"a\\b"',  # only quote and backslash are escaped
        '"ä"',
        '""',
        '" a"',
        '"a b"',
        '"a/b"',
        '"a%41"',
        '".."',
        '"a\\"b"',
        f'"{"a" * 257}"',
        '"a\n"',
        '"a"\n',
    ],
)
def test_what_is_no_quoted_key_is_refused(value: str) -> None:
    assert refused(value) is BAD_KEY


@given(st.text() | st.from_regex(r'"[ -~]*"', fullmatch=True))
def test_whatever_comes_is_a_key_or_a_problem(value: str) -> None:
    try:
        key = idempotency_key(value)
    except HttpProblemError:
        assert not re.fullmatch(rf' *"{KEY.pattern}" *', value)
    else:
        assert value.strip(" ") == f'"{key}"'
        assert re.fullmatch(r"[\x21-\x7e]{1,256}", key)


@pytest.mark.parametrize(
    "value",
    [
        "respond-async",
        "Respond-Async",
        "respond-async, wait=10",
        "wait=10 ,respond-async",
        'foo="a, b"; bar, respond-async',
        "respond-async; x=1",
        'respond-async=""',
        ",,respond-async",
    ],
)
def test_respond_async_among_other_preferences(value: str) -> None:
    assert prefers_async(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "wait=10",
        'foo="respond-async"',
        'foo=", respond-async, "',
        "respond-asynchronously",
        "x=respond-async",
    ],
)
def test_other_preferences_are_not_it(value: str | None) -> None:
    assert not prefers_async(value)


@given(st.lists(st.sampled_from(["respond-async", '"', "\\", ",", ";", "=", "a", " "]), max_size=40))
def test_no_preference_breaks_the_reading(parts: list[str]) -> None:
    assert prefers_async("".join(parts)) in (True, False)


@pytest.mark.parametrize(
    "value",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json; x=y",
    ],
)
def test_json(value: str) -> None:
    assert is_json(value)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "text/plain",
        "text/json",
        "application/json; charset=latin-1",
        "application/jsonx",
        "application/problem+json",
        "application/x-www-form-urlencoded",
    ],
)
def test_not_json(value: str | None) -> None:
    assert not is_json(value)
