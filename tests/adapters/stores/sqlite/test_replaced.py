"""A file that is deleted or replaced while in use answers nothing any more: SQLite would go on with the old one."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from adapters.stores.sqlite import database, rows, store
from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.database import UnusableDatabaseError
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Record
from tests.support.clock import FakeClock
from tests.support.jobs import job

LEASE = timedelta(seconds=60)
DAY = timedelta(days=1)
REPLACED = "records.sqlite was deleted or replaced while it was in use"


def complete(store: IdempotencyStore, job_id: str) -> None:
    held = store.claim(job(job_id), owner="a", lease=LEASE)
    assert isinstance(held, Acquired)
    store.complete(held.claim, Answer("1"))


class World:
    """A store and its admin over one file, with one finished job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.store = SQLiteIdempotencyStore(path, self.clock, DAY)
        self.admin = SQLiteStoreAdmin(path, self.clock, DAY)
        complete(self.store, "done")
        self.seen = self.look()

    def look(self) -> Record:
        found = self.admin.look(job("done").key)
        assert found is not None
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "records.sqlite")
    yield made
    made.store.close()
    made.admin.close()


def deleted(world: World) -> None:
    world.path.unlink()


def replaced(world: World) -> None:
    """By a sound file of another store, as a restored backup is."""
    other = world.path.with_name("other.sqlite")
    SQLiteIdempotencyStore(other, world.clock, DAY).close()
    os.replace(other, world.path)


def moved_away(world: World) -> None:
    world.path.rename(world.path.with_name("old.sqlite"))


CALLS: dict[str, Callable[[World], object]] = {
    "claim of a done job": lambda world: world.store.claim(job("done"), owner="b", lease=LEASE),
    "claim of a new job": lambda world: world.store.claim(job("new"), owner="b", lease=LEASE),
    "find": lambda world: world.store.find(job("done").key),
    "find nothing": lambda world: world.store.find(job("new").key),
    "look": lambda world: world.admin.look(job("done").key),
    "records": lambda world: list(world.admin.records()),
    "forget": lambda world: world.admin.forget(world.seen),
    "purge": lambda world: world.admin.purge(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("change", [deleted, replaced, moved_away])
def test_nothing_is_answered_from_a_file_that_is_not_in_its_place(
    world: World, change: Callable[[World], None], call: Callable[[World], object]
) -> None:
    change(world)
    for _ in range(2):
        with pytest.raises(StoreUnavailableError, match=REPLACED):
            call(world)


def test_what_was_read_while_the_file_was_replaced_is_not_told(world: World) -> None:
    def read(connection: sqlite3.Connection, key: JobKey) -> Record | None:
        replaced(world)
        return rows.read(connection, key)

    with patch.object(store, "read", read), pytest.raises(StoreUnavailableError, match=REPLACED):
        world.store.find(job("done").key)


def test_nothing_is_written_to_a_file_that_is_replaced_while_its_lock_is_waited_for(world: World) -> None:
    with closing(sqlite3.connect(world.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(2) as pool:
            claiming = pool.submit(world.store.claim, job("new"), owner="b", lease=LEASE)
            purging = pool.submit(world.admin.purge)
            deadline = time.monotonic() + 5
            while not world.store._writes._turn.locked():  # type: ignore[attr-defined]
                assert time.monotonic() < deadline
            replaced(world)
            other.execute("ROLLBACK")
            for waiting in (claiming, purging):
                with pytest.raises(StoreUnavailableError, match=REPLACED):
                    waiting.result(10)
        assert other.execute("SELECT count(*) FROM record").fetchone() == (1,)


@pytest.mark.parametrize("made", [SQLiteIdempotencyStore, SQLiteStoreAdmin])
def test_a_file_that_is_replaced_while_it_is_opened_is_refused(
    tmp_path: Path, made: type[SQLiteIdempotencyStore | SQLiteStoreAdmin]
) -> None:
    path, original = tmp_path / "records.sqlite", database._prepare
    opened: list[sqlite3.Connection] = []

    def prepare(connection: sqlite3.Connection, at: Path) -> None:
        original(connection, at)
        if not opened:
            path.unlink()
            path.touch()
        opened.append(connection)

    with (
        patch.object(database, "_prepare", prepare),
        pytest.raises(UnusableDatabaseError, match=REPLACED),
    ):
        made(path, FakeClock(), DAY)
