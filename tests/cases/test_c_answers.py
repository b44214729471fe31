"""Situations reported in public, by their ids: what is stored and replayed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.outcome import Executed, Skipped
from domain.record import Status
from tests.support.aws import dynamodb_store, in_process
from tests.support.sqs import Worker, record

BODY = '{"job_id":"j1"}'


def delivered_twice(returned: object, *, over_dynamodb: bool = False) -> tuple[Worker, Any, Any]:
    worker = Worker(lambda job, attempt: returned)
    if over_dynamodb:
        worker.store.inner = dynamodb_store(worker.clock, timedelta(days=1))
        worker.store.max_answer_bytes = worker.store.inner.max_answer_bytes
    assert worker.handle(record("a", BODY)) == []
    assert worker.handle(record("b", BODY)) == []
    first, second = (trace.outcome for trace in worker.events.traces)
    assert isinstance(first, Executed)
    assert isinstance(second, Skipped)
    assert worker.runs == ["j1"]
    return worker, first.answer, second.answer


@pytest.mark.parametrize("returned", [{}, [], 0, "", False, None, 0.0])
def test_C01_falsy_answers_replay_as_they_were(returned: object) -> None:
    with in_process():
        _, first, second = delivered_twice(returned, over_dynamodb=True)
    assert second == first
    assert second.value == returned
    assert type(second.value) is type(returned)


@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00+00:00"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ({3, 1}, [1, 3]),
        (b"x", "eA=="),
        (object(), None),
    ],
)
def test_C03_an_answer_that_is_not_json_never_repeats_its_effect(returned: object, kept: object) -> None:
    worker, first, second = delivered_twice(returned)
    assert first == second
    assert second.value == kept
    assert (second.omitted is None) == (kept is not None)
    stored = worker.record_of("j1")
    assert stored is not None
    assert stored.status is Status.COMPLETED


def test_C05_an_answer_over_the_item_limit_is_omitted_and_never_repeats_its_effect() -> None:
    """Declined as it stands: omitted with its reason instead of offloaded."""
    with in_process():
        _, first, second = delivered_twice("x" * 450_000, over_dynamodb=True)
    assert first == second
    assert second.omitted == "too_large: 450002 bytes"
