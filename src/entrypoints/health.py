"""Two questions that an orchestrator asks a worker over HTTP: does it live, and is it ready."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EAGAIN
from typing import Final

from adapters.threads.seam import SYSTEM_THREADS, ThreadRefusedError
from entrypoints.bounded_server import BoundedRequest, BoundedServer

MOST_CONNECTIONS: Final = 16
"""The most connections, and so descriptors and threads, that the port takes. The rest is for the jobs."""


@contextmanager
def health_server(host: str, port: int, *, is_alive: Callable[[], bool], is_ready: Callable[[], bool]) -> Iterator[int]:
    """Until the end, `GET /healthz` and `GET /readyz` are answered 200 or 503. Gives the port (0 takes a free one).
    A question for which the system has no thread to spare is answered in the server's own. Raises `OSError`, as for a
    port that is taken.
    """
    questions = {"/healthz": is_alive, "/readyz": is_ready}

    class Answers(BoundedRequest):
        def do_GET(self) -> None:  # noqa: N802 - the base class's
            self.has_arrived()
            question = questions.get(self.path.partition("?")[0])
            if question is None:
                self._answer(404, "not found: /healthz, /readyz")
            elif question():
                self._answer(200, "ok")
            else:
                self._answer(503, "no")

        def _answer(self, status: int, text: str) -> None:
            body = f"{text}\n".encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = BoundedServer((host, port), Answers, MOST_CONNECTIONS)
    try:
        SYSTEM_THREADS.start(lambda: server.serve_forever(poll_interval=0.1), "onejob-health")
    except ThreadRefusedError as error:
        server.server_close()
        raise OSError(EAGAIN, str(error)) from error
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
