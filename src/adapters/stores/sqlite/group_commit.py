"""Many threads, one commit: while one flushes to disk, the others line up and share the next flush."""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from adapters.threads.seam import SYSTEM_THREADS, Threads

type Work[T] = Callable[[sqlite3.Connection], T]


@dataclass(slots=True, eq=False)
class _Entry[T]:
    work: Work[T]
    done: bool = False
    value: T | None = None
    error: Exception | None = None


class GroupCommit:
    """Runs pieces of work in write transactions of one connection.

    A piece sees what those before it wrote. It raises, if at all, before it writes; the error is its caller's alone.
    An error of SQLite fails every piece of the transaction, and none of it is written; so does `check`, which is
    called as each begins, when its lock is held, and raises `sqlite3.Error`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        check: Callable[[], None] = lambda: None,
        threads: Threads = SYSTEM_THREADS,
    ) -> None:
        self._connection = connection
        self._check = check
        self._waiting: list[_Entry[object]] = []
        self._line = threads.lock()
        self._turn = threads.lock()

    def run[T](self, work: Work[T]) -> T:
        """The value of `work`, committed to disk. Raises what `work` raised, or `sqlite3.Error`."""
        entry = _Entry(work)
        with self._line:
            self._waiting.append(entry)  # type: ignore[arg-type]
        with self._turn:
            if not entry.done:
                with self._line:
                    batch, self._waiting = self._waiting, []
                self._commit(batch)
        if entry.error is not None:
            raise entry.error
        return entry.value  # type: ignore[return-value]

    def _commit(self, batch: list[_Entry[object]]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._check()
            for entry in batch:
                try:
                    entry.value = entry.work(self._connection)
                except sqlite3.Error:
                    raise
                except Exception as error:
                    entry.error = error
            self._connection.execute("COMMIT")
        except BaseException as error:
            for entry in batch:
                entry.error = _copied(error)
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            if not isinstance(error, sqlite3.Error):
                raise
        finally:
            for entry in batch:
                entry.done = True


def _copied(error: BaseException) -> sqlite3.OperationalError:
    """One for each thread that raises it, with SQLite's code."""
    copy = sqlite3.OperationalError(str(error) or type(error).__name__)
    if isinstance(error, sqlite3.Error):
        copy.sqlite_errorcode = getattr(error, "sqlite_errorcode", 0)
    return copy
