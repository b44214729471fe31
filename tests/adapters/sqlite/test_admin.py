"""The operators' port over a file in which something else stands too."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from adapters.sqlite.admin import SQLiteStoreAdmin
from adapters.sqlite.store import SQLiteIdempotencyStore
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
