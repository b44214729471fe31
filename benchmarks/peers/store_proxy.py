"""Between a worker and DynamoDB: cuts, throttles, or loses the answer to what landed, whatever SDK a peer uses.

An operation may start a fault itself, by `POST /_fault` with `[mode, seconds or number]`: right after its effect, say.
"""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Literal

type Mode = Literal["cut", "throttle", "lose"]
"""For so many seconds connections are cut or requests throttled; the answers to so many writes are lost."""

READS = frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "DescribeTable"})
NOT_FORWARDED = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})


class StoreProxy:
    """Serves until `close`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._until: dict[str, float] = {}
        self._to_lose = 0
        self._paused = False
        self._lock = Lock()
        self._server = _Server(("127.0.0.1", 0), _handler_for(self))
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self, mode: Mode, amount: float) -> None:
        with self._lock:
            if mode == "lose":
                self._to_lose = int(amount)
            else:
                self._until[mode] = time.monotonic() + amount

    def is_on(self, mode: Mode) -> bool:
        return not self._paused and time.monotonic() < self._until.get(mode, 0)

    def loses(self, operation: str) -> bool:
        """Whether this answer is one to lose; counts it."""
        with self._lock:
            is_lost = not self._paused and operation not in READS and self._to_lose > 0
            self._to_lose -= is_lost
            return is_lost

    @contextmanager
    def without_faults(self) -> Iterator[None]:
        """Time passes all the same."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A worker that was killed does not read its answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _handler_for(proxy: StoreProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path == "/_fault":
                proxy.start(*json.loads(body))
                self._answer(200, {}, b"")
                return
            operation = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
            if proxy.is_on("cut"):
                self._cut()
            elif proxy.is_on("throttle"):
                error = {"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}
                self._answer(400, {"Content-Type": "application/x-amz-json-1.0"}, json.dumps(error).encode())
            else:
                answer = self._forward(body)
                if proxy.loses(operation):
                    self._cut()
                else:
                    self._answer(*answer)

        def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            upstream = HTTPConnection("127.0.0.1", proxy.port, timeout=10)
            headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
            upstream.request("POST", self.path, body, headers)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            return answer.status, {k: v for k, v in answer.getheaders() if k.lower() not in NOT_FORWARDED}, content

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, *arguments: Any) -> None:
            pass

    return Handler
