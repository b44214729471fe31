"""How the server is asked: one script, one round trip, and its errors as the port's."""

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

from adapters.stores.valkey.answers import Hash, hash_of, replicas_of
from adapters.stores.valkey.mapping import name_of
from adapters.stores.valkey.pool import RenewablePool
from adapters.stores.valkey.scripts import Script
from domain.errors import ForeignRecordError, StoreUnavailableError
from domain.identity import JobKey

WAIT: Final = timedelta(milliseconds=400)
"""How long the server waits for its replicas, where they are asked for: less than the client waits for the server."""

_MS: Final = timedelta(milliseconds=1)


class RefusedError(StoreUnavailableError):
    """The server said that it cannot do it, and nothing was written."""


class Asking:
    """Thread-safe. With `replicas`, a write counts only when so many replicas have it. With `again`, what a server
    refused is asked once more: for who has no tries of his own.

    After every failure the next question is asked on a new connection, whichever thread asks it: the server behind the
    old ones may have become a replica, or be gone, without cutting them.
    """

    def __init__(self, client: Valkey, replicas: int, *, again: bool = False) -> None:
        self._pool: Any = client.connection_pool
        self.client: Any = Valkey(connection_pool=self._pool)  # its types take every answer for an awaitable, too
        self.client.response_callbacks.clear()  # they take much for an empty answer; `answers` reads each
        self._replicas = replicas
        self._tries = 2 if again else 1

    def close(self) -> None:
        """Close the connections."""
        self._pool.disconnect()

    def run[T](
        self, script: Script, key: JobKey, *values: str | bytes | int, read: Callable[[Any], T]
    ) -> tuple[T, int]:
        """What the script answered, as `read` reads it, and how many replicas have everything up to it; for `demand`.

        `read` raises `ValueError` for an answer that the script does not give.
        """

        def ask() -> tuple[T, int]:
            try:
                answer, landed = self._ask("EVALSHA", script.sha, 1, name_of(key), *values)
            except NoScriptError:  # a server that was restarted, or never asked: it keeps the text from now on
                answer, landed = self._ask("EVAL", script.text, 1, name_of(key), *values)
            return read(answer), landed

        return self.answer(ask, key)

    def hash(self, key: JobKey) -> Hash:
        """The record's hash; empty where there is none."""
        return self.answer(lambda: hash_of(self.client.execute_command("HGETALL", name_of(key))), key)

    def answer[T](self, ask: Callable[[], T], key: JobKey | None = None, *, again: bool = True) -> T:
        """What `ask` returns, on new connections where it is asked again. `again` is False where only the server that
        answered before may be asked.
        """
        for _ in range(1, self._tries if again else 1):
            with suppress(RefusedError), self.translate_errors(key):
                return ask()
        with self.translate_errors(key):
            return ask()

    def demand(self, landed: int, key: JobKey) -> None:
        """Of a write, that the replicas have it."""
        if landed < self._replicas:
            raise StoreUnavailableError(f"{key}: written to {landed} of {self._replicas} replicas that must have it")

    @contextmanager
    def translate_errors(self, key: JobKey | None = None) -> Iterator[None]:
        """Whatever a call raises is that the server cannot answer, and the write may have landed.

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
        except BaseException:  # between question and answer: nobody may take that answer for theirs
            self._renew()
            raise

    def _renew(self, since: int | None = None) -> None:
        if isinstance(self._pool, RenewablePool):
            self._pool.renew(since)
        else:
            self._pool.disconnect()

    def _ask(self, *command: str | bytes | int) -> tuple[Any, int]:
        if not self._replicas:
            return self.client.execute_command(*command), 0
        asked = self.client.pipeline(transaction=False)
        asked.execute_command(*command)
        asked.wait(self._replicas, WAIT // _MS)
        answer, landed = asked.execute(raise_on_error=False)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(landed, Exception):
            try:
                with self.translate_errors():
                    raise landed
            except RefusedError as error:  # what came before it is written
                raise StoreUnavailableError(str(error)) from landed
        return answer, replicas_of(landed)
