"""Connections that can all be replaced by new ones: a server that was switched over may cut none of the old ones."""

from contextlib import suppress
from queue import Empty
from threading import Lock
from typing import Any

from valkey.connection import BlockingConnectionPool


class RenewablePool(BlockingConnectionPool):
    """A pool with a generation. Thread-safe.

    `renew` begins another generation: what is idle is closed at once, what is in use when it is given back. No answer
    that another thread waits for is lost.
    """

    def __init__(self, **options: Any) -> None:
        self.generation = 0
        super().__init__(**options)  # type: ignore[no-untyped-call]

    def reset(self) -> None:
        """Begin with no connection, also in a process that was forked."""
        self._changing = Lock()
        self._taken: dict[int, int] = {}
        super().reset()  # type: ignore[no-untyped-call]

    def renew(self, since: int | None = None) -> None:
        """Replace every connection before it is used again. Does nothing if generation `since` is over already."""
        with self._changing:
            if since is not None and since != self.generation:
                return
            self.generation += 1
            idle: list[Any] = []
            with suppress(Empty):
                while True:
                    idle.append(self.pool.get_nowait())
            for connection in reversed(idle):
                if connection is not None:
                    connection.disconnect()
                self.pool.put_nowait(connection)

    def get_connection(self, command_name: str, *keys: Any, **options: Any) -> Any:
        """A connection of this generation, or of one that begins meanwhile."""
        generation = self.generation
        connection = super().get_connection(command_name, *keys, **options)  # type: ignore[no-untyped-call]
        self._taken[id(connection)] = generation
        return connection

    def release(self, connection: Any) -> None:
        """Give it back, closed if it is of an earlier generation."""
        with self._changing:
            if self._taken.pop(id(connection), None) != self.generation:
                connection.disconnect()
            super().release(connection)  # type: ignore[no-untyped-call]
