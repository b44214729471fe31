"""The health port answers what it is asked, and is gone afterwards."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from entrypoints.health import health_server
from tests.support.threads import ScarceThreads


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@contextmanager
def serving(*, alive: bool, ready: bool) -> Iterator[int]:
    with health_server("127.0.0.1", 0, is_alive=lambda: alive, is_ready=lambda: ready) as port:
        yield port


@pytest.mark.parametrize(("alive", "ready"), [(True, False), (False, True)])
def test_each_question_has_its_answer(alive: bool, ready: bool, capfd: pytest.CaptureFixture[str]) -> None:
    told = {True: (200, b"ok\n"), False: (503, b"no\n")}
    with serving(alive=alive, ready=ready) as port:
        assert get(port, "/healthz") == told[alive]
        assert get(port, "/readyz?verbose=1") == told[ready]
        assert get(port, "/")[0] == 404
    assert capfd.readouterr() == ("", "")


def test_a_question_for_which_there_is_no_thread_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with serving(alive=False, ready=True) as port:
        monkeypatch.setattr(Thread, "start", refuse)
        assert get(port, "/healthz") == (503, b"no\n")
        assert get(port, "/readyz") == (200, b"ok\n")
        monkeypatch.undo()


def test_a_server_that_gets_no_thread_is_an_error_and_its_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as chosen:
        port = chosen.getsockname()[1]
    monkeypatch.setattr("entrypoints.health.SYSTEM_THREADS", ScarceThreads(none=True))
    refused = health_server("127.0.0.1", port, is_alive=lambda: True, is_ready=lambda: True)
    with pytest.raises(OSError, match="can't start new thread"), refused:
        pass
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_the_port_is_closed_at_the_end_and_a_taken_one_is_an_error() -> None:
    with serving(alive=True, ready=True) as port:
        taken = health_server("127.0.0.1", port, is_alive=lambda: True, is_ready=lambda: True)
        with pytest.raises(OSError, match="in use"), taken:
            pass
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=1)
