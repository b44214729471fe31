"""The `StoreAdmin` of a SQLite file, on a connection of its own."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.stores.sqlite.database import BUSY_TIMEOUT
from adapters.stores.sqlite.file import DatabaseFile
from adapters.stores.sqlite.rows import COLUMNS, REPLACE, read, row, to_record
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged
from domain.record import Record, forgotten, record_changed, refusal_to_forget

_PAGE: Final = f"SELECT key, {COLUMNS} FROM record WHERE key > CAST(? AS TEXT) ORDER BY key LIMIT ?"
_PAGE_SIZE: Final = 1000


class SQLiteStoreAdmin:
    """Used by one thread. Each change is a transaction. Raises `UnusableDatabaseError` when it is made."""

    def __init__(
        self,
        path: Path,
        clock: Clock,
        retention: timedelta,
        *,
        busy_timeout: timedelta = BUSY_TIMEOUT,
        allow_network: bool = False,
    ) -> None:
        self._clock = clock
        self._retention = retention
        self._file = DatabaseFile(path, busy_timeout, allow_network=allow_network)
        self._connection = self._file.connect()

    def close(self) -> None:
        """Give the file back."""
        self._connection.close()

    def look(self, key: JobKey) -> Record | None:
        with self._file.translate_errors():
            found = read(self._connection, key)
            self._file.check_in_place()
            return found

    def records(self) -> Iterator[Record]:
        after: str | None = ""
        while after is not None:
            page, after = self._page(after, _PAGE_SIZE)
            yield from page

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        with self._file.translate_errors(), self._transaction():
            record, now = read(self._connection, seen.key), self._clock.now()
            if record is None or not record.is_same_as(seen) or (record.is_held and not force):
                raise refusal_to_forget(record, seen)
            changed = forgotten(record, now, self._retention)
            self._connection.execute(REPLACE, row(changed))
            return changed

    def restart(self, seen: Record) -> None:
        with self._file.translate_errors(), self._transaction():
            record = read(self._connection, seen.key)
            if record is None or not record.is_same_as(seen):
                raise record_changed(seen)
            self._connection.execute(REPLACE, row(replace(record, life=record.life.following())))

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        with self._file.translate_errors(), self._transaction():
            now = self._clock.now()
            page, following = self._page(after or "", limit)
            over = [(str(record.key),) for record in page if record.retention_is_over(now)]
            self._connection.executemany("DELETE FROM record WHERE key = ?", over)
            return Purged(len(page), len(over), following)

    def _page(self, after: str, limit: int) -> tuple[list[Record], str | None]:
        """Records, and the key to go on after; None at the end. What onejob did not write is passed over."""
        with self._file.translate_errors():
            with closing(self._connection.execute(_PAGE, (_bytes(after), limit))) as found:
                rows = found.fetchall()
            self._file.check_in_place()
        page = []
        for name, *values in rows:
            key = JobKey.parse(name) if isinstance(name, str) else None
            if key is not None:
                with suppress(ForeignRecordError):
                    page.append(to_record(key, tuple(values)))
        return page, _text(rows[-1][0]) if len(rows) == limit else None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._file.check_in_place()
            yield self._connection
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


def _text(key: str | bytes) -> str:
    """A key as a cursor, whatever its bytes."""
    return key if isinstance(key, str) else key.decode(errors="surrogateescape")


def _bytes(cursor: str) -> bytes:
    return cursor.encode(errors="surrogateescape")
