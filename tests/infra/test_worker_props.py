"""Combinations that would lose, delay or repeat work are refused, and both values are named."""

import re
from dataclasses import fields
from typing import Any

import pytest

from entrypoints.settings import Backend, Settings
from infra.worker_props import WorkerProps, WorkerPropsError


def test_what_nobody_told_is_right() -> None:
    props = WorkerProps()
    assert props.visibility_timeout == 6 * props.timeout + props.batch_window == 360


def test_defaults_are_those_of_the_worker() -> None:
    props, settings = WorkerProps(), Settings(backend=Backend.DYNAMODB)
    assert (props.margin, props.grace) == (
        settings.deadline_margin.total_seconds(),
        settings.lease_grace.total_seconds(),
    )
    assert (props.job_concurrency, props.max_attempts) == (settings.concurrency, settings.max_attempts)
    assert (props.retention_days, props.namespace) == (settings.retention.days, settings.namespace)


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"visibility": 359}, ["visibility=359", "timeout=60"]),
    ({"visibility": 5 * 60}, ["visibility=300", "timeout=60"]),
    ({"timeout": 30, "batch_window": 5, "visibility": 184}, ["visibility=184", "timeout=30", "batch-window=5"]),
    ({"visibility": 43_201}, ["visibility=43201", "43200"]),
    ({"max_receives": 19}, ["max-receives=19", "20", "max-attempts=5"]),
    ({"max_receives": 50, "max_attempts": 50}, ["max-receives=50", "max-attempts=50"]),
    ({"concurrency": 11, "reserved_concurrency": 10}, ["concurrency=11", "reserved-concurrency=10"]),
    ({"reserved_concurrency": 0}, ["reserved-concurrency=0", "event source mapping"]),
    ({"retention_days": 20}, ["retention=20", "queue-retention=7", "dead-letter-retention=14"]),
    ({"margin": 2}, ["margin=2", "3 s"]),
    ({"timeout": 9}, ["timeout=9", "margin=5"]),
    (
        {"batch_size": 11, "job_concurrency": 1, "timeout": 15, "batch_window": 1},
        ["batch-size=11", "job-concurrency=1"],
    ),
    ({"batch_size": 10, "job_seconds": 56}, ["job-seconds=56", "timeout=60", "margin=5", "batch-size=10"]),
    ({"batch_size": 11}, ["batch-size=11", "batch-window"]),
    ({"fifo": True, "batch_size": 11, "batch_window": 1}, ["batch-size=11", "fifo=true"]),
    ({"fifo": True, "batch_window": 1}, ["batch-window=1", "fifo=true"]),
    ({"queue_retention_days": 14}, ["queue-retention=14", "dead-letter-retention=14"]),
    ({"fifo": True, "job_seconds": 6}, ["batch-size=10", "job-seconds=6"]),
    ({"service": ""}, ["service=''"]),
    ({"service": " a"}, ["service=' a'"]),
    ({"log_retention_days": 2}, ["log-retention=2"]),
    ({"concurrency": 1}, ["concurrency=1", "2 to 1000"]),
    ({"concurrency": 1001}, ["concurrency=1001", "2 to 1000"]),
    ({"timeout": 901}, ["timeout=901"]),
    ({"memory": 127}, ["memory=127"]),
    ({"memory": 297}, ["memory=297", "batch-size=10", "job-concurrency=10"]),
    ({"memory": 187, "batch_size": 2}, ["memory=187", "batch-size=2"]),
    ({"memory": 207, "job_concurrency": 3}, ["memory=207", "job-concurrency=3"]),
    ({"queue_retention_days": 15}, ["queue-retention=15"]),
]


@pytest.mark.parametrize(("told", "named"), REFUSED, ids=lambda value: str(value) if isinstance(value, dict) else "")
def test_refused_by_name(told: dict[str, Any], named: list[str]) -> None:
    with pytest.raises(WorkerPropsError) as refused:
        WorkerProps(**told)
    for words in named:
        assert re.search(rf"(?<![\w-]){re.escape(words)}(?!\d)", str(refused.value)), (words, str(refused.value))


ACCEPTED: list[dict[str, Any]] = [
    {"visibility": 360},
    {"timeout": 30, "batch_window": 5, "visibility": 185},
    {"max_receives": 20},
    {"concurrency": 10, "reserved_concurrency": 10},
    {"retention_days": 21},
    {"queue_retention_days": 13},
    {"fifo": True, "queue_retention_days": 14},
    {"fifo": True, "job_seconds": 5},
    {"margin": 3, "timeout": 6},
    {"timeout": 10},
    {"job_seconds": 55},
    {"batch_size": 11, "batch_window": 1},
    {"fifo": True},
    {"memory": 298},
    {"memory": 188, "batch_size": 2},
    {"memory": 208, "job_concurrency": 3},
    {"timeout": 900, "batch_window": 300},
]


@pytest.mark.parametrize("told", ACCEPTED, ids=str)
def test_accepted_just_at_the_limit(told: dict[str, Any]) -> None:
    assert WorkerProps(**told)


def test_every_number_has_limits() -> None:
    numbers = {field.name for field in fields(WorkerProps) if isinstance(field.default, int) and field.name != "fifo"}
    for name in numbers - {"log_error_messages"}:
        with pytest.raises(WorkerPropsError):
            WorkerProps(**{name: -1})  # type: ignore[arg-type]
