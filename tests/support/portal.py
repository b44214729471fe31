"""What stands where AWS should: a server that answers everything with 200, or a proxy that loses a part of answers."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Final
from urllib.parse import urlsplit

type Change = Callable[[str, bytes], bytes | None]
"""Of the request's name and the answer's body; None passes it on as it is."""

HTML: Final = b"<html><body>Log in to use this network</body></html>"
BODIES: Final = {
    "html": HTML,
    "{}": b"{}",
    "empty": b"",
    "truncated": b'{"Attributes": {"id": {"S"',
    "list": b"[]",
    "null": b"null",
    "text": b'"ok"',
}
_HOP: Final = ("connection", "transfer-encoding", "content-length", "date", "server")


class Portal:
    """`change` may be set at any time. Without `upstream` the headers are those of a web server."""

    def __init__(self, change: Change, upstream: str | None, *, with_id: bool) -> None:
        self.change = change
        self.requests: Counter[str] = Counter()
        self.is_on = True
        self.upstream = upstream
        self.with_id = with_id
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"portal": self}))
        self.server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


class _Handler(BaseHTTPRequestHandler):
    portal: Portal
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        portal, body = self.portal, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        portal.requests[name] += 1
        status, headers, content = 200, {"Content-Type": "text/html"}, b""
        if portal.upstream is not None:
            status, headers, content = self._forward(portal.upstream, body)
        elif portal.with_id:
            headers["x-amzn-RequestId"] = "00000000-0000-0000-0000-000000000000"
        changed = portal.change(name, content) if portal.is_on else None
        self.send_response(status)
        for header, value in headers.items():
            self.send_header(header, value)
        content = content if changed is None else changed
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST  # noqa: N815

    def _forward(self, upstream: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        connection = HTTPConnection(urlsplit(upstream).netloc, timeout=10)
        try:
            connection.request(self.command, self.path, body, dict(self.headers.items()))
            answer = connection.getresponse()
            headers = {key: value for key, value in answer.getheaders() if key.lower() not in _HOP}
            return answer.status, headers, answer.read()
        finally:
            connection.close()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Silent."""


@contextmanager
def portal(change: Change | bytes, *, upstream: str | None = None, with_id: bool = False) -> Iterator[Portal]:
    """Serve until the end; bytes answer everything."""
    fixed = change if isinstance(change, bytes) else b""
    made = Portal((lambda _name, _body: fixed) if isinstance(change, bytes) else change, upstream, with_id=with_id)
    thread = Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join()
