"""`onejob work` as a user meets it: told by signals, looked at over HTTP, and refused what would forget."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.job_factory import JobFactory
from domain.operation import Operations
from entrypoints.cli.app import app
from entrypoints.cli.commands.work.work import Signals, Work, WorkOptions, work_off
from entrypoints.emulator.launcher import Emulator, only_environment
from tests.support.aws import TABLE, emulated, item
from tests.support.clock import FakeClock
from tests.support.polling import until
from tests.support.sqs_aws import make_queues

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
SETTINGS = {"IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": TABLE, "IDEMPOTENCY_NAMESPACE": "test"}
OPERATIONS = """
import threading
from pathlib import Path

def waits(job, attempt):
    with open("began", "a") as file:
        file.write(f"{job.job_id}\\n")
    while job.payload.get("for") and not Path(job.payload["for"]).exists():
        threading.Event().wait(0.01)
    return job.job_id
"""


@pytest.fixture
def aws() -> Iterator[Emulator]:
    with emulated() as running:
        yield running


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OPERATIONS)
    yield
    sys.modules.pop("mine", None)
    sys.path[:] = [one for one in sys.path if one != str(tmp_path)]


class Driven:
    """The command in this process and thread, and what is done meanwhile in another: in the end, SIGTERM comes."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._lines: list[dict[str, Any]] = []
        self._errors: list[BaseException] = []

    def run(self, drive: Callable[[], object], url: str, *, by_signal: bool = True, **options: Any) -> int:
        told: dict[str, Any] = {
            "queue_url": url,
            "operation": "mine:waits",
            "name": None,
            "lease": timedelta(seconds=60),
            "longest": timedelta(hours=11),
            "single_host": False,
            "shutdown": timedelta(seconds=10),
            "poll": timedelta(),
            "health_port": 0,
            "health_host": "127.0.0.1",
        }

        def driver() -> None:
            try:
                drive()
            except BaseException as error:
                self._errors.append(error)
            if by_signal:
                os.kill(os.getpid(), signal.SIGTERM)

        thread = Thread(target=driver)
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # until the command has its own
        try:
            thread.start()
            status = work_off(WorkOptions(**told | options))
        finally:
            thread.join()
            signal.signal(signal.SIGTERM, before)
        if self._errors:
            raise self._errors[0]
        return status

    def lines(self) -> list[dict[str, Any]]:
        self._lines += [json.loads(line) for line in self._capsys.readouterr().out.splitlines() if line[:1] == "{"]
        return self._lines

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line.get("event") == name]

    def until_event(self, name: str) -> dict[str, Any]:
        until(lambda: bool(self.events(name)), self.lines)
        return self.events(name)[0]

    def health(self) -> tuple[int, int]:
        port = self.until_event("health_port_open")["port"]
        return answered(port, "/healthz"), answered(port, "/readyz")


def answered(port: int, path: str) -> int:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def began() -> list[str]:
    return Path("began").read_text().splitlines() if Path("began").exists() else []


def key(job_id: str) -> object:
    return JobFactory("test", Operations(), "waits").job({"job_id": job_id}).key


@pytest.mark.usefixtures("aws")
def test_a_stop_finishes_what_runs_receives_no_more_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    queues = make_queues()
    for name, value in (SETTINGS | {"DEAD_LETTER_QUEUE_URL": queues.dead_letter_url}).items():
        monkeypatch.setenv(name, value)
    driven = Driven(capsys)

    def drive() -> None:
        queues.send('{"job_id":"1","for":"go"}', "nonsense")
        until(lambda: began() == ["1"])
        until(lambda: bool(driven.events("job_rejected")))
        assert driven.health() == (200, 200)
        Thread(target=stopping).start()

    def stopping() -> None:
        driven.until_event("worker_stopping")
        queues.send('{"job_id":"later"}')
        states.append(driven.health())
        Path("go").touch()

    states: list[tuple[int, int]] = []
    assert driven.run(drive, queues.url) == 0
    assert states == [(200, 503)]
    (started,) = driven.events("worker_started")
    assert (started["queue"], started["backend"], started["lease_seconds"]) == (queues.arn, "dynamodb", 60)
    assert started["dead_letters"] == queues.dead_letter_url
    (stopping_line,) = driven.events("worker_stopping")
    assert stopping_line["signal"] == "SIGTERM"
    assert [line["job_id"] for line in driven.events("business_operation_executed")] == ["1"]
    assert driven.events("worker_stopped")[0]["left_running"] == 0
    assert sum(sum(line.get("JobsExecuted", [])) for line in driven.lines()) == 1, "metrics are flushed"
    assert queues.counts() == (1, 0), "nothing more was received, or it was given back"
    assert queues.counts(queues.dead_letter_url) == (1, 0)
    assert item(key("1"))["status"] == "COMPLETED"


