"""The first thing that a user runs: it shows what is so, says when it is not, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer
from aws_lambda_powertools import Logger
from typer.testing import CliRunner, Result

from domain.attempt import Attempt
from domain.job import Job
from domain.operation import OperationFunction
from entrypoints.cli.app import app, main
from entrypoints.emulator import launcher
from tests.support.jobs import operations
from tests.support.processes import processes_in

WITHIN_SECONDS = 30
ONEJOB = Path(sys.executable).with_name("onejob")
"""The command, as pyproject.toml declares it."""

THEIRS = {
    "AWS_PROFILE": "theirs",
    "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9",
    "AWS_LAMBDA_FUNCTION_NAME": "theirs",
    "IDEMPOTENCY_BACKEND": "memory",
    "POWERTOOLS_SERVICE_NAME": "theirs",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
}


def out_of_stock(job: Job, attempt: Attempt) -> object:
    raise OSError("out of stock")


def onejob(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """What `onejob demo --json` prints, whatever its caller's environment says."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in THEIRS.items():
            patch.setenv(name, value)
        before = dict(os.environ)
        result = onejob("demo", "--json")
        assert dict(os.environ) == before
    assert (result.exit_code, result.stderr) == (0, "")
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


@pytest.fixture
def run_by_demo(monkeypatch: pytest.MonkeyPatch) -> Callable[[OperationFunction], Result]:
    """`onejob demo --json` with another operation than the user's."""

    def run(operation: OperationFunction) -> Result:
        monkeypatch.setattr("operations.OPERATIONS", operations(operation))
        return onejob("demo", "--json")

    return run


# What it shows.


def test_what_it_shows_is_so(shown: dict[str, Any]) -> None:
    assert shown["ok"] is True
    assert list(shown["checks"].values()) == [True] * 6


def test_one_job_delivered_twice_runs_once(shown: dict[str, Any]) -> None:
    first, second, _ = shown["deliveries"]
    assert first["body"] == second["body"] == '{"job_id":"job-001"}'
    assert first["message_id"] != second["message_id"]
    assert (first["log"]["event"], first["log"]["attempt"]) == ("business_operation_executed", 1)
    assert (second["log"]["event"], second["log"]["level"]) == ("job_skipped", "INFO")


def test_its_record_is_completed_by_the_run(shown: dict[str, Any]) -> None:
    execution_id = shown["deliveries"][0]["log"]["execution_id"]
    record = shown["record"]
    assert (record["status"], record["job_id"], record["attempts"]) == ("COMPLETED", "job-001", 1)
    assert record["owner"] == execution_id
    assert json.loads(record["data"]) == {"job_id": "job-001", "execution_id": execution_id}


def test_the_malformed_message_is_a_dead_letter_with_its_reason(shown: dict[str, Any]) -> None:
    malformed = shown["deliveries"][2]
    (letter,) = shown["dead_letters"]
    assert malformed["log"]["event"] == "job_rejected"
    assert (letter["body"], letter["reason"]) == (malformed["body"], "not_json") == ('{"job_id":"job-002"', "not_json")
    assert letter["message_id"] == malformed["message_id"]


def test_the_story_tells_the_same() -> None:
    result = onejob("demo")
    assert (result.exit_code, result.stderr) == (0, "")
    for told in ("127.0.0.1", "business_operation_executed", "job_skipped", "job_rejected", "not_json", "COMPLETED"):
        assert told in result.stdout


# When it is not so.


def test_an_operation_that_fails_is_told_and_exits_with_1(
    run_by_demo: Callable[[OperationFunction], Result],
) -> None:
    result = run_by_demo(out_of_stock)
    shown = json.loads(result.stdout)
    assert (result.exit_code, shown["ok"]) == (1, False)
    assert shown["deliveries"][0]["log"]["event"] == "job_failed"
    assert shown["deliveries"][1]["log"] == {}
    assert shown["record"]["status"] == "INPROGRESS"
    assert [claim for claim, passed in shown["checks"].items() if passed] == [
        "the malformed message is in the dead-letter queue with its reason"
    ]


def test_the_story_of_an_operation_that_fails_exits_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("operations.OPERATIONS", operations(out_of_stock))
    result = onejob("demo")
    assert result.exit_code == 1
    assert "job_failed" in result.stdout


