"""Beside stock Powertools on one table: its records are honoured, ours are by it. For a migration, in either direction.

With `hash_function="sha256"` and the key prefix `{namespace}.{operation}` both make the same key of an ASCII job id.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer
from aws_lambda_powertools.utilities.idempotency.exceptions import IdempotencyAlreadyInProgressError

from adapters.system import SystemClock
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.record import Acquired, Busy, Claim, ClaimAnswer, Completed
from tests.support.aws import TABLE, dynamodb_store, in_process, item
from tests.support.decorated import Run, decorated, lapse
from tests.support.jobs import job
from tests.support.sqs import Context

JOB = job("job-001", amount=10)
MESSAGE = {"job_id": "job-001", "amount": 10}
LEASE = timedelta(seconds=60)


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


def stock(run: Run, *, context: Context | None = None) -> Callable[..., Any]:
    """A function under bare Powertools, set up to make our keys."""
    layer = DynamoDBPersistenceLayer(TABLE)
    return decorated(run, layer, prefix="test.default", hash_function="sha256", lambda_context=context)


def ours(owner: str = "us") -> ClaimAnswer:
    return dynamodb_store(SystemClock(), timedelta(days=1)).claim(JOB, owner=owner, lease=LEASE)


class Killed(BaseException):
    """Ends a function as a time-out would: nothing is cleaned up."""


def start_and_die(message: dict[str, Any]) -> object:
    raise Killed


def fail(message: dict[str, Any]) -> object:
    raise OSError


def test_the_key_is_the_same() -> None:
    stock(lambda message: "x", context=Context())(message=MESSAGE)
    assert item(JOB.key)["status"] == "COMPLETED"


def test_what_powertools_completed_we_answer() -> None:
    stock(lambda message: {"paid": 1}, context=Context())(message=MESSAGE)
    assert ours() == Completed(Answer('{"paid": 1}'), verified=False)


def test_what_we_completed_powertools_answers() -> None:
    claimed = ours()
    assert isinstance(claimed, Acquired)
    dynamodb_store(SystemClock(), timedelta(days=1)).complete(claimed.claim, Answer('{"paid":1}'))
    runs: list[object] = []
    assert stock(runs.append, context=Context())(message=MESSAGE) == {"paid": 1}
    assert runs == []


def test_what_powertools_runs_we_wait_for() -> None:
    seen: list[ClaimAnswer] = []
    stock(lambda message: seen.append(ours()), context=Context(seconds=30))(message=MESSAGE)
    (busy,) = seen
    assert isinstance(busy, Busy)
    assert timedelta(seconds=25) < busy.until - datetime.now(UTC) <= timedelta(seconds=30)


def test_what_we_run_powertools_waits_for() -> None:
    ours()
    with pytest.raises(IdempotencyAlreadyInProgressError):
        stock(lambda message: "x", context=Context())(message=MESSAGE)


def test_what_powertools_left_running_we_take_over() -> None:
    with pytest.raises(Killed):
        stock(start_and_die, context=Context())(message=MESSAGE)
    assert isinstance(ours(), Busy)
    lapse()
    assert ours() == Acquired(Claim(JOB.key, "us", 1), verified=False)


def test_what_powertools_runs_without_a_lease_we_leave_alone_for_its_retention() -> None:
    with pytest.raises(Killed), pytest.warns(UserWarning, match="register_lambda_context"):
        stock(start_and_die)(message=MESSAGE)
    busy = ours()
    assert isinstance(busy, Busy)
    assert timedelta(minutes=59) < busy.until - datetime.now(UTC) <= timedelta(hours=1)


def test_what_we_left_running_powertools_takes_over_and_we_cannot_write_any_more() -> None:
    claimed = ours()
    assert isinstance(claimed, Acquired)
    lapse()
    assert stock(lambda message: "theirs", context=Context())(message=MESSAGE) == "theirs"
    store = dynamodb_store(SystemClock(), timedelta(days=1))
    with pytest.raises(LeaseLostError):
        store.complete(claimed.claim, Answer('"ours"'))
    with pytest.raises(LeaseLostError):
        store.release(claimed.claim, "Error")
    assert item(JOB.key)["data"] == '"theirs"'


def test_what_we_released_powertools_runs_at_once() -> None:
    claimed = ours()
    assert isinstance(claimed, Acquired)
    dynamodb_store(SystemClock(), timedelta(days=1)).release(claimed.claim, "Error")
    assert stock(lambda message: "theirs", context=Context())(message=MESSAGE) == "theirs"


def test_what_failed_under_powertools_we_run() -> None:
    with pytest.raises(OSError):  # noqa: PT011
        stock(fail, context=Context())(message=MESSAGE)
    assert isinstance(ours(), Acquired)


def test_fencing_holds_among_our_own_workers_only() -> None:
    """The documented limit: a late stock worker still overwrites, since it asks for no fence."""

    def outlived(message: dict[str, Any]) -> object:
        lapse()
        claimed = ours()
        assert isinstance(claimed, Acquired)
        dynamodb_store(SystemClock(), timedelta(days=1)).complete(claimed.claim, Answer('"ours"'))
        return "late"

    stock(outlived, context=Context())(message=MESSAGE)
    assert item(JOB.key)["data"] == '"late"'
