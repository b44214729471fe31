"""The file itself: who may read it, which schema it has, and clear errors where it cannot be used."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Final

from adapters.folders import make_folder
from adapters.stores.sqlite.file_system import remote_file_system
from adapters.stores.sqlite.rows import text_or_bytes
from domain.errors import UnusableStoreError

BUSY_TIMEOUT: Final = timedelta(seconds=10)
"""How long a writer waits for the writers of other processes."""

_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
"""The second where a reader waited in vain for another process's recovery of the log."""

SMALLEST_BYTES: Final = 512
"""A SQLite file is at least one page, and a page at least so large."""

MIGRATIONS: Final[Sequence[str]] = (
    """
    CREATE TABLE record (
        key         TEXT PRIMARY KEY,
        job_id      TEXT NOT NULL,
        operation   TEXT NOT NULL,
        status      TEXT NOT NULL CHECK (status IN ('INPROGRESS', 'COMPLETED')),
        owner       TEXT,
        attempts    INTEGER NOT NULL,
        lease_until INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL,
        fingerprint TEXT,
        answer      TEXT,
        omitted     TEXT,
        last_error  TEXT,
        first_seen  INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    """,
    "ALTER TABLE record ADD COLUMN last_seen INTEGER;",
    "ALTER TABLE record ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;",
    "ALTER TABLE record ADD COLUMN life INTEGER NOT NULL DEFAULT 1;",
    "ALTER TABLE record ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE record ADD COLUMN unended INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE record ADD COLUMN rejected_at INTEGER;",
    "ALTER TABLE record ADD COLUMN released_by TEXT;",
)
"""Each brings a file from the version of its index to the next. All times are microseconds since 1970."""


class UnusableDatabaseError(UnusableStoreError):
    """The file cannot serve as a store; the text says why and what to do. Nothing in it was changed."""


def open_database(
    path: Path, busy_timeout: timedelta = BUSY_TIMEOUT, *, allow_network: bool = False
) -> sqlite3.Connection:
    """A connection in WAL mode with `synchronous=FULL`: what was committed survives a power cut.

    A missing folder is made with mode 0700; the file, and with it SQLite's own beside it, has mode 0600. A file of
    something else or of another user is left as it is, and one on a network file system unless `allow_network`.
    A lock of another process is waited for, for `busy_timeout` in a write and for no more than twice that here.
    Raises `UnusableDatabaseError`, whatever SQLite raises.
    """
    make_file(path, allow_network=allow_network)
    try:
        seconds = busy_timeout.total_seconds()
        connection = sqlite3.connect(path, timeout=seconds, isolation_level=None, check_same_thread=False)
    except (sqlite3.Error, ValueError) as error:
        raise UnusableDatabaseError(f"{path}: {error}") from error
    connection.text_factory = text_or_bytes
    try:
        _patiently(lambda: _prepare(connection, path), busy_timeout)
    except BaseException as error:
        connection.close()
        if isinstance(error, UnusableDatabaseError) or not isinstance(error, Exception):
            raise
        text = explained(error, path, busy_timeout) or f"{path}: {_advice(error)}"
        raise UnusableDatabaseError(text) from error
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN")
    try:
        check_ours(connection, path)
    finally:
        connection.execute("ROLLBACK")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    _migrate(connection, path)


def _patiently(prepare: Callable[[], None], busy_timeout: timedelta) -> None:
    """SQLite does not wait for the lock that a change to WAL needs; processes that start together meet there."""
    deadline = time.monotonic() + busy_timeout.total_seconds()
    while True:
        try:
            return prepare()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def make_file(path: Path, *, allow_network: bool = False) -> None:
    """An empty file, if none is there. Raises `UnusableDatabaseError`, also for what can be no SQLite file, belongs to
    another user, or is on a network file system (unless `allow_network`).
    """
    try:
        if not allow_network and (kind := remote_file_system(path)):
            raise UnusableDatabaseError(
                f"{path}: is on a network file system ({kind}), which does not keep SQLite's locks: jobs would run "
                "twice. Name a file on a local disk with --db or IDEMPOTENCY_DB; IDEMPOTENCY_DB_ALLOW_NETWORK=true "
                "takes that risk"
            )
        _make(path)
    except OSError as error:
        raise UnusableDatabaseError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise UnusableDatabaseError(f"{path}: {error}") from error


