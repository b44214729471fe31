"""Output never ends work: whatever the terminal's encoding lacks, every job is run and every record is shown."""

import io
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.system import SystemClock
from domain.record import Record
from entrypoints.cli.app import app
from entrypoints.cli.output import write
from tests.support.aws import emulated
from tests.support.cli import onejob
from tests.support.jobs import job
from tests.support.sqs_aws import make_queues

OPERATIONS = """
import sys
from domain.errors import PermanentError

def ok(job, attempt):
    with open("effects", "a", encoding="utf-8") as file:
        file.write(f"{job.job_id}\\n")

def talk(job, attempt):
    print("größe 量", job.job_id)
    ok(job, attempt)

def refuse(job, attempt):
    ok(job, attempt)
    raise PermanentError("größe", "量 😀")

def swap_and_refuse(job, attempt):
    import io
    sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    refuse(job, attempt)
"""

IDS = ["ü", "量", "\U0001f600", "plain"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(OPERATIONS, encoding="utf-8")
    sys.modules.pop("mine", None)
    lines = (json.dumps({"job_id": one}, ensure_ascii=False) for one in IDS)
    (tmp_path / "jobs.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


COMMAND = [sys.executable, "-c", "from entrypoints.cli.app import main; main()"]


def typed(encoding: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": ":".join(sys.path), "PYTHONUTF8": "0"}
    return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, timeout=60, check=False)


def effects() -> list[str]:
    return sorted(Path("effects").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("encoding", "operation", "status"), [("ascii", "ok", 0), ("ascii:strict", "talk", 0), ("latin-1", "refuse", 1)]
)
def test_a_run_goes_to_its_end_whatever_its_output_can_show(encoding: str, operation: str, status: int) -> None:
    for _ in range(2):  # the second time every job is a line: skipped, or refused again
        ran = typed(encoding, "run", "jobs.jsonl", "--operation", f"mine:{operation}")
        assert (ran.returncode, b"Traceback" in ran.stderr) == (status, False), ran.stderr.decode(errors="replace")
        assert "stopped" not in ran.stderr.decode(errors="replace")
    assert effects() == sorted(IDS * (2 if operation == "refuse" else 1))
    assert b"\\u91cf" in ran.stdout, "two jobs that cannot be shown stay two"


def test_a_terminal_without_the_characters_is_no_reason_to_stop() -> None:
    main, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path), "TERM": "xterm"}
    command = [*COMMAND, "run", "jobs.jsonl", "--operation", "mine:refuse"]
    with subprocess.Popen(command, env=environment, stdout=terminal, stderr=terminal, stdin=terminal) as process:
        os.close(terminal)
        shown = b"".join(_read(main))
        assert process.wait(60) == 1
    os.close(main)
    assert b"Traceback" not in shown
    assert b"\\u91cf" in shown
    assert effects() == sorted(IDS)


def _read(descriptor: int) -> Iterator[bytes]:
    with suppress(OSError):  # the other end is closed
        while chunk := os.read(descriptor, 65_536):
            yield chunk


def test_an_operation_that_puts_another_stream_in_the_place_of_the_output_ends_no_run() -> None:
    for operation in ("ok", "swap_and_refuse"):
        arguments = ("--operation", f"mine:{operation}", "--concurrency", "1")
        ran = typed("utf-8", "run", "jobs.jsonl", *arguments)
        assert (ran.returncode, b"stopped" in ran.stderr) == (operation != "ok", False), ran.stderr.decode()
    assert effects() == sorted(IDS * 2)


@pytest.mark.parametrize(
    ("encoding", "arguments"),
    [("ascii", ("list",)), ("latin-1", ("list",)), ("ascii", ("show", "ü")), ("ascii", ("forget", "量", "--yes"))],
)
def test_records_are_shown_whatever_the_output_can_show(encoding: str, arguments: Sequence[str]) -> None:
    with closing(SQLiteIdempotencyStore(Path("r.sqlite"), SystemClock(), timedelta(days=1))) as store:
        for one in IDS:
            claim = store.claim(job(one), owner="o", lease=timedelta(minutes=1))
            store.release(claim.claim, "ValueError")  # type: ignore[union-attr]
    shown = typed(encoding, *arguments, "--db", "r.sqlite", "--namespace", "test")
    assert (shown.returncode, b"AWS" in shown.stderr) == (0, False), shown.stderr.decode(errors="replace")
    wanted = {"list": "量", "show": "ü", "forget": "量"}[arguments[0]]
    codec = encoding.partition(":")[0]
    assert wanted.encode(codec, "backslashreplace") in shown.stdout


def test_letters_are_shown_whatever_the_output_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0)
    with emulated():
        queues = make_queues()
        for one in IDS:
            queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody=json.dumps({"job_id": one}))
        arguments = ["dlq", "list", "--dead-letter-url", queues.dead_letter_url]
        listed = CliRunner(charset="ascii").invoke(app, arguments)
        assert (listed.exit_code, listed.exception) == (0, None)
        assert "\\u91cf" in listed.stdout
        assert "\\U0001f600" in listed.stdout


@pytest.mark.parametrize("arguments", [["run", "--help"], ["nonsense"]])
def test_the_help_is_shown_whatever_the_output_can_show(arguments: list[str]) -> None:
    assert b"Traceback" not in typed("ascii", *arguments).stderr


def test_a_stream_that_was_closed_from_the_start_is_no_error() -> None:
    write(None, "text")


def test_what_a_stream_of_anothers_making_lacks_is_replaced() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    write(stream, "ü 量 😀\n")
    assert written.getvalue() == b"\\xfc \\u91cf \\U0001f600\n"


def test_an_error_of_another_kind_is_not_blamed_on_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: SQLiteStoreAdmin) -> Iterator[Record]:
        raise ValueError("of another kind")

    monkeypatch.setattr(SQLiteStoreAdmin, "records", broken)
    SQLiteIdempotencyStore(Path("r.sqlite"), SystemClock(), timedelta(days=1)).close()
    listed = onejob("list", "--db", "r.sqlite")
    assert isinstance(listed.exception, ValueError)
    assert "endpoint" not in listed.output.lower()


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        (["list", "--table", "records"], "nonsense"),
        (["dlq", "list", "--dead-letter-url", "https://sqs.eu-west-1.amazonaws.com/123456789012/d"], "nonsense"),
    ],
)
def test_an_endpoint_that_is_no_url_is_still_named(
    arguments: list[str], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    ended = onejob(*arguments, "--endpoint-url", url)
    assert ended.exit_code == 2
    assert "AWS_ENDPOINT_URL, is no URL" in ended.output
