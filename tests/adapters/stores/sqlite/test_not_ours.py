"""A file that another user owns, that has a schema of another making, or that is on a network, is refused by name."""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.stores.sqlite import file_system
from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.database import MIGRATIONS, UnusableDatabaseError, open_database
from adapters.stores.sqlite.file_system import remote_file_system
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.life import Life
from domain.record import Claim
from tests.support.clock import FakeClock
from tests.support.disks import small_disk
from tests.support.jobs import job

DAY = timedelta(days=1)
MADE = (SQLiteIdempotencyStore, SQLiteStoreAdmin)
HELD = Claim(job("1").key, "a", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A sound file of records."""
    file = tmp_path / "records.sqlite"
    with closing(SQLiteIdempotencyStore(file, FakeClock(), DAY)) as store:
        store.claim(job("1"), owner="a", lease=DAY)
    return file


def raw(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def rewritten(old: str, new: str) -> tuple[str, ...]:
    """The table's own text, changed."""
    return (
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET sql = replace(sql, '{old}', '{new}') WHERE name = 'record'",
    )


FOREIGN: dict[str, tuple[str, ...]] = {
    "trigger": ("CREATE TRIGGER done AFTER INSERT ON record BEGIN UPDATE record SET status = 'COMPLETED'; END",),
    "trigger on delete": ("CREATE TRIGGER kept BEFORE DELETE ON record BEGIN SELECT RAISE(IGNORE); END",),
    "view": ("CREATE VIEW jobs AS SELECT * FROM record",),
    "index": ("CREATE UNIQUE INDEX one ON record (job_id)",),
    "table": ("CREATE TABLE users (name)",),
    "column": ("ALTER TABLE record ADD COLUMN colour TEXT",),
    "generated column": ("ALTER TABLE record ADD COLUMN colour TEXT AS (status)",),
    "missing column": ("ALTER TABLE record DROP COLUMN released_by",),
    "no table": ("DROP TABLE record",),
    "view in its place": ("ALTER TABLE record RENAME TO real", "CREATE VIEW record AS SELECT * FROM real"),
    "collation": rewritten("key         TEXT", "key         TEXT COLLATE NOCASE"),
    "version below none": ("PRAGMA user_version = -1",),
    "version of an older one": (f"PRAGMA user_version = {len(MIGRATIONS) - 1}",),
}


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN.keys())
@pytest.mark.parametrize("made", MADE)
def test_a_schema_that_is_not_ours_is_refused_and_left_alone(
    path: Path, made: type[SQLiteIdempotencyStore | SQLiteStoreAdmin], statements: tuple[str, ...]
) -> None:
    raw(path, *statements)
    path.chmod(0o640)
    before = path.read_bytes()
    with pytest.raises(UnusableDatabaseError, match=r"records\.sqlite: has .*schema.* not onejob's.*another --db"):
        made(path, FakeClock(), DAY)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o640)


def test_the_offending_part_is_named(path: Path) -> None:
    raw(path, *FOREIGN["trigger"])
    with pytest.raises(UnusableDatabaseError, match=r"\(trigger 'done'\): drop what was added"):
        open_database(path)
    raw(path, "DROP TRIGGER done")
    open_database(path).close()


