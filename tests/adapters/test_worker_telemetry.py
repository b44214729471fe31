"""What a worker that polls tells: by name, without a payload, and counted where an operator should look."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from adapters.worker_telemetry import WorkerTelemetry
from tests.support.sqs import QUEUE

MESSAGE = Message("m1", "h1", '{"job_id":"1","card":"4242"}', QUEUE, receives=3)


def told(capsys: pytest.CaptureFixture[str], events: WorkerTelemetry) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Log lines without what all have, and the metrics."""
    events.flush()
    text = capsys.readouterr().out
    assert "4242" not in text
    assert "secret" not in text
    lines = [json.loads(line) for line in text.splitlines()]
    logged = [
        {name: line[name] for name in line.keys() - {"timestamp", "service", "message"}}
        for line in lines
        if "event" in line
    ]
    metrics = {name: value for line in lines if "_aws" in line for name, value in line.items() if name[0].isupper()}
    return logged, metrics


@pytest.mark.parametrize("text", ["\u009b2J", "a\u202eb", "a\u2028b", "\x7f"])
def test_nothing_that_a_terminal_obeys_gets_into_a_line(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    events = WorkerTelemetry(error_messages=False, service="s", metrics_namespace="n")
    message = replace(MESSAGE, message_id=text)
    events.worker("worker_started", queue=text)
    events.receive_failed(QueueUnavailableError(text), timedelta(seconds=1))
    events.worker_error([message], ValueError())
    events.left_running([message])
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in lines)
    started, failed, worker_error, left = map(json.loads, lines[:-1])
    assert (started["queue"], failed["cause"]) == (text, text)
    assert (worker_error["sqs_message_ids"], left["sqs_message_id"]) == ([text], text)


def test_what_happens_to_the_worker_is_told_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    events = WorkerTelemetry(error_messages=False, service="s", metrics_namespace="n")
    events.worker("worker_started", queue="q")
    events.receive_failed(QueueUnavailableError("SQS ReceiveMessage: RequestThrottled"), timedelta(seconds=1.5))
    events.visibility_limit_reached(MESSAGE, datetime(2026, 1, 1, tzinfo=UTC))
    events.left_running([MESSAGE])
    events.waits_to_run_alone(MESSAGE, timedelta(seconds=60))
    events.put_off(MESSAGE)
    events.worker_error([MESSAGE], ValueError("secret"))
    logged, metrics = told(capsys, events)
    assert logged == [
        {"level": "INFO", "event": "worker_started", "queue": "q"},
        {
            "level": "WARNING",
            "event": "receive_failed",
            "cause": "SQS ReceiveMessage: RequestThrottled",
            "again_in_seconds": 1.5,
        },
        {
            "level": "WARNING",
            "event": "held_too_long",
            "sqs_message_id": "m1",
            "receives": 3,
            "since": "2026-01-01T00:00:00+00:00",
        },
        {"level": "WARNING", "event": "left_running", "sqs_message_id": "m1", "receives": 3},
        {
            "level": "WARNING",
            "event": "waits_to_run_alone",
            "sqs_message_id": "m1",
            "receives": 3,
            "longest_seconds": 60.0,
        },
        {"level": "WARNING", "event": "put_off_to_run_alone", "sqs_message_id": "m1", "receives": 3},
        {
            "level": "ERROR",
            "event": "unexpected_error",
            "sqs_message_ids": ["m1"],
            "error_type": "ValueError",
            "error_at": [],
        },
    ]
    assert metrics == {
        "ReceiveFailed": [1.0],
        "HeldTooLong": [1.0],
        "PutOffToRunAlone": [1.0],
        "Unexpected": [1.0],
    }