def explained(error: Exception, path: Path, busy_timeout: timedelta) -> str | None:
    """What is in the way and how to find it, where another process kept its lock for all the time; else None."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _LOCKED:
        return None
    file = quote(str(path))
    return (
        f"{path}: another process has held its lock for {busy_timeout.total_seconds():g} s: it is suspended (Ctrl-Z, "
        "SIGSTOP, a debugger, a frozen container), or it writes for so long. "
        f"`fuser -v {file}` or `lsof {file}` names the processes that have the file open: "
        "let that one go on (kill -CONT PID), or end it"
    )


def _make(path: Path) -> None:
    """The file, if it is not there. An existing one is never opened here: to close any descriptor of a file drops
    all locks that the process has on it, SQLite's among them (fcntl(2)).
    """
    make_folder(path.parent)
    check_owners(path)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            raise UnusableDatabaseError(f"{path}: is no file; name one, or a new one in a folder") from None
        if 0 < state.st_size < SMALLEST_BYTES:  # SQLite would take it for an empty one, and overwrite it
            raise UnusableDatabaseError(f"{path}: is no SQLite file; move it away, or use another --db") from None
        if not os.access(path, os.W_OK):
            raise UnusableDatabaseError(f"{path}: is not writable") from None


def check_owners(path: Path) -> None:
    """Of a file and of what SQLite keeps beside it. Raises `UnusableDatabaseError`."""
    for beside in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))):
        _check_owner(beside)


def _check_owner(path: Path) -> None:
    """The owner of a file, and of what SQLite keeps beside it, decides what happens: root too trusts only its own."""
    with suppress(FileNotFoundError):
        owner = path.stat().st_uid
        if owner != os.geteuid():
            raise UnusableDatabaseError(
                f"{path}: belongs to another user (uid {owner}; this is uid {os.geteuid()}), who could have jobs "
                "skipped or run again: use another --db, or make it yours (chown) if you trust what is in it"
            )


def check_ours(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the file's schema. Reads only, within a transaction of the caller's."""
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise UnusableDatabaseError(
            f"{path}: has schema {version}, and this onejob knows up to {len(MIGRATIONS)}: "
            "upgrade onejob, or use another --db"
        )
    if version == 0 and connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        raise UnusableDatabaseError(f"{path}: is a database of something else: use another --db")
    if version < 0:
        raise UnusableDatabaseError(f"{path}: has schema {version}, which is not onejob's: use another --db")
    if version:
        _check_schema(connection, path, version)
    return version


def _check_schema(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """A trigger, a view, an index or a column that onejob did not make could change what it writes."""
    ours, found = _schema(tuple(MIGRATIONS[:version])), dict(_objects(connection))
    for kind, name in found.keys() | ours.keys():
        if found.get((kind, name)) != ours.get((kind, name)):
            raise UnusableDatabaseError(
                f"{path}: has a schema that is not onejob's ({kind} {ascii(name)[:80]}): drop what was added, "
                "or use another --db"
            )


@cache
def _schema(steps: tuple[str, ...]) -> Mapping[tuple[str, str], str]:
    """What these steps make of an empty database."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for step in steps:
            connection.execute(step)
        return dict(_objects(connection))


def _objects(connection: sqlite3.Connection) -> Iterator[tuple[tuple[str, str], str]]:
    """By kind and name, how each was made, without white space. What ANALYZE keeps is SQLite's own."""
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall():
        if not (kind == "table" and str(name).startswith("sqlite_stat")):
            yield (str(kind), str(name)), "".join(str(sql).split())


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")  # one process migrates, the others then find it done
    try:
        for step in MIGRATIONS[check_ours(connection, path) :]:
            connection.execute(step)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def _advice(error: Exception) -> str:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return "is no SQLite file; move it away, or use another --db"
        case sqlite3.SQLITE_CORRUPT:
            return f"{error}: it is corrupt; move it away, or use another --db"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN:
            return f"{error}: file and folder must be writable"
        case sqlite3.SQLITE_FULL:
            return f"{error}: make room on its disk, then run again"
        case _:
            return str(error) if isinstance(error, sqlite3.Error | OSError) else type(error).__name__