def test_what_analyze_and_vacuum_leave_is_no_schema_of_another(path: Path) -> None:
    raw(path, "ANALYZE", "VACUUM")
    open_database(path).close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_every_version_of_ours_is_opened(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.sqlite"
    raw(path, *MIGRATIONS[:version], f"PRAGMA user_version = {version}")
    open_database(path).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("which", ["", "-wal", "-shm", "-journal"])
def test_a_file_of_another_user_is_refused_before_sqlite_opens_it(path: Path, which: str) -> None:
    theirs = path.with_name(path.name + which)
    theirs.touch()
    os.chown(theirs, 12345, 12345)
    before = {each.name: (each.read_bytes(), each.stat().st_mode) for each in path.parent.iterdir()}
    for made in MADE:
        with pytest.raises(
            UnusableDatabaseError, match=rf"records\.sqlite{which}: belongs to another user \(uid 12345"
        ):
            made(path, FakeClock(), DAY)
    assert {each.name: (each.read_bytes(), each.stat().st_mode) for each in path.parent.iterdir()} == before


def test_a_file_of_another_user_is_refused_to_any_user(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(UnusableDatabaseError, match="belongs to another user"):
        open_database(path)


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
def test_every_folder_that_is_made_is_closed_to_others(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        open_database(tmp_path / ".onejob" / "a" / "b" / "records.sqlite").close()
    finally:
        os.umask(before)
    for folder in (".onejob", ".onejob/a", ".onejob/a/b"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


NETWORKS = {
    "NFS": (0x6969, ""),
    "CIFS": (0xFF534D42, ""),
    "SMB": (0xFE534D42, ""),
    "9p": (0x01021997, ""),
    "Ceph": (0x00C36400, ""),
    "fuse.sshfs": (0x65735546, "fuse.sshfs"),
    "fuse.gcsfuse": (0x65735546, "fuse.gcsfuse"),
    "virtiofs": (0x65735546, "virtiofs"),
    "FUSE": (0x65735546, ""),
}


def mount(monkeypatch: pytest.MonkeyPatch, kind: int, name: str) -> None:
    """No test may mount these: what the system would say of them."""
    monkeypatch.setattr(file_system, "_f_type", lambda path: kind)
    monkeypatch.setattr(file_system, "_mounted", lambda path: name or None)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("made", MADE)
def test_a_network_file_system_is_refused_and_the_setting_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    made: type[SQLiteIdempotencyStore | SQLiteStoreAdmin],
    name: str,
) -> None:
    mount(monkeypatch, *NETWORKS[name])
    file = tmp_path / "new" / "records.sqlite"
    with pytest.raises(
        UnusableDatabaseError, match=rf"network file system \({name}\).*IDEMPOTENCY_DB_ALLOW_NETWORK=true"
    ):
        made(file, FakeClock(), DAY)
    assert not file.parent.exists(), "nothing is made there"
    made(file, FakeClock(), DAY, allow_network=True).close()


@pytest.mark.parametrize(("kind", "name"), [(0xEF53, ""), (0x01021994, ""), (0x65735546, "fuseblk"), (0x9123683E, "")])
def test_a_disk_of_this_machine_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int, name: str
) -> None:
    mount(monkeypatch, kind, name)
    open_database(tmp_path / "records.sqlite").close()


def test_the_system_is_asked_for_the_file_system_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(tmp_path / "disk") as disk:
        link = tmp_path / "link"
        link.symlink_to(disk)
        assert file_system._f_type(disk) == 0x01021994
        assert file_system._mounted(disk) == "tmpfs"
        monkeypatch.setattr(file_system, "_REMOTE", {0x01021994: "tmpfs"})
        assert remote_file_system(link / "a" / "records.sqlite") == "tmpfs"
        assert remote_file_system(tmp_path / "records.sqlite") is None
        with pytest.raises(UnusableDatabaseError, match="network file system"):
            open_database(link / "records.sqlite")


class _Raising:
    """A connection whose calls raise what nobody foresaw: before they do anything, or after."""

    def __init__(self, connection: sqlite3.Connection, error: Exception, *, after: bool) -> None:
        self._connection, self._error, self._after = connection, error, after

    def execute(self, statement: str, *values: Any) -> Any:
        if statement in ("ROLLBACK",):
            return self._connection.execute(statement, *values)
        if self._after:
            self._connection.execute(statement, *values)
        raise self._error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


CALLS: dict[str, Callable[[SQLiteIdempotencyStore], object]] = {
    "claim": lambda store: store.claim(job("2"), owner="b", lease=DAY),
    "begin": lambda store: store.begin(HELD, Life()),
    "complete": lambda store: store.complete(HELD, Answer("1")),
    "release": lambda store: store.release(HELD, "Error"),
    "renew": lambda store: store.renew(HELD, DAY * 2),
    "find": lambda store: store.find(HELD.key),
}


@pytest.mark.parametrize("error", [RuntimeError("payload-value"), OSError(5, "payload-value"), MemoryError()])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_whatever_a_call_raises_is_that_the_store_cannot_answer(
    path: Path, name: str, after: bool, error: Exception
) -> None:
    with closing(SQLiteIdempotencyStore(path, FakeClock(), DAY)) as store:
        opened: Any = store
        reader, writer = opened._reader, opened._writer
        opened._reader = _Raising(reader, error, after=after)
        opened._writes._connection = _Raising(writer, error, after=after)
        with pytest.raises(StoreUnavailableError) as refused:
            CALLS[name](store)
        assert "value" not in str(refused.value)
        opened._reader, opened._writes._connection = reader, writer
        CALLS[name](store)


@pytest.mark.parametrize("error", [RuntimeError("payload-value"), OSError(5, "payload-value"), MemoryError()])
def test_whatever_an_operators_call_raises_is_that_the_store_cannot_answer(path: Path, error: Exception) -> None:
    with closing(SQLiteStoreAdmin(path, FakeClock(), DAY)) as admin:
        seen = admin.look(HELD.key)
        assert seen is not None
        opened: Any = admin
        opened._connection = _Raising(connection := opened._connection, error, after=False)
        calls: list[Callable[[], object]] = [
            lambda: admin.look(HELD.key),
            lambda: list(admin.records()),
            admin.purge,
            lambda: admin.restart(seen),
            lambda: admin.forget(seen, force=True),
        ]
        for call in calls:
            with pytest.raises(StoreUnavailableError) as refused:
                call()
            assert "value" not in str(refused.value)
        opened._connection = connection
        assert admin.look(HELD.key) == seen


@pytest.mark.parametrize("error", [RuntimeError, LookupError, MemoryError])
def test_at_the_start_whatever_is_raised_is_a_clear_message(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def raising(*_: object) -> None:
        raise error

    monkeypatch.setattr("adapters.stores.sqlite.database._prepare", raising)
    with pytest.raises(UnusableDatabaseError, match=rf"records\.sqlite: {error.__name__}"):
        open_database(path)
