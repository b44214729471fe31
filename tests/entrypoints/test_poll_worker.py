"""The poll worker on real SQS and DynamoDB (emulated): leases and visibilities that are kept, refused, and shared."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import boto3
import pytest

from adapters.sqs.polling.visibility_heartbeat import HeldQueue
from domain.attempt import Attempt
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import OperationFunction, Operations
from entrypoints import poll_worker
from entrypoints.poll_worker import Parts, PollOptions, make_poll_worker
from entrypoints.settings import Backend, Settings
from tests.support.aws import TABLE, emulated, item
from tests.support.jobs import operations
from tests.support.polling import until
from tests.support.sqs_aws import Queues, make_queues


@pytest.fixture(autouse=True)
def _on_the_emulator() -> Iterator[None]:
    with emulated():
        yield


@contextmanager
def working(
    queues: Queues, run: OperationFunction, *, lease: float = 60, longest: timedelta | None = None, **settings: Any
) -> Iterator[Parts]:
    chosen = {"backend": Backend.DYNAMODB, "table": TABLE, "dead_letter_queue_url": queues.dead_letter_url, **settings}
    single_host = chosen["backend"] is Backend.SQLITE
    options = PollOptions(
        queue_url=queues.url,
        lease=timedelta(seconds=lease),
        longest=longest,
        poll=timedelta(),
        single_host=single_host,
    )
    parts = make_poll_worker(operations(run), "default", options, Settings(namespace="test", **chosen))
    parts.worker.start()
    try:
        yield parts
    finally:
        parts.worker.stop()
        assert parts.worker.wait(timedelta(seconds=10)) == []
        parts.close()


def key(job_id: str) -> object:
    return JobFactory("test", Operations()).job({"job_id": job_id}).key


def test_a_job_that_outlasts_its_lease_and_its_visibility_stays_exclusive_and_invisible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lease of 0.6 s, a visibility of 1 s, a job of 1.6 s, and a second worker that waits for it."""
    monkeypatch.setattr(poll_worker, "BEYOND_LEASE", timedelta(seconds=0.4))
    queues = make_queues(visibility=1)
    began: list[int] = []
    go = Event()

    def waits(job: Job, attempt: Attempt) -> object:
        began.append(attempt.number)
        go.wait(1.6)
        return attempt.lost()

    with working(queues, waits, lease=0.6), working(queues, waits, lease=0.6):
        queues.send('{"job_id":"long"}')
        until(lambda: item(key("long")).get("status") == "COMPLETED")
        until(lambda: queues.counts() == (0, 0))
    assert began == [1]
    stored = item(key("long"))
    assert (stored["data"], stored["attempts"]) == ("false", 1)


def test_a_job_that_hangs_is_taken_over_when_its_time_is_over_and_what_hung_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lease of 0.6 s that is renewed until 1 s: 0.5 s for the attempt, 0.5 s to write its answer."""
    monkeypatch.setattr(poll_worker, "BEYOND_LEASE", timedelta(seconds=1.4))
    monkeypatch.setattr("adapters.sqs.polling.worker.BEYOND_DEADLINE", timedelta(seconds=1))
    queues = make_queues(visibility=2)
    took_over, go, attempts = Event(), Event(), list[int]()

    def hangs_once(job: Job, attempt: Attempt) -> object:
        attempts.append(attempt.number)
        if attempt.number == 1:
            assert go.wait(20)
        else:
            took_over.set()
        return attempt.number

    limits: dict[str, Any] = {"longest": timedelta(seconds=0.5), "deadline_margin": timedelta(seconds=0.5)}
    with working(queues, hangs_once, lease=0.6, **limits), working(queues, hangs_once, lease=0.6, **limits):
        queues.send('{"job_id":"hangs"}')
        assert took_over.wait(20)
        until(lambda: item(key("hangs")).get("status") == "COMPLETED")
        go.set()
    stored = item(key("hangs"))
    assert (stored["data"], stored["attempts"], attempts) == ("2", 2, [1, 2])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["job_id"] for line in lines if line.get("event") == "job_overdue"] == ["hangs"]
    assert [line["reason"] for line in lines if line.get("event") == "job_failed"] == ["lease_lost"]


def test_a_refused_renewal_is_known_to_the_operation_and_nothing_is_written_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queues = make_queues()
    began, lost = Event(), Event()

    def waits(job: Job, attempt: Attempt) -> object:
        began.set()
        until(attempt.lost)
        lost.set()
        return "too late"

    with working(queues, waits, lease=0.9):
        queues.send('{"job_id":"taken"}')
        assert began.wait(10)
        taken = item(key("taken")) | {"owner": "another", "attempts": 2, "in_progress_expiration": 9_999_999_999_999}
        table: Any = boto3.resource("dynamodb").Table(TABLE)
        table.put_item(Item=taken)
        assert lost.wait(10)
        until(lambda: '"lease_lost"' in capsys.readouterr().out)
        assert item(key("taken")) == taken
        assert queues.counts() == (0, 1), "the message comes back, and meets the other's lease"


def test_a_fifo_group_keeps_its_order_and_its_tail_waits_for_what_failed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    queues = make_queues(fifo=True)
    began: list[str] = []

    def fails(job: Job, attempt: Attempt) -> object:
        began.append(job.job_id)
        if job.job_id == "2":
            raise ValueError("secret")
        return None

    for number in range(1, 5):
        queues.send(f'{{"job_id":"{number}"}}', MessageGroupId="g", MessageDeduplicationId=str(number))
    with working(queues, fails) as parts:
        assert isinstance(parts.worker.batches.queue, HeldQueue), "or an extension could undo a back-off"
        until(lambda: began == ["1", "2"])
        until(lambda: queues.counts() == (0, 3))
    assert began == ["1", "2"]
    assert "secret" not in capsys.readouterr().out


def test_workers_of_one_host_share_a_file(tmp_path: Path) -> None:
    queues = make_queues()
    ran: list[str] = []
    sqlite: dict[str, Any] = {"backend": Backend.SQLITE, "table": None, "db": tmp_path / "records.sqlite"}

    def run(job: Job, attempt: Attempt) -> object:
        ran.append(job.job_id)
        return None

    with working(queues, run, **sqlite), working(queues, run, **sqlite):
        queues.send(*(f'{{"job_id":"{number % 10}"}}' for number in range(20)))
        until(lambda: queues.counts()[0] == 0 and len(ran) >= 10)
    assert sorted(ran) == sorted({str(number) for number in range(10)})


def test_a_queue_that_is_deleted_under_way_is_said_and_asked_for_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.sqs.polling.worker.FIRST_PAUSE", timedelta(milliseconds=50))
    queues = make_queues()
    ran = Event()
    told: list[str] = []

    def run(job: Job, attempt: Attempt) -> object:
        ran.set()
        return None

    def said(text: str) -> bool:
        told.append(capsys.readouterr().out)
        return text in "".join(told)

    with working(queues, run):
        queues.sqs.delete_queue(QueueUrl=queues.url)
        until(lambda: said('"receive_failed"'))
        assert "QueueDoesNotExist" in "".join(told) or "NonExistentQueue" in "".join(told)
        make_queues().send('{"job_id":"1"}')
        assert ran.wait(10)
