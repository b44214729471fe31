"""`onejob serve`, put together: a web server on this machine that calls the Lambda handler. For development."""

import os
import sys
import time
from base64 import b64encode
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import typer

from adapters.http.problems import BAD_REQUEST, NO_IDENTITY, TOO_LARGE, HttpProblemError, problem_reply
from adapters.sqlite.database import UnusableDatabaseError
from adapters.sqlite.store import SQLiteIdempotencyStore
from domain.identity import NAME
from domain.job_factory import JobFactory
from entrypoints.cli.run_operations import chosen_operations
from entrypoints.cli.run_options import UnusableOptionError
from entrypoints.container import Container
from entrypoints.http_api import Handler, make_handler
from entrypoints.settings import Backend, SettingError, Settings

HOST: Final = "127.0.0.1"
LONGEST_REQUEST: Final = 6 * 1024 * 1024
"""Lambda takes no more."""
SLOWEST_CLIENT_SECONDS: Final = 10
UNUSABLE: Final = 2
INTERRUPTED: Final = 130

AS_DEVELOPERS_WANT_IT: Final = {
    "HTTP_ALLOW_ANONYMOUS": "true",
    "LEASE_GRACE_SECONDS": "0",
    "POWERTOOLS_METRICS_DISABLED": "true",
}
"""Unless the environment says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What the command line says."""

    port: int
    operation: str | None
    name: str | None
    store: Backend
    db: Path
    namespace: str
    timeout: timedelta


def serve_door(options: ServeOptions) -> int:
    """Serve until a signal, and answer the exit status. Every foreseeable error is a line on standard error."""
    try:
        with ExitStack() as stack:
            server = DoorServer(options.port, _handler(options, stack), options.timeout)
            say(f"{server.url}/jobs   (POST; what may be asked: {server.url}/openapi.json; Ctrl-C stops)")
            return _until_stopped(server)
    except (SettingError, UnusableDatabaseError, UnusableOptionError) as error:
        say(f"onejob serve: {error}")
        return UNUSABLE
    except OSError as error:
        say(f"onejob serve: --port {options.port}: {error.strerror}")
        return 1


class DoorServer(ThreadingHTTPServer):
    """On the loopback interface, a thread a request. Raises `OSError` where the port cannot be had."""

    daemon_threads = False  # what runs is finished
    handle: Handler
    timeout_ms: int

    def __init__(self, port: int, handle: Handler, timeout: timedelta) -> None:
        super().__init__((HOST, port), DoorRequest)
        self.handle = handle
        self.timeout_ms = int(timeout.total_seconds() * 1000)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}"


class DoorRequest(BaseHTTPRequestHandler):
    """One request, as a function URL would hand it to Lambda; the connection ends with it."""

    server: DoorServer
    timeout = SLOWEST_CLIENT_SECONDS
    server_version = "onejob"
    sys_version = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """The handler logs."""

    def _answer(self) -> None:
        try:
            self._refuse_others_pages()
            answer = self.server.handle(self._event(), LocalContext(self.server.timeout_ms))
        except HttpProblemError as problem:
            reply = problem_reply(problem)
            headers = {"Content-Type": reply.media_type, **reply.headers}
            answer = {"statusCode": reply.status, "headers": headers, "body": reply.body}
        body = answer["body"].encode()
        self.send_response(answer["statusCode"])
        for name, value in answer["headers"].items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse_others_pages(self) -> None:
        """A page in a browser on this machine may not send jobs, by whatever name it finds this server."""
        host = self.headers.get("Host", "")
        known = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        from_a_page = "Origin" in self.headers or self.headers.get("Sec-Fetch-Site", "none") != "none"
        if host not in known or from_a_page:
            raise HttpProblemError(NO_IDENTITY, "not_local", "only programs on this machine may call, by its own name")

    def _event(self) -> dict[str, Any]:
        path, _, query = self.path.partition("?")
        headers: dict[str, str] = {}
        for name, value in self.headers.items():
            headers[name.lower()] = f"{headers[name.lower()]},{value}" if name.lower() in headers else value
        return {
            "version": "2.0",
            "routeKey": "$default",
            "rawPath": path,
            "rawQueryString": query,
            "headers": headers,
            "requestContext": {
                "http": {"method": self.command, "path": path, "protocol": self.request_version, "sourceIp": HOST},
                "requestId": uuid4().hex,
                "stage": "$default",
            },
            "body": b64encode(self._body()).decode(),
            "isBase64Encoded": True,
        }

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not (length.isascii() and length.isdecimal()):
            raise HttpProblemError(BAD_REQUEST, "no_length", "Content-Length: expected number of bytes")
        if len(length) > len(str(LONGEST_REQUEST)) or int(length) > LONGEST_REQUEST:
            raise HttpProblemError(TOO_LARGE)
        return self.rfile.read(int(length))


class LocalContext:
    """A Lambda context: the time-out counts from now."""

    def __init__(self, timeout_ms: int) -> None:
        self.aws_request_id = uuid4().hex
        self._end = time.monotonic() + timeout_ms / 1000

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1000))


def _handler(options: ServeOptions, stack: ExitStack) -> Handler:
    if not NAME.fullmatch(options.namespace):
        raise UnusableOptionError(f"--namespace {options.namespace}: expected 1 to 64 of A-Z a-z 0-9 _ -")
    operations, default_operation = chosen_operations(options.operation, options.name)
    for name, value in AS_DEVELOPERS_WANT_IT.items():
        os.environ.setdefault(name, value)
    told = {
        "IDEMPOTENCY_BACKEND": options.store,
        "IDEMPOTENCY_DB": str(options.db),
        "IDEMPOTENCY_NAMESPACE": options.namespace,
    }
    container = Container()
    container.settings.override(Settings.from_environment({**os.environ, **told}))
    container.job_factory.override(JobFactory(options.namespace, operations, default_operation))
    container.heartbeat.override(container.renewing_heartbeat)  # nobody ends what outlives its time-out
    try:
        store = container.store()
    except (SettingError, UnusableDatabaseError):
        raise
    except Exception as error:
        raise UnusableOptionError(f"--store {options.store}: {type(error).__name__}: {error}") from error
    if isinstance(store, SQLiteIdempotencyStore):
        stack.callback(store.close)
    return make_handler(operations, container)


def say(text: str) -> None:
    """A line on standard error."""
    typer.echo(text, err=True)


def _until_stopped(server: DoorServer) -> int:
    try:
        server.serve_forever(poll_interval=0.1)
    except (KeyboardInterrupt, SystemExit) as stopped:
        status = stopped.code if isinstance(stopped, SystemExit) and isinstance(stopped.code, int) else INTERRUPTED
        try:
            say("stopping: what runs is finished; Ctrl-C leaves at once")
            server.server_close()
        except (KeyboardInterrupt, SystemExit):
            sys.stdout.flush()
            os._exit(status)
        return status
    return 0
