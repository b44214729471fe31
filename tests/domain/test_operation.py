"""Registration refuses what would run nothing, and the default operation is the one that a user edits."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from functools import partial

import pytest

from domain.attempt import Attempt
from domain.errors import text_of
from domain.job import Job
from domain.operation import Operation, Operations
from tests.support.jobs import answer_ok, job

ATTEMPT = Attempt(1, "run-1", datetime.now(UTC), lambda: False, job().key)


async def is_async(job: Job, attempt: Attempt) -> object:
    return None


async def is_async_generator(job: Job, attempt: Attempt) -> AsyncIterator[int]:
    yield 1


def is_generator(job: Job, attempt: Attempt) -> Iterator[int]:
    yield 1


class AsyncCallable:
    async def __call__(self, job: Job, attempt: Attempt) -> object:
        return None


@pytest.mark.parametrize("run", [is_async, is_async_generator, is_generator, AsyncCallable(), partial(is_async)])
def test_a_function_that_returns_before_it_has_run_is_refused(run: object) -> None:
    with pytest.raises(TypeError, match="operation pay: an async or generator function"):
        Operation("pay", run)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "a b", "é", "a" * 65, "a\n"])
def test_an_illegal_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected 1 to 64 characters"):
        Operation(name, answer_ok)


def test_volatile_is_a_set_of_names() -> None:
    with pytest.raises(TypeError, match="operation pay: volatile is a set of names"):
        Operation("pay", answer_ok, "sent_at")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="operation pay: volatile is a set of names, not of tuple"):
        Operation("pay", answer_ok, frozenset({("meta", "sent_at")}))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["meta.sent_at", "/meta/sent_at", "items[0]", "$.meta", "$", "a.", "."])
def test_a_path_that_would_ignore_nothing_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is a path: only top-level members can be left out"):
        Operation("pay", answer_ok, frozenset({"sent_at", path}))


@pytest.mark.parametrize("name", ["sent_at", "sent-at", "sent at", "größe", "@id", "a$b", "dc:date", ""])
def test_the_name_of_a_member_is_no_path(name: str) -> None:
    assert Operation("pay", answer_ok, frozenset({name})).volatile == {name}


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="registered twice: pay, pay"):
        Operations(Operation("pay", answer_ok), Operation("pay", answer_ok))


def test_operations_are_found_by_name() -> None:
    pay = Operation("pay", answer_ok)
    assert Operations(pay).find("pay") is pay
    assert Operations(pay).find("refund") is None


def test_each_function_can_be_wrapped_and_names_and_volatile_members_stay() -> None:
    known = Operations(Operation("pay", answer_ok, frozenset({"sent"})), Operation("other", lambda job, attempt: 2))
    wrapped = known.wrapped(lambda run: lambda job, attempt: ("wrapped", run(job, attempt)))
    pay, other = wrapped.find("pay"), wrapped.find("other")
    assert pay is not None
    assert other is not None
    assert (pay.name, pay.volatile) == ("pay", frozenset({"sent"}))
    assert other.run(job(), ATTEMPT) == ("wrapped", 2)
    assert wrapped.find("refund") is None


def test_an_effect_key_names_the_job_and_the_step_and_fits_a_payment_provider() -> None:
    assert ATTEMPT.effect_key("charge") == f"{job().key}#charge"
    assert ATTEMPT.effect_key("charge") != ATTEMPT.effect_key("email")
    assert len(f"{'n' * 64}.{'o' * 64}#{'d' * 64}#{'s' * 40}") <= 255


@pytest.mark.parametrize("step", ["", "a b", "s" * 41])
def test_a_step_is_a_short_name(step: str) -> None:
    with pytest.raises(ValueError, match="expected 1 to 40"):
        ATTEMPT.effect_key(step)


class Mute(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError


def test_an_error_says_something_in_any_case() -> None:
    assert text_of(ValueError("a")) == "a"
    assert text_of(Mute()) == "no text: RuntimeError"