def test_an_endpoint_that_does_not_answer_is_waited_for_until_a_signal_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    driven = Driven(capsys)
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_DEFAULT_REGION": "eu-west-1"}
    keys = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_CONFIG_FILE": os.devnull}

    def drive() -> None:
        failed = driven.until_event("receive_failed")
        assert failed["cause"] == "SQS GetQueueAttributes: EndpointConnectionError"
        assert 0.5 <= failed["again_in_seconds"] <= 1
        assert driven.health() == (200, 503)

    with only_environment(nowhere | keys | SETTINGS):
        assert driven.run(drive, URL) == 0
    assert not driven.events("worker_started")


@pytest.mark.usefixtures("aws")
def test_a_file_of_records_is_closed_in_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[object] = []
    close = SQLiteIdempotencyStore.close

    def recorded(store: SQLiteIdempotencyStore) -> None:
        closed.append(store)
        close(store)

    monkeypatch.setattr(SQLiteIdempotencyStore, "close", recorded)
    monkeypatch.setenv("IDEMPOTENCY_BACKEND", "sqlite")
    driven = Driven(capsys)
    driven.run(lambda: driven.until_event("worker_started"), make_queues().url, single_host=True)
    assert len(closed) == 1
    assert Path(".onejob/records.sqlite").exists()


@pytest.mark.parametrize(
    ("seconds", "stopping", "healthy", "alive"),
    [(74, False, True, True), (75, False, True, False), (75, True, True, True), (1, False, False, False)],
)
def test_a_receive_loop_that_stands_still_is_not_alive_unless_it_was_told_to_stop(
    seconds: float, stopping: bool, healthy: bool, alive: bool
) -> None:
    clock = FakeClock()
    worker = SimpleNamespace(moved_at=clock.monotonic(), stopping=stopping, clock=clock, is_healthy=lambda: healthy)
    options = SimpleNamespace(poll=timedelta(seconds=20))
    clock.advance(seconds=seconds)
    clock.step(hours=5)
    work: Any = Work(SimpleNamespace(worker=worker), options, Signals())  # type: ignore[arg-type]
    assert work.is_alive() is alive


def test_an_output_that_is_closed_stops_the_worker(
    aws: Emulator, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_self: object) -> None:
        raise BrokenPipeError

    def leave(status: int) -> None:
        raise SystemExit(status)

    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("adapters.telemetry.PowertoolsTelemetry.flush", closed)
    monkeypatch.setattr("entrypoints.cli.commands.work.work.FLUSH_SECONDS", 0.01)
    monkeypatch.setattr("os._exit", leave)
    with pytest.raises(SystemExit, match="1"):
        Driven(capsys).run(lambda: None, make_queues().url, by_signal=False)


