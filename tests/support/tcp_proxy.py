"""Between a client and Valkey: cuts the line, is silent, loses the answer to what landed, or answers by itself."""

import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from select import select
from threading import Thread
from typing import Literal

type Fault = Literal["ok", "cut", "silent", "lost"] | bytes
"""`cut`: it never arrived. `silent`: nor that, and the line stays. `lost`: it landed, and the line is cut. Bytes: the
answer given in the server's place.
"""


class TcpProxy:
    """Each request of a record takes the next fault of the plan. What a client says to introduce itself passes."""

    def __init__(self, server_port: int, tls: ssl.SSLContext | None = None) -> None:
        self.plan: list[Fault] = []
        self.requests: Counter[str] = Counter()
        """Every one of them, by its command."""
        self.refuses = False
        """Whether each is cut off, whatever it asks."""
        self.answers: dict[str, bytes] = {}
        """What each request of a command is answered by, in the server's place."""
        self._server_port = server_port
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                Thread(target=self._pump, args=(connection,), daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _pump(self, connection: socket.socket) -> None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self._server_port)) as server, connection:
            client = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with client:
                self._between(client, server)

    def _between(self, client: socket.socket, server: socket.socket) -> None:
        loses = False
        while True:
            for end in select([client, server], [], [])[0]:
                data = end.recv(1 << 20)
                if not data or (end is server and loses):
                    return
                if end is server:
                    client.sendall(data)
                    continue
                fault = self._next(data)
                if fault == "cut":
                    return
                if isinstance(fault, bytes):
                    client.sendall(fault)
                elif fault != "silent":
                    loses = fault == "lost"
                    server.sendall(data)

    def _next(self, request: bytes) -> Fault:
        command = request.split(b"\r\n")[2].decode()
        self.requests[command] += 1
        if self.refuses:
            return "cut"
        if command in self.answers:
            return self.answers[command]
        return self.plan.pop(0) if command in ("EVALSHA", "EVAL", "HGETALL") and self.plan else "ok"


@contextmanager
def proxied(server_port: int, tls: ssl.SSLContext | None = None) -> Iterator[TcpProxy]:
    proxy = TcpProxy(server_port, tls)
    Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
