"""The operators' port over a file in which something else stands too."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.errors import ForeignRecordError
from domain.record import Acquired
from tests.support.clock import FakeClock
from tests.support.jobs import job


def test_keys_that_are_none_of_ours_end_no_page(tmp_path: Path) -> None:
    path, clock, retention = tmp_path / "records.sqlite", FakeClock(), timedelta(hours=1)
    store = SQLiteIdempotencyStore(path, clock, retention)
    for number in range(4):
        store.claim(job(f"job-{number}"), owner="a", lease=timedelta(seconds=1))
    store.close()
    with closing(sqlite3.connect(path)) as file, file:
        keys = [key for (key,) in file.execute("SELECT key FROM record ORDER BY key")]
        file.execute("UPDATE record SET key = ? WHERE key = ?", (f"{keys[0]} of another", keys[0]))
    clock.advance(seconds=3602)
    with closing(SQLiteStoreAdmin(path, clock, retention)) as admin:
        assert len(list(admin.records())) == 3
        page = admin.purge(limit=2)
        assert (page.seen, page.deleted) == (1, 1)
        assert page.after is not None
        assert admin.purge(after=page.after, limit=10).deleted == 2


def test_a_key_that_is_no_text_ends_no_page_and_stops_nobody(tmp_path: Path) -> None:
    path, clock, retention = tmp_path / "records.sqlite", FakeClock(), timedelta(hours=1)
    store = SQLiteIdempotencyStore(path, clock, retention)
    for number in range(4):
        store.claim(job(f"job-{number}"), owner="a", lease=timedelta(seconds=1))
    with closing(sqlite3.connect(path)) as file, file:
        keys = [key for (key,) in file.execute("SELECT key FROM record ORDER BY key")]
        odd = keys[0].encode() + b"\xff"
        file.execute("UPDATE record SET key = CAST(? AS TEXT) WHERE key = ?", (odd, keys[0]))
    clock.advance(seconds=3602)
    with closing(SQLiteStoreAdmin(path, clock, retention)) as admin:
        assert {str(record.key) for record in admin.records()} == set(keys[1:])
        seen, deleted, after = 0, 0, None
        for _ in range(10):
            page = admin.purge(after=after, limit=1)
            seen, deleted, after = seen + page.seen, deleted + page.deleted, page.after
            if after is None:
                break
        assert (seen, deleted, after) == (3, 3, None)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT CAST(key AS BLOB) FROM record").fetchall() == [(odd,)]
    store.close()


def test_a_foreign_row_stops_its_own_job_alone(tmp_path: Path) -> None:
    path, clock = tmp_path / "records.sqlite", FakeClock()
    with closing(SQLiteIdempotencyStore(path, clock, timedelta(hours=1))) as store:
        store.claim(job("1"), owner="a", lease=timedelta(seconds=1))
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE record SET owner = CAST(x'ff' AS TEXT)")
        for _ in range(2):
            with pytest.raises(ForeignRecordError):
                store.claim(job("1"), owner="b", lease=timedelta(seconds=1))
            with pytest.raises(ForeignRecordError):
                store.find(job("1").key)
        assert isinstance(store.claim(job("2"), owner="b", lease=timedelta(seconds=1)), Acquired)
