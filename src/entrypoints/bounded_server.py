"""An HTTP server that slow clients cannot exhaust: bounded connections and threads, and a deadline for each request."""

import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader, RawIOBase
from threading import Event, Lock, Semaphore
from time import monotonic
from typing import Any, Final

from entrypoints.edge import tell

PAUSE_SECONDS: Final = 0.1
"""After a failed accept: the process may have no descriptor to spare, and asking at once would only burn CPU time."""

EVICTION_SECONDS: Final = 1.0
"""How long an evicted connection may take to end."""

BUSY: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class BoundedServer(ThreadingHTTPServer):
    """Serves at most `most` connections at a time, each in a thread.

    When all are taken, a new connection takes the place of the oldest whose request has not arrived yet; where there is
    none, it is answered 503. So a client that is slow, or many of them, hold up no other.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], handler: type["BoundedRequest"], most: int) -> None:
        self._slots = Semaphore(most)
        self._lock = Lock()
        self._arriving: dict[int, socket.socket] = {}
        """Connections whose request has not arrived yet, by their socket's `id`, the oldest first."""
        self._ended = Event()
        super().__init__(address, handler)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError:
            self._ended.wait(PAUSE_SECONDS)
            raise

    def server_close(self) -> None:
        self._ended.set()
        super().server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        has_slot = self._slots.acquire(blocking=False)
        if not has_slot and self._evict():
            has_slot = self._slots.acquire(timeout=EVICTION_SECONDS)
        if not has_slot:
            self._refuse(request)
            return
        with self._lock:
            self._arriving[id(request)] = request
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread to spare: the server's own answers, within the deadline of the request
            if (threads := vars(self).get("_threads")) is not None:
                threads.reap()  # the one that never began would be waited for in the end
            self.process_request_thread(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.has_arrived(request)
            self._slots.release()

    def has_arrived(self, request: Any) -> bool:
        """Its request is read: it keeps its place. False if another connection has taken it."""
        with self._lock:
            return self._arriving.pop(id(request), None) is not None

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - the base class's
        """Tell the error by type and place; nothing of a client that is gone."""
        error = sys.exception()
        if not isinstance(error, OSError):
            tell("a request failed", error)

    def _evict(self) -> bool:
        """Cut off the oldest connection whose request has not arrived; whether there was one."""
        with self._lock:
            if not self._arriving:
                return False
            oldest = self._arriving.pop(next(iter(self._arriving)))
            with suppress(OSError):  # it has just ended
                oldest.shutdown(socket.SHUT_RDWR)
        return True

    def _refuse(self, request: Any) -> None:
        try:
            request.setblocking(False)
            request.send(BUSY)
        except OSError:  # nobody is there to be told
            pass
        self.shutdown_request(request)


class BoundedRequest(BaseHTTPRequestHandler):
    """One request, which must have arrived after `seconds` in all; each write of the answer may take as long."""

    server: BoundedServer
    seconds = 5.0
    server_version = "onejob"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self.rfile = BufferedReader(_Until(self.connection, monotonic() + self.seconds, monotonic))

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        self.close_connection = True  # it ends with its answer
        return parsed

    def has_arrived(self) -> bool:
        """To be called when all of the request is read: no other connection takes its place any more.

        Returns False if one has, and the client is cut off.
        """
        return self.server.has_arrived(self.connection)

    def send_response(self, code: int, message: str | None = None) -> None:
        self.connection.settimeout(self.seconds)  # of the whole of a `sendall`
        super().send_response(code, message)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's
        """Nothing: standard error is for what goes wrong."""


class _Until(RawIOBase):
    """What a socket receives until a moment of the clock; later reads raise `TimeoutError`."""

    def __init__(self, connection: socket.socket, end: float, clock: Callable[[], float]) -> None:
        self._connection, self._end, self._clock = connection, end, clock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
