"""A web server on this machine that hands each request to a handler as a function URL would."""

import time
from base64 import b64encode
from datetime import timedelta
from threading import current_thread, main_thread
from typing import Any, Final
from uuid import uuid4

from adapters.http.problems import BAD_REQUEST, FAILED, NO_IDENTITY, TOO_LARGE, HttpProblemError, problem_response
from entrypoints.bounded_server import BoundedRequest, BoundedServer
from entrypoints.edge import tell
from entrypoints.http_api import Handler

HOST: Final = "127.0.0.1"
LONGEST_REQUEST: Final = 6 * 1024 * 1024
"""Lambda takes no more."""
SLOWEST_CLIENT_SECONDS: Final = 10
"""So long a request may take to arrive, all of it."""
MOST_CONNECTIONS: Final = 64


class HttpServer(BoundedServer):
    """On the loopback interface, each request in a thread. Raises `OSError` where the port cannot be had."""

    daemon_threads = False  # what runs is finished
    handle: Handler
    timeout_ms: int

    def __init__(self, port: int, handle: Handler, timeout: timedelta) -> None:
        super().__init__((HOST, port), ServedRequest, MOST_CONNECTIONS)
        self.handle = handle
        self.timeout_ms = int(timeout.total_seconds() * 1000)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_port}"


class ServedRequest(BoundedRequest):
    """One request, as a function URL would hand it to Lambda; the connection ends with it."""

    server: HttpServer
    seconds = SLOWEST_CLIENT_SECONDS

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        try:
            self._refuse_others_pages()
            event = self._event()
            if not self.has_arrived():
                return
            answer = self.server.handle(event, LocalContext(self.server.timeout_ms))
        except HttpProblemError as problem:
            answer = _answer_of(problem)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
                raise
            tell("a request failed", error)
            answer = _answer_of(HttpProblemError(FAILED, "unexpected"))
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
        try:
            body = self.rfile.read(int(length))
        except OSError:  # too slow, or gone
            raise HttpProblemError(BAD_REQUEST, "cut_off", "the body did not arrive in time") from None
        if len(body) < int(length):
            raise HttpProblemError(BAD_REQUEST, "cut_off", "the body ended before its Content-Length")
        return body


class LocalContext:
    """A Lambda context: the time-out counts from now."""

    def __init__(self, timeout_ms: int) -> None:
        self.aws_request_id = uuid4().hex
        self._end = time.monotonic() + timeout_ms / 1000

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1000))


def _answer_of(problem: HttpProblemError) -> dict[str, Any]:
    """As the handler answers it."""
    response = problem_response(problem)
    headers = {"Content-Type": response.media_type, **response.headers}
    return {"statusCode": response.status, "headers": headers, "body": response.body}
