"""Slow clients, however many, take neither the descriptors nor the time of a process that listens."""

import errno
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import HTTPServer
from pathlib import Path
from threading import Event, Thread, active_count
from typing import Any

import pytest

from entrypoints import bounded_server
from entrypoints.bounded_server import BoundedRequest, BoundedServer
from tests.support.polling import until

CLIENTS = 130
ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("bounded_child.py")


@pytest.mark.parametrize(("kind", "path"), [("health", "/healthz"), ("serve", "/jobs")])
@pytest.mark.parametrize("sent", [b"", b"GET /hea", b"GET /healthz HTTP/1.1\r\nA: b\r\n"])
def test_130_slow_clients_leave_a_process_its_descriptors_and_others_their_answers(
    kind: str, path: str, sent: bytes
) -> None:
    with ExitStack() as stack:
        child = subprocess.Popen(
            [sys.executable, str(CHILD), kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        stack.enter_context(child)  # waits for it, and closes its pipes
        stack.callback(child.kill)
        assert child.stdin is not None
        assert child.stdout is not None
        port = int(child.stdout.readline())
        for _ in range(CLIENTS):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            slow.sendall(sent)
        began = time.monotonic()
        while time.monotonic() - began < 1:  # long before the deadline of a request
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "free\n"
        for _ in range(3):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path)
            assert connection.getresponse().status == 200
            connection.close()


class Answers(BoundedRequest):
    seconds = 0.3
    gate = Event()

    def do_GET(self) -> None:  # noqa: N802 - the base class's
        if self.has_arrived():
            assert self.gate.wait(20)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()


@contextmanager
def serving(most: int) -> Iterator[int]:
    server = BoundedServer(("127.0.0.1", 0), Answers, most)
    Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def connected(port: int, sent: bytes = b"") -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=20)
    client.sendall(sent)
    return client


def test_the_deadline_is_one_for_the_whole_request_and_not_one_a_read() -> None:
    Answers.gate.set()
    with serving(4) as port, connected(port, b"GET / HTTP/1.1\r\n") as client:
        began = time.monotonic()
        try:
            while time.monotonic() - began < 20:
                client.sendall(b"A: b\r\n")
                time.sleep(0.02)  # a client's drip, each read within any time-out
        except OSError:
            pass
        assert time.monotonic() - began < 10


def test_what_runs_keeps_its_place_and_the_rest_is_told_to_come_again() -> None:
    Answers.gate.clear()
    request = b"GET / HTTP/1.1\r\n\r\n"
    with serving(2) as port:
        before = active_count()
        running = [connected(port, request) for _ in range(2)]
        until(lambda: active_count() == before + 2)

        def refused() -> bool:
            with connected(port) as more:
                return more.recv(100).startswith(b"HTTP/1.1 503 ")

        until(refused)
        Answers.gate.set()
        for client in running:
            assert client.recv(100).startswith(b"HTTP/1.0 200 ")
            client.close()


def test_after_a_failed_accept_the_server_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    fails: list[int] = []

    def refuse(_server: HTTPServer) -> Any:
        fails.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(bounded_server, "PAUSE_SECONDS", 2)
    Answers.gate.set()
    with serving(2) as port:
        with monkeypatch.context() as patched:
            patched.setattr(HTTPServer, "get_request", refuse)
            waits = connected(port, b"GET / HTTP/1.1\r\n\r\n")
            until(lambda: bool(fails))
        assert len(fails) == 1
        waits.close()