def test_an_operation_may_print_what_it_likes(run_by_demo: Callable[[OperationFunction], Result]) -> None:
    def talkative(job: Job, attempt: Attempt) -> object:
        print("plain text", 42, '["JSON"]', '{"event": "job_failed"}', "{", "\x00", sep="\n")
        print("no newline", end="")
        Logger(service="onejob").info("its own logger, of the worker's usual name")
        return None

    result = run_by_demo(talkative)
    assert result.exit_code == 0
    assert json.loads(result.stdout)["ok"] is True


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["story", "json"])
def test_an_emulator_that_cannot_be_had_is_told_on_standard_error(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "PROJECT", tmp_path)
    result = onejob("demo", *form)
    assert result.exit_code == 1
    assert result.stderr.startswith("onejob demo: the emulator is installed from the project's lock file")
    assert "Traceback" not in result.output
    assert not form or result.stdout == ""


# When it is stopped.


STOPPED = "onejob demo: interrupted; everything is stopped\n"


def serves(process: int) -> bool:
    """Whether its event loop runs."""
    with suppress(OSError):
        return "anon_inode:[eventpoll]" in {
            os.readlink(descriptor) for descriptor in Path(f"/proc/{process}/fd").iterdir()
        }
    return False


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command with this temporary folder, in a group of its own as a shell starts it, when its emulator serves."""
    with subprocess.Popen(
        [ONEJOB, *arguments],
        env=os.environ | {"TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as command:
        deadline = time.monotonic() + WITHIN_SECONDS
        while not any(map(serves, processes_in(folder))):
            assert time.monotonic() < deadline
            assert command.poll() is None
            time.sleep(0.01)
        yield command


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes through Linux's /proc")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["story", "json"])
@pytest.mark.parametrize(
    ("stop", "code", "told"),
    [
        (signal.SIGINT, 130, "onejob demo: interrupted; everything is stopped\n"),
        (signal.SIGTERM, 143, "onejob demo: interrupted; everything is stopped\n"),
    ],
    ids=["SIGINT", "SIGTERM"],
)
def test_stopping_it_leaves_nothing_running(
    stop: signal.Signals, code: int, told: str, form: list[str], tmp_path: Path
) -> None:
    """The story is stopped when it has begun, `--json` before that."""
    with started(tmp_path, "demo", *form) as command:
        assert form or (command.stdout and any("127.0.0.1" in line for line in command.stdout))
        os.killpg(command.pid, stop)
        printed, complained = command.communicate(timeout=WITHIN_SECONDS)
    assert (command.returncode, complained) == (code, told)
    assert not form or printed == ""
    assert not processes_in(tmp_path)
    assert not list(tmp_path.glob("onejob-*"))


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_operation_that_still_runs_does_not_keep_it(stop: int, code: int, tmp_path: Path) -> None:
    endless = f"""
import threading, pathlib, operations
from domain.operation import Operation, Operations
def run(job, attempt):
    pathlib.Path({str(tmp_path / "runs")!r}).touch()
    threading.Event().wait()
operations.OPERATIONS = Operations(Operation("default", run))
from entrypoints.cli.app import main
main()
"""
    command = [sys.executable, "-c", endless, "demo", "--json"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + WITHIN_SECONDS
        while not (tmp_path / "runs").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(stop)
        printed, _ = process.communicate(timeout=5)
    assert (process.returncode, printed) == (code, b"")
    assert not processes_in(tmp_path)


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(step: object) -> None:
        raise KeyboardInterrupt

    def leave(status: int) -> NoReturn:
        raise typer.Exit(status)

    monkeypatch.setattr("entrypoints.cli.commands.demo.demo.run_demo", interrupted)
    monkeypatch.setattr("entrypoints.cli.commands.demo.command._leave", leave)
    result = onejob("demo")
    assert (result.exit_code, result.stderr) == (130, "onejob demo: interrupted; everything is stopped\n")


def test_the_command_ends_on_sigterm_as_on_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["onejob", "--version"])
    try:
        with pytest.raises(SystemExit, match="0"):
            main()
        with pytest.raises(SystemExit, match="143"):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


# The command.


def test_it_knows_its_version() -> None:
    result = onejob("--version")
    assert (result.exit_code, result.stdout) == (0, f"onejob {version('onejob')}\n")


def test_without_a_command_it_lists_them() -> None:
    result = onejob()
    assert result.exit_code == 2
    assert "demo" in result.output


def test_the_help_says_what_the_exit_status_means() -> None:
    text = " ".join(onejob("demo", "--help").stdout.split())
    _, _, told = text.partition("Exit status: 0 if what it shows is so")
    assert all(code in told for code in (" 1 if not", " 130 ", " 143 "))
