"""A process that an operation forks has default signals, ends where the operation ends, and does nothing to its job."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.system import SystemClock
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.record import Status
from tests.support.aws import TABLE, emulated, item
from tests.support.polling import until
from tests.support.sqs_aws import make_queues

WITHIN_SECONDS = 30
MAIN = (
    "import atexit; "
    "atexit.register(lambda: open('atexit', 'a').write('x')); from entrypoints.cli.app import main; main()"
)

ONEJOB = (sys.executable, "-c", MAIN)
ROOT = str(Path(__file__).parents[2])


def run(operation: str, *options: str) -> "subprocess.CompletedProcess[str]":
    Path("jobs.jsonl").write_text("".join(f'{{"job_id":"{number}"}}\n' for number in range(3)))
    command = ["run", "jobs.jsonl", "--operation", f"tests.entrypoints.forking:{operation}", "--max-attempts", "2"]
    return subprocess.run(
        [*ONEJOB, *command, *options, "--name", "forks"],
        env={**os.environ, "PYTHONPATH": ROOT, "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
    )


@pytest.mark.parametrize(
    ("operation", "answer", "error"),
    [
        ("exits", 7, ""),
        ("exits_with_a_text", 1, ""),
        ("returns", 0, ""),
        ("while_another_writes", 0, ""),
        ("raises", 1, "onejob: a forked process ended: LookupError < "),
        ("grandchild", 10, ""),
        ("by_pty", 5, ""),
        ("terminated", -signal.SIGTERM, ""),
        ("interrupted", -signal.SIGINT, ""),
        ("hung_up", -signal.SIGHUP, ""),
        ("at_once", [-signal.SIGTERM], ""),
        ("terminated_process", -signal.SIGTERM, ""),
        ("ended_process", 0, ""),
    ],
)
def test_the_job_of_an_operation_that_forks_runs_once_and_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, answer: object, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(operation, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    effects = Path("effects").read_text().splitlines()
    assert sorted(effects) == ["0 1", "1 1", "2 1"]
    (summary,) = [json.loads(line)["summary"] for line in done.stdout.splitlines()]
    assert summary["executed"] == 3
    assert error in done.stderr
    assert not any(text in done.stderr for text in ("Traceback", "a last word", "in the child"))
    assert Path("atexit").read_text() == "x", "only the parent's"
    factory = JobFactory("onejob", Operations(), "forks")
    with closing(SQLiteStoreAdmin(Path(".onejob/records.sqlite"), SystemClock(), timedelta(days=1))) as admin:
        records = [admin.look(factory.job({"job_id": str(number)}).key) for number in range(3)]
    for record in records:
        assert record is not None
        assert (record.status, record.attempts, record.last_error) == (Status.COMPLETED, 1, None)
        assert record.answer is not None
        assert record.answer.value == answer


def test_what_the_parent_has_written_is_written_once_and_what_the_child_writes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written = run("exits").stdout
    assert (written.count("before the fork"), written.count("of the child")) == (3, 3)


def test_a_worker_of_a_queue_has_them_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ways = ("exits", "returns", "raises", "grandchild", "terminated", "hung_up", "terminated_process", "ended_process")
    with emulated():
        queues = make_queues()
        settings = {"IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": TABLE, "IDEMPOTENCY_NAMESPACE": "test"}
        settings |= {"DEAD_LETTER_QUEUE_URL": queues.dead_letter_url, "PYTHONPATH": ROOT}
        command = [
            "work",
            "--queue-url",
            queues.url,
            "--operation",
            "tests.entrypoints.forking:named",
            "--poll-seconds",
            "1",
        ]
        queues.send(*(json.dumps({"job_id": way, "named": way}) for way in ways))
        with Path("log").open("w") as log:
            worker = subprocess.Popen([*ONEJOB, *command], stdout=log, stderr=log, env={**os.environ, **settings})
            try:
                until(lambda: Path("effects").exists() and len(Path("effects").read_text().splitlines()) == len(ways))
                queues.wait_for_counts(0, 0)
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(WITHIN_SECONDS) == 0, Path("log").read_text()
            finally:
                worker.kill()
                worker.wait()
        assert queues.counts(queues.dead_letter_url) == (0, 0)
        factory = JobFactory("test", Operations(), "named")
        items = [item(factory.job({"job_id": way}).key) for way in ways]
    assert [(one["status"], int(one["attempts"])) for one in items] == [("COMPLETED", 1)] * len(ways)
    assert sorted(Path("effects").read_text().splitlines()) == sorted(f"{way} 1" for way in ways)
    lines = [json.loads(line) for line in Path("log").read_text().splitlines() if line.startswith("{")]
    outcomes = [line["event"] for line in lines if line.get("event", "").startswith(("business_", "job_"))]
    assert outcomes == ["business_operation_executed"] * len(ways)
    assert Path("atexit").read_text() == "x"
