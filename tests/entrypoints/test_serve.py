"""`onejob serve` as a process of its own, with plain clients: a browser's page, a program, schemathesis."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from entrypoints.cli.app import app
from entrypoints.emulator.launcher import only_environment

ROOT = Path(__file__).parents[2]
ANSWERS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance"
)
REQUESTS = "unsupported_method,negative_data_rejection,missing_required_header"
SEED = os.environ.get("ONEJOB_SEED", "1")
EXAMPLES = int(os.environ.get("ONEJOB_HTTP_EXAMPLES", "10"))
COMMAND = """
import signal
from entrypoints.cli.app import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
main()
"""
KEYED = {"Content-Type": "application/json", "Idempotency-Key": '"job-001"'}
SLOW = """
import time
from pathlib import Path

def slow(job, attempt):
    Path("started").touch()
    while not Path("go").exists():
        time.sleep(0.02)
    Path("ran").touch()
    return attempt.number
"""


class Served:
    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process = process
        self.port = port

    def ask(
        self, method: str, path: str, body: str | bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, dict[str, str], Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        is_json = answer.headers.get_content_type().endswith("json")
        return answer.status, dict(answer.headers), json.loads(text) if is_json and text else text

    def post(self, body: str = "{}", **headers: str) -> tuple[int, dict[str, str], Any]:
        return self.ask("POST", "/jobs", body, KEYED | {n.replace("_", "-"): value for n, value in headers.items()})


@contextmanager
def serving(folder: Path, *options: str, code: str = COMMAND, **environment: str) -> Iterator[Served]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "IDEMPOTENCY_"))}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "serve", "--port", "0", *options],
            cwd=folder,
            env=kept | {"PYTHONPATH": str(ROOT / "src")} | environment,
            stdout=log,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        assert process.stderr is not None
        told = process.stderr.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/jobs ", told)
        assert found, told + process.stderr.read()
        yield Served(process, int(found[1]))
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), "--store", "memory") as running:
        yield running


def test_a_job_runs_once_and_its_answer_comes_again(served: Served) -> None:
    status, headers, answer = served.post('{"amount":10}')
    assert (status, answer["job_id"]) == (200, "job-001")
    assert "Idempotency-Replayed" not in headers
    again, headers, same = served.post('{"amount":10}')
    assert (again, same, headers["Idempotency-Replayed"]) == (status, answer, "true")
    assert served.post('{"amount":11}')[0] == 422
    assert served.ask("GET", "/jobs/job-001")[2]["answer"] == answer
    assert served.ask("HEAD", "/jobs")[:1] + served.ask("HEAD", "/jobs")[2:] == (405, "")
    assert served.ask("PROPFIND", "/jobs")[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Host": "evil.example"},
        {"Host": "localhost"},
    ],
    ids=str,
)
def test_a_page_in_a_browser_cannot_call(served: Served, headers: dict[str, str]) -> None:
    status, told, problem = served.post(**headers)
    assert (status, problem["reason"]) == (403, "not_local")
    assert not [name for name in told if name.lower().startswith("access-control")]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "7000000"}, 413),
        ({"Content-Length": "9" * 5000}, 413),
        ({"Content-Length": "-1"}, 400),
        ({"Transfer-Encoding": "chunked"}, 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bodies_without_a_sound_length_are_not_read(served: Served, headers: dict[str, str], status: int) -> None:
    assert served.ask("POST", "/jobs", None, {**KEYED, **headers})[0] == status


def test_a_body_that_was_cut_off_is_not_run(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        head = f"POST /jobs HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Length: 100\r\n"
        fields = "".join(f"{name}: {value}\r\n" for name, value in (KEYED | {"Idempotency-Key": '"cut"'}).items())
        connection.sendall(f"{head}{fields}\r\n{{}}".encode())
        connection.shutdown(socket.SHUT_WR)
        answer = connection.makefile("rb").read()
    assert b" 400 " in answer.partition(b"\r\n")[0]
    assert served.ask("GET", "/jobs/cut")[0] == 404


def test_bodies_are_bytes(served: Served) -> None:
    assert served.ask("POST", "/jobs", b'{"a":"\xff"}', KEYED)[2]["reason"] == "not_utf8"
    assert served.ask("POST", "/jobs", b" " * 300_000, KEYED)[0] == 413


def test_the_first_interrupt_finishes_what_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SLOW)
    with serving(tmp_path, "--operation", "mine:slow") as running:
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(running.post()))
        caller.start()
        _until(tmp_path / "started")
        assert running.post()[0] == 409
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr is not None
        assert running.process.stderr.readline() == "stopping: what runs is finished; Ctrl-C leaves at once\n"
        (tmp_path / "go").touch()
        caller.join(20)
        assert [(status, answer) for status, _, answer in answers] == [(200, 1)]
        assert running.process.wait(20) == 130
        assert running.process.stderr.read() == ""
    with serving(tmp_path, "--operation", "mine:slow") as running:  # what is done is remembered
        status, headers, answer = running.post()
        assert (status, headers["Idempotency-Replayed"], answer) == (200, "true", 1)
        running.process.terminate()
        assert running.process.wait(20) == 143


def test_the_second_interrupt_leaves_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SLOW)
    with serving(tmp_path, "--operation", "mine:slow") as running:
        caller = threading.Thread(target=_cut_off, args=(running,))
        caller.start()
        _until(tmp_path / "started")
        running.process.send_signal(signal.SIGINT)
        assert running.process.stderr is not None
        while "stopping" not in running.process.stderr.readline():  # two signals that wait together are one
            assert running.process.poll() is None
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(20) == 130
        caller.join(20)
    assert not (tmp_path / "ran").exists()


def _cut_off(running: Served) -> None:
    with suppress(OSError, http.client.HTTPException):
        running.post()


def _until(path: Path) -> None:
    deadline = threading.Event()
    for _ in range(1000):
        if path.exists():
            return
        deadline.wait(0.02)
    raise AssertionError(f"{path.name} never came")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--operation", "no"), "--operation no: not in OPERATIONS of operations"),
        (("--namespace", "a b"), "--namespace a b: expected"),
        (("--store", "dynamodb"), "IDEMPOTENCY_TABLE is not set"),
        (("--db", "/dev/null/records"), "/dev/null/records"),
    ],
)
def test_unusable_arguments_are_named(
    options: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("IDEMPOTENCY_TABLE", "HTTP_ALLOW_ANONYMOUS", "LEASE_GRACE_SECONDS", "POWERTOOLS_METRICS_DISABLED"):
        monkeypatch.setenv(name, "")
    done = CliRunner().invoke(app, ["serve", "--port", "0", *options])
    assert done.exit_code == 2
    assert told in done.stderr


def test_a_store_that_cannot_be_had_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    for name in ("HTTP_ALLOW_ANONYMOUS", "LEASE_GRACE_SECONDS", "POWERTOOLS_METRICS_DISABLED"):
        monkeypatch.setenv(name, "")
    with only_environment({"IDEMPOTENCY_TABLE": "records", "AWS_CONFIG_FILE": "/dev/null"}):
        done = CliRunner().invoke(app, ["serve", "--port", "0", "--store", "dynamodb"])
    assert (done.exit_code, "--store dynamodb: NoRegionError" in done.stderr) == (2, True)


def test_a_port_that_is_taken_is_named(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", "--port", str(served.port), "--store", "memory"])
    assert done.exit_code == 1
    assert f"--port {served.port}: Address already in use" in done.stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--checks", f"{ANSWERS},{REQUESTS}", "--phases", "coverage,fuzzing"),
        ("--checks", ANSWERS, "--phases", "coverage", "--include-path", "/jobs", "--header", 'Idempotency-Key: "one"'),
    ],
    ids=["keys of its own", "one good key, for all bodies"],
)
def test_no_request_made_from_the_document_finds_an_error_of_the_server(
    served: Served, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Short here; `just http-fuzz` asks for longer, and shows what was asked."""
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        f"http://127.0.0.1:{served.port}/openapi.json",
    ]
    size = ["--max-examples", str(EXAMPLES), "--seed", SEED, "--no-color"]
    found = subprocess.run([*command, *options, *size], cwd=tmp_path, capture_output=True, text=True)
    print(found.stdout)
    assert found.returncode == 0, found.stdout + found.stderr
    (generated,) = re.findall(r"(\d+) generated", found.stdout)
    assert int(generated) >= min(EXAMPLES, 50)
    assert served.ask("GET", "/openapi.json")[0] == 200


BROKEN = """
import sys
import entrypoints.cli.commands.serve.serve as serve

def broken(event, context):
    raise {kind}("4111-1111")

serve.make_handler = lambda *_: broken
"""


@pytest.mark.parametrize("kind", ["ValueError", "KeyboardInterrupt", "GeneratorExit", "SystemExit"])
def test_a_handler_that_breaks_is_answered_and_its_text_is_told_nowhere(tmp_path: Path, kind: str) -> None:
    with serving(tmp_path, code=BROKEN.format(kind=kind) + COMMAND) as served:
        status, _, body = served.post()
        assert (status, body["reason"]) == (500, "unexpected")
        assert served.post()[0] == 500
        served.process.kill()
        assert served.process.stderr is not None
        log = (tmp_path / "log").read_text() + served.process.stderr.read()
    assert "4111-1111" not in log
    assert f"onejob: a request failed: {kind} < " in log or kind == "SystemExit"
