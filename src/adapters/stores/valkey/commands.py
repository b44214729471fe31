"""Commands to the server: one script, one round trip, and its errors as the port's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, Final

from valkey import Valkey
from valkey.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    ConnectionError,  # noqa: A004
    NoScriptError,
    ResponseError,
    TimeoutError,  # noqa: A004
    ValkeyError,
)

from adapters.stores.valkey.mapping import name_of
from adapters.stores.valkey.pool import RenewablePool
from adapters.stores.valkey.replies import Hash, hash_of, replicas_of
from adapters.stores.valkey.scripts import Script
from domain.errors import ForeignRecordError, StoreUnavailableError
from domain.identity import JobKey

WAIT: Final = timedelta(milliseconds=400)
"""How long the server waits for its replicas, where a write needs them: less than the client waits for the server."""

_MS: Final = timedelta(milliseconds=1)


class RefusedError(StoreUnavailableError):
    """The server said that it cannot do it, and nothing was written."""


class Commands:
    """Thread-safe. With `replicas`, a write counts only when so many replicas have it. With `again`, a command that the
    server refused is sent once more: for a caller that does not try again itself.

    After every failure the next command goes out on a new connection, whichever thread sends it: the server behind the
    old ones may have become a replica, or be gone, without cutting them.
    """

    def __init__(self, client: Valkey, replicas: int, *, again: bool = False) -> None:
        self._pool: Any = client.connection_pool
        self.client: Any = Valkey(connection_pool=self._pool)  # its types take every answer for an awaitable, too
        self.client.response_callbacks.clear()  # they take much for an empty reply; `replies` reads each
        self._replicas = replicas
        self._tries = 2 if again else 1

    def close(self) -> None:
        """Close the connections."""
        self._pool.disconnect()

    def run[T](
        self, script: Script, key: JobKey, *values: str | bytes | int, read: Callable[[Any], T]
    ) -> tuple[T, int]:
        """Return the script's reply as `read` reads it, and how many replicas have everything up to it: for
        `require_replicas`. `read` raises `ValueError` for a reply that the script does not give.
        """

        def send() -> tuple[T, int]:
            try:
                reply, landed = self._send("EVALSHA", script.sha, 1, name_of(key), *values)
            except NoScriptError:  # a server that was restarted, or is new: it keeps the text from now on
                reply, landed = self._send("EVAL", script.text, 1, name_of(key), *values)
            return read(reply), landed

        return self.call(send, key)

    def hash(self, key: JobKey) -> Hash:
        """The record's hash; empty where there is none."""
        return self.call(lambda: hash_of(self.client.execute_command("HGETALL", name_of(key))), key)

    def call[T](self, send: Callable[[], T], key: JobKey | None = None, *, again: bool = True) -> T:
        """Return what `send` returns. A second try goes out on new connections; `again` is False where only the server
        that replied before will do.
        """
        for _ in range(1, self._tries if again else 1):
            with suppress(RefusedError), self.translate_errors(key):
                return send()
        with self.translate_errors(key):
            return send()

    def require_replicas(self, landed: int, key: JobKey) -> None:
        """Raises `StoreUnavailableError` for a write that too few replicas have."""
        if landed < self._replicas:
            raise StoreUnavailableError(f"{key}: written to {landed} of {self._replicas} replicas that must have it")

    @contextmanager
    def translate_errors(self, key: JobKey | None = None) -> Iterator[None]:
        """Turn whatever a call raises into `StoreUnavailableError`: a write may have landed all the same.

        Shows nothing of what was sent: answers, payloads, passwords.
        """
        generation = getattr(self._pool, "generation", None)
        try:
            yield
        except StoreUnavailableError:
            raise
        except (AuthenticationError, BusyLoadingError) as error:
            self._renew(generation)
            raise RefusedError(f"Valkey: {type(error).__name__}: {error}") from error
        except (ConnectionError, TimeoutError) as error:  # the client's own words, or refusals to let it in
            self._renew(generation)
            raise StoreUnavailableError(f"Valkey: {type(error).__name__}: {error}") from error
        except ValkeyError as error:
            code = str(error).partition(" ")[0]  # no more of it: the server may quote what it was sent
            if code == "WRONGTYPE":
                raise ForeignRecordError(f"{key}: the key holds something else") from error
            self._renew(generation)
            made = RefusedError if isinstance(error, ResponseError) else StoreUnavailableError
            raise made(f"Valkey: {code if code.isupper() else type(error).__name__}") from error
        except Exception as error:  # the client's on a broken line, or its credentials'
            self._renew()
            raise StoreUnavailableError(f"Valkey: no sound answer: {type(error).__name__}") from error
        except BaseException:  # between command and reply: no other thread may take that reply for its own
            self._renew()
            raise

    def _renew(self, since: int | None = None) -> None:
        if isinstance(self._pool, RenewablePool):
            self._pool.renew(since)
        else:
            self._pool.disconnect()

    def _send(self, *command: str | bytes | int) -> tuple[Any, int]:
        if not self._replicas:
            return self.client.execute_command(*command), 0
        pipeline = self.client.pipeline(transaction=False)
        pipeline.execute_command(*command)
        pipeline.wait(self._replicas, WAIT // _MS)
        reply, landed = pipeline.execute(raise_on_error=False)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(landed, Exception):
            try:
                with self.translate_errors():
                    raise landed
            except RefusedError as error:  # what came before it is written
                raise StoreUnavailableError(str(error)) from landed
        return reply, replicas_of(landed)