def test_what_is_cut_off_is_named_and_a_second_signal_leaves_at_once(aws: Emulator) -> None:
    queues = make_queues()
    command = [sys.executable, "-c", "from entrypoints.cli.app import main; main()", "work", "--queue-url", queues.url]
    options = ["--operation", "mine:waits", "--poll-seconds", "1", "--shutdown-seconds"]
    environment = os.environ | SETTINGS | {"JOB_CONCURRENCY": "1"}
    workers = []
    for name, seconds in (("hurried", "0"), ("patient", "60")):
        with Path(name).open("w") as log:
            workers.append(subprocess.Popen([*command, *options, seconds], stdout=log, stderr=log, env=environment))

    def said(name: str, event: str) -> list[str]:
        return [line for line in Path(name).read_text().splitlines() if f'"event":"{event}"' in line]

    def what() -> str:
        return Path("hurried").read_text() + Path("patient").read_text()

    try:
        until(lambda: bool(said("hurried", "worker_started") and said("patient", "worker_started")), what)
        queues.send('{"job_id":"1","for":"never"}', '{"job_id":"2","for":"never"}')
        until(lambda: sorted(began()) == ["1", "2"], what)
        workers[0].send_signal(signal.SIGINT)
        assert workers[0].wait(10) == 1
        assert len(said("hurried", "left_running")) == 1
        workers[1].send_signal(signal.SIGTERM)
        until(lambda: bool(said("patient", "worker_stopping")), what)
        workers[1].send_signal(signal.SIGTERM)
        assert workers[1].wait(10) == 143
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert queues.counts() == (0, 2)
    assert {item(key(one))["status"] for one in ("1", "2")} == {"INPROGRESS"}


def work(*options: str, **settings: str) -> Result:
    base = {"IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": TABLE}
    return CliRunner().invoke(app, ["work", *options], env=base | settings)


def errors(result: Result) -> str:
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr


@pytest.mark.usefixtures("aws")
def test_a_queue_that_does_not_exist_is_an_error_that_names_the_option() -> None:
    url = make_queues().url.replace("/jobs", "/no-such-queue")
    told = errors(work("--queue-url", url))
    assert f"onejob work: --queue-url {url}: SQS GetQueueAttributes: " in told
    assert "permissions" in told


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"IDEMPOTENCY_BACKEND": ""}, "IDEMPOTENCY_BACKEND is not set: say where records live, one of dynamodb"),
        ({"IDEMPOTENCY_BACKEND": "memory"}, "IDEMPOTENCY_BACKEND=memory forgets with the process"),
        ({"IDEMPOTENCY_BACKEND": "sqlite"}, "say --single-host if there are none"),
        ({"IDEMPOTENCY_TABLE": ""}, "IDEMPOTENCY_TABLE is not set"),
        ({"DEAD_LETTER_QUEUE_URL": URL}, "DEAD_LETTER_QUEUE_URL is the queue that is worked off"),
        ({"AWS_DEFAULT_REGION": ""}, "Set AWS_DEFAULT_REGION"),
        ({}, f"--queue-url {URL}: is in eu-west-1, but SQS is asked in us-east-1"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "is in eu-west-1, but SQS is asked in us-east-1"),
        (
            {"DEAD_LETTER_QUEUE_URL": f"{URL}-dead".replace("eu-", "us-"), "AWS_DEFAULT_REGION": "eu-west-1"},
            "jobs-dead: is in us-west-1, but SQS is asked in eu-west-1",
        ),
    ],
)
def test_what_cannot_work_is_refused_and_the_setting_is_named(settings: dict[str, str], expected: str) -> None:
    with only_environment({"AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull}):
        assert expected in errors(work("--queue-url", URL, **settings))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--queue-url", "jobs"], "--queue-url jobs: expected one like https://sqs.REGION"),
        (["--queue-url", URL, "--operation", "nothing"], "--operation nothing: not in OPERATIONS of operations"),
        (["--queue-url", URL, "--operation", "nothing:such"], "ModuleNotFoundError"),
        (["--queue-url", URL, "--lease", "1"], "--lease"),
        (["--queue-url", URL, "--max-seconds", "0"], "--max-seconds"),
        (["--queue-url", URL, "--max-seconds", "43200"], "--max-seconds"),
        ([], "--queue-url"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: list[str], expected: str) -> None:
    with only_environment({"AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull}):
        assert expected in errors(work(*options))


@pytest.mark.usefixtures("aws")
def test_a_health_port_that_is_taken_is_named() -> None:
    queues = make_queues()
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        assert f"--health-port {port} on 127.0.0.1" in errors(work("--queue-url", queues.url, "--health-port", port))
