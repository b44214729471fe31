"""DynamoDB over HTTP on this machine, so far away as told: the same for every side, in a process of its own.

A thread a connection: a sleeping thread wakes within a tenth of a millisecond, an event loop rounds up to a whole one.
"""

import json
import multiprocessing
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from threading import Thread
from zlib import crc32

from benchmarks.table import Table

_REASONS = {200: "OK", 400: "Bad Request"}


def listening(table: Table, latency: float) -> int:
    """Serve from threads of this process; the port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    Thread(target=_accept, args=(listener, table, latency), daemon=True).start()
    port: int = listener.getsockname()[1]
    return port


@contextmanager
def stand_in(latency: float) -> Iterator[str]:
    """The URL of a table in another process; each answer comes `latency` seconds after its request."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(latency, theirs), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.kill()
        process.join()


def _serve(latency: float, pipe: Connection) -> None:
    pipe.send(listening(Table(), latency))
    pipe.recv()  # for ever


def _accept(listener: socket.socket, table: Table, latency: float) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Thread(target=_talk, args=(connection, table, latency), daemon=True).start()


def _talk(connection: socket.socket, table: Table, latency: float) -> None:
    with suppress(ConnectionError), connection, connection.makefile("rb") as requests:
        while requests.readline():
            began = time.perf_counter()
            length, target = 0, ""
            while (line := requests.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                elif name.lower() == b"x-amz-target":
                    target = value.decode().strip()
            status, body = table.answer(target, json.loads(requests.read(length)))
            content = json.dumps(body, separators=(",", ":")).encode()
            head = (
                f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/x-amz-json-1.0\r\n"
                f"x-amzn-RequestId: 1\r\nx-amz-crc32: {crc32(content)}\r\nContent-Length: {len(content)}\r\n\r\n"
            )
            time.sleep(max(0.0, began + latency - time.perf_counter()))
            connection.sendall(head.encode() + content)
