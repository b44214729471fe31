"""The file: private, versioned, and refused with a clear error where it cannot be used."""

import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread

import pytest

from adapters.stores.sqlite.database import MIGRATIONS, UnusableDatabaseError, open_database
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Completed
from tests.support.clock import FakeClock
from tests.support.disks import fill, make_read_only, small_disk
from tests.support.jobs import job

LEASE = timedelta(seconds=60)


def open_store(path: Path) -> SQLiteIdempotencyStore:
    return SQLiteIdempotencyStore(path, FakeClock(), timedelta(days=1))


def raw(path: Path, statement: str) -> list[tuple[object, ...]]:
    """What plain SQLite says."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement).fetchall()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def complete(store: SQLiteIdempotencyStore, job_id: str, text: str = "1") -> None:
    claimed = store.claim(job(job_id), owner="a", lease=LEASE)
    assert isinstance(claimed, Acquired)
    store.complete(claimed.claim, Answer(text))


def test_folder_and_files_are_private_those_of_sqlite_too(tmp_path: Path) -> None:
    path = tmp_path / "new" / "records.sqlite"
    store = open_store(path)
    complete(store, "1")
    names = {each.name for each in path.parent.iterdir()}
    assert names == {"records.sqlite", "records.sqlite-wal", "records.sqlite-shm"}
    assert mode(path.parent) == 0o700
    assert {mode(each) for each in path.parent.iterdir()} == {0o600}
    store.close()


def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    path.touch(mode=0o644)
    path.chmod(0o644)
    open_database(path).close()
    assert mode(path) == 0o600


def test_a_folder_that_was_there_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    open_database(tmp_path / "records.sqlite").close()
    assert mode(tmp_path) == 0o755


def test_what_was_committed_survives_a_power_cut(tmp_path: Path) -> None:
    connection = open_database(tmp_path / "records.sqlite")
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_file_has_its_schemas_version_and_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    store = open_store(path)
    complete(store, "1")
    store.close()
    again = open_store(path)
    assert isinstance(again.claim(job("1"), owner="b", lease=LEASE), Completed)
    again.close()
    assert raw(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_an_older_file_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.sqlite"
    store = open_store(path)
    complete(store, "1")
    store.close()
    step = "ALTER TABLE record ADD COLUMN colour TEXT"
    monkeypatch.setattr("adapters.stores.sqlite.database.MIGRATIONS", (*MIGRATIONS, step))
    open_database(path).close()
    assert raw(path, "SELECT job_id, colour FROM record") == [("1", None)]
    assert raw(path, "PRAGMA user_version") == [(len(MIGRATIONS) + 1,)]


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.sqlite"
    open_database(path).close()
    steps = (*MIGRATIONS, "ALTER TABLE record ADD COLUMN colour TEXT", "ALTER TABLE nowhere ADD COLUMN x TEXT")
    monkeypatch.setattr("adapters.stores.sqlite.database.MIGRATIONS", steps)
    with pytest.raises(UnusableDatabaseError, match="no such table: nowhere"):
        open_database(path)
    monkeypatch.undo()
    open_database(path).close()


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    open_database(path).close()
    raw(path, "PRAGMA user_version = 99")
    with pytest.raises(UnusableDatabaseError, match=r"records.sqlite: has schema 99, and .* upgrade onejob"):
        open_database(path)


@pytest.mark.parametrize("statement", ["CREATE TABLE users (name)", "PRAGMA user_version = 99"])
def test_a_file_of_something_else_or_newer_is_left_as_it_is(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "app.sqlite"
    raw(path, statement)
    path.chmod(0o664)
    before = path.read_bytes()
    with pytest.raises(UnusableDatabaseError):
        open_database(path)
    assert (path.read_bytes(), mode(path)) == (before, 0o664)
    assert [each.name for each in tmp_path.iterdir()] == ["app.sqlite"]


def test_a_newer_schema_by_one_is_newer(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    open_database(path).close()
    raw(path, f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(UnusableDatabaseError, match="upgrade onejob"):
        open_database(path)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_refused_and_left_alone(device: str) -> None:
    before = mode(Path(device))
    with pytest.raises(UnusableDatabaseError, match="is no file"):
        open_database(Path(device))
    assert mode(Path(device)) == before


def test_a_file_that_is_deleted_or_replaced_while_it_is_used_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    store = open_store(path)
    complete(store, "1")
    path.unlink()
    with pytest.raises(StoreUnavailableError, match="was deleted or replaced while it was in use"):
        complete(store, "2")
    path.write_bytes(b"")
    with pytest.raises(StoreUnavailableError, match="was deleted or replaced while it was in use"):
        complete(store, "2")
    store.close()


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    raw(path, "CREATE TABLE users (name)")
    with pytest.raises(UnusableDatabaseError, match="something else: use another --db"):
        open_database(path)
    assert raw(path, "SELECT name FROM sqlite_schema") == [("users",)]


@pytest.mark.parametrize("content", [b"not a database, but long enough to be taken for one" * 20, b"x", b"SQLite for"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.sqlite"
    path.write_bytes(content)
    with pytest.raises(UnusableDatabaseError, match="is no SQLite file; move it away"):
        open_database(path)
    assert path.read_bytes() == content


def test_a_damaged_header_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    content = b"SQLite format 3\x00" + b"\xff" * 4096
    path.write_bytes(content)
    with pytest.raises(UnusableDatabaseError, match="is no SQLite file; move it away"):
        open_database(path)
    assert path.read_bytes() == content


def test_a_corrupt_page_is_an_error_and_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    store = open_store(path)
    for number in range(200):
        complete(store, str(number), '"' + "x" * 200 + '"')
    store.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = b"\xff" * (len(damaged) - 4096)
    path.write_bytes(damaged)
    store = open_store(path)
    with pytest.raises(StoreUnavailableError, match=r"SQLite: .*malformed"):
        store.claim(job("7"), owner="b", lease=LEASE)
    with pytest.raises(StoreUnavailableError, match=r"SQLite: .*malformed"):
        store.find(job("7").key)
    store.close()


@pytest.mark.parametrize("where", ["folder", "folder/records.sqlite/below", "\0"])
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "records.sqlite").write_bytes(b"")
    with pytest.raises(UnusableDatabaseError):
        open_database(tmp_path / where)


def test_a_read_only_folder_is_a_clear_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        make_read_only(disk)
        with pytest.raises(UnusableDatabaseError, match="Read-only file system"):
            open_database(disk / "records.sqlite")


def test_a_file_that_became_read_only_is_a_clear_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        open_database(disk / "records.sqlite").close()
        make_read_only(disk)
        with pytest.raises(UnusableDatabaseError, match="is not writable"):
            open_database(disk / "records.sqlite")


def test_a_full_disk_is_an_error_until_there_is_room_and_nothing_is_lost(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        store = open_store(disk / "records.sqlite")
        complete(store, "before")
        ballast = fill(disk)
        with pytest.raises(StoreUnavailableError, match=r"SQLite: .*(full|disk I/O)"):
            complete(store, "during", '"' + "x" * 100_000 + '"')
        ballast.unlink()
        complete(store, "after")
        for job_id in ("before", "after"):
            assert isinstance(store.claim(job(job_id), owner="b", lease=LEASE), Completed)
        store.close()


def test_a_disk_too_full_to_begin_is_a_clear_error(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "64k") as disk:
        fill(disk)
        with pytest.raises(UnusableDatabaseError, match=r"(full|disk I/O|No space)"):
            open_database(disk / "records.sqlite")


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    for number in range(20):
        path = tmp_path / "new" / str(number) / "records.sqlite"
        barrier, opened, errors = Barrier(6), list[sqlite3.Connection](), list[Exception]()

        def open_together(path: Path = path, barrier: Barrier = barrier) -> None:
            barrier.wait()
            try:
                opened.append(open_database(path))  # noqa: B023
            except Exception as error:
                errors.append(error)  # noqa: B023

        threads = [Thread(target=open_together) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for connection in opened:
            connection.close()
        assert errors == []


def test_a_relative_path_is_the_same_file_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = open_store(Path("records.sqlite"))
    monkeypatch.chdir("/")
    complete(store, "1")
    store.close()
