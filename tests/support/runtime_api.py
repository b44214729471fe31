"""Lambda's Runtime API, as its runtime client sees it, and the function's process under that client.

The bundle lies where `/var/task` is in Lambda and the runtime's packages where `/var/runtime` is; the interpreter has
nothing else (`-S`), so that what the bundle lacks is missed.
"""

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from io import BytesIO
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

from infra.bundle import Bundle

IN_THE_RUNTIME = (
    *("boto3", "botocore", "s3transfer", "jmespath", "urllib3", "python-dateutil", "six"),
    *("awslambdaric", "simplejson", "snapshot-restore-py"),
)
FUNCTION_SECONDS = 30
WITHIN_SECONDS = 20


@dataclass(frozen=True)
class Answer:
    """What the client posted: `response`, `error` or `init error`, when, and the body."""

    kind: str
    body: Any


@dataclass
class RuntimeApi:
    """`next` waits for an event; answers are kept in order."""

    events: "Queue[tuple[str, Any] | None]" = field(default_factory=Queue)
    answers: "Queue[Answer]" = field(default_factory=Queue)
    asked: "Queue[float]" = field(default_factory=Queue)

    def invoke(self, event: Any, request_id: str = "request-1") -> Answer:
        self.events.put((request_id, event))
        return self.answer()

    def answer(self) -> Answer:
        return self.answers.get(timeout=WITHIN_SECONDS)

    def until_ready(self) -> float:
        """When the client asked for an event."""
        return self.asked.get(timeout=WITHIN_SECONDS)


@dataclass(frozen=True)
class Sandbox:
    """A running function."""

    api: RuntimeApi
    log: Path
    cold_start_seconds: float

    def lines(self) -> list[dict[str, Any]]:
        """What the function printed as JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def serving(api: RuntimeApi) -> Iterator[str]:
    """Host and port of a server of this API."""
    server = _Server(("127.0.0.1", 0), _handler(api))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        api.events.put(None)
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def function(
    bundle: Bundle, folder: Path, environment: Mapping[str, str], *, handler: str = "entrypoints.sqs_worker.handler"
) -> Iterator[tuple[RuntimeApi, Path]]:
    """The zipped bundle, unpacked and started as Lambda starts it. Its standard output goes to the file."""
    task, runtime = folder / "task", folder / "runtime"
    with zipfile.ZipFile(BytesIO(bundle.zipped())) as archive:
        archive.extractall(task)
    _link_runtime(runtime)
    api, log = RuntimeApi(), folder / "log"
    with serving(api) as address, log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-S", "-m", "awslambdaric", handler],
            cwd=task,
            env={
                "PATH": os.defpath,
                "PYTHONPATH": f"{task}:{runtime}",
                "AWS_LAMBDA_RUNTIME_API": address,
                "AWS_LAMBDA_FUNCTION_NAME": "worker",
                "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
                "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
                "LAMBDA_TASK_ROOT": str(task),
                **environment,
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield api, log
        finally:
            process.kill()
            process.wait()


@contextmanager
def sandbox(bundle: Bundle, folder: Path, environment: Mapping[str, str], **options: str) -> Iterator[Sandbox]:
    """A function that has started and asks for its first event."""
    began = time.monotonic()
    with function(bundle, folder, environment, **options) as (api, log):
        try:
            ready = api.until_ready()
        except Empty:
            raise AssertionError(log.read_text()) from None
        yield Sandbox(api, log, ready - began)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A function that is killed leaves its connection half-way; whatever else goes wrong, its test misses."""


def _link_runtime(folder: Path) -> None:
    folder.mkdir()
    for name in IN_THE_RUNTIME:
        for path in {Path(file.parts[0]) for file in distribution(name).files or () if ".." not in file.parts}:
            target = Path(str(distribution(name).locate_file(path)))
            if not (folder / path).exists() and path.name != "__pycache__":
                (folder / path).symlink_to(target)


def _handler(api: RuntimeApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            assert self.path == "/2018-06-01/runtime/invocation/next"
            api.asked.put(time.monotonic())
            event = api.events.get()
            if event is None:
                self.close_connection = True
                return
            request_id, body = event
            deadline = round((time.time() + FUNCTION_SECONDS) * 1000)
            self._answer(
                200,
                json.dumps(body).encode(),
                {
                    "Lambda-Runtime-Aws-Request-Id": request_id,
                    "Lambda-Runtime-Deadline-Ms": str(deadline),
                    "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:us-east-1:000000000000:function:worker",
                    "Lambda-Runtime-Trace-Id": "Root=1-0-0",
                },
            )

        def do_POST(self) -> None:
            kind = "init error" if self.path.endswith("/init/error") else self.path.rpartition("/")[2]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(202, b"{}", {})
            api.answers.put(Answer(kind, json.loads(body)))

        def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
