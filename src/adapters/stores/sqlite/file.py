"""A file in use: connections to it, whether it is still where it was, and what keeps others from writing to it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from adapters.stores.sqlite.database import UnusableDatabaseError, explained, make_file, open_database
from domain.errors import LeaseHeldError, LeaseLostError, RecordChangedError, StoreUnavailableError


class DatabaseFile:
    """Raises `UnusableDatabaseError` when it is made. Thread-safe."""

    def __init__(self, path: Path, busy_timeout: timedelta, *, allow_network: bool = False) -> None:
        self._path = path.absolute()  # whatever folder an operation may change to
        self._busy_timeout = busy_timeout
        self._allow_network = allow_network
        make_file(self._path, allow_network=allow_network)
        self._identity = _identity(self._path)

    def connect(self) -> sqlite3.Connection:
        """Another connection. Raises `UnusableDatabaseError`."""
        connection = open_database(self._path, self._busy_timeout, allow_network=self._allow_network)
        try:
            self.check_in_place()
        except sqlite3.Error as error:
            connection.close()
            raise UnusableDatabaseError(str(error)) from error
        return connection

    def check_in_place(self) -> None:
        """SQLite would go on with a file that nobody finds any more. Raises `sqlite3.Error`.

        After a read, it says that what was read stood in the file that is there; in a write transaction, that the
        transaction will.
        """
        if _identity(self._path) != self._identity:
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced while it was in use")

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Turn whatever a call raises into `StoreUnavailableError`: a write may have landed all the same.

        What the port says of a record, and that it was changed or is held, passes.
        """
        try:
            yield
        except (StoreUnavailableError, LeaseLostError, RecordChangedError, LeaseHeldError):
            raise
        except sqlite3.Error as error:
            text = explained(error, self._path, self._busy_timeout)
            raise StoreUnavailableError(f"SQLite: {text or error}") from error
        except Exception as error:
            raise StoreUnavailableError(f"SQLite: {type(error).__name__}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino
