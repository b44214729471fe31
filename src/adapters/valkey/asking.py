"""How the server is asked: one script, one round trip, and its errors as the port's."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

from valkey import Valkey
from valkey.exceptions import ConnectionError, NoScriptError, TimeoutError, ValkeyError  # noqa: A004

from adapters.valkey.reading import name_of
from adapters.valkey.scripts import Script
from domain.errors import ForeignRecordError, StoreUnavailableError
from domain.identity import JobKey

WAIT: Final = timedelta(milliseconds=400)
"""How long the server waits for its replicas, where they are asked for: less than the client waits for the server."""

_MS: Final = timedelta(milliseconds=1)


class Asking:
    """Thread-safe. With `replicas`, a write counts only when so many replicas have it."""

    def __init__(self, client: Valkey, replicas: int) -> None:
        self.client: Any = client  # its types take every answer for an awaitable, too
        self._replicas = replicas

    def close(self) -> None:
        """Close the connections."""
        self.client.connection_pool.disconnect()

    def run(self, script: Script, key: JobKey, *values: str | bytes | int) -> tuple[Any, int]:
        """What the script answered, and how many replicas have everything up to it; for `demand`."""
        with self.translated(key):
            try:
                return self._ask("EVALSHA", script.sha, 1, name_of(key), *values)
            except NoScriptError:  # a server that was restarted, or never asked: it keeps the text from now on
                return self._ask("EVAL", script.text, 1, name_of(key), *values)

    def demand(self, landed: int, key: JobKey) -> None:
        """Of a write, that the replicas have it."""
        if landed < self._replicas:
            raise StoreUnavailableError(f"{key}: written to {landed} of {self._replicas} replicas that must have it")

    @contextmanager
    def translated(self, key: JobKey | None = None) -> Iterator[None]:
        """Shows nothing of what was sent: answers, payloads, passwords."""
        try:
            yield
        except (ConnectionError, TimeoutError) as error:  # the client's own words, or refusals to let it in
            raise StoreUnavailableError(f"Valkey: {type(error).__name__}: {error}") from error
        except ValkeyError as error:
            code = str(error).partition(" ")[0]  # no more of it: the server may quote what it was sent
            if code == "WRONGTYPE":
                raise ForeignRecordError(f"{key}: the key holds something else") from error
            raise StoreUnavailableError(f"Valkey: {code if code.isupper() else type(error).__name__}") from error
        except (OSError, ValueError, TypeError, IndexError, AttributeError) as error:  # the client's, on a broken line
            raise StoreUnavailableError(f"Valkey: no sound answer: {type(error).__name__}") from error
        except BaseException:  # between question and answer: nobody may take that answer for theirs
            self.close()
            raise

    def _ask(self, *command: str | bytes | int) -> tuple[Any, int]:
        if not self._replicas:
            return self.client.execute_command(*command), 0
        asked = self.client.pipeline(transaction=False)
        asked.execute_command(*command)
        asked.wait(self._replicas, WAIT // _MS)
        answer, landed = asked.execute(raise_on_error=False)
        for told in (answer, landed):
            if isinstance(told, Exception):
                raise told
        return answer, landed
