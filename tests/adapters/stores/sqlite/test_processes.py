"""Many processes on one file: of simultaneous claims one is acquired, and a busy file is an error in the end."""

import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.system import SystemClock
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Busy, Completed
from tests.support.jobs import job

ROOT = Path(__file__).parents[4]
WORKERS = 6
JOBS = 100


def start(path: Path, name: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(Path(__file__).with_name("racing_worker.py")), str(path), name, "0", str(JOBS)]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def test_of_simultaneous_claims_across_processes_one_is_acquired(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    workers = [start(path, f"w{number}") for number in range(WORKERS)]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n", "all of them made or opened the same new file"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    acquired: Counter[str] = Counter()
    for worker in workers:
        acquired.update(worker.communicate(timeout=60)[0].split())
        assert worker.returncode == 0
    assert acquired == Counter({str(number): 1 for number in range(JOBS)})
    store = SQLiteIdempotencyStore(path, SystemClock(), timedelta(days=1))
    for number in range(JOBS):
        answer = store.claim(job(str(number)), owner="late", lease=timedelta(seconds=60))
        assert isinstance(answer, Completed if number % 2 else Busy)
    store.close()


def test_a_process_that_ends_cleanly_takes_nothing_from_one_that_goes_on(tmp_path: Path) -> None:
    """It would, if any descriptor of the file were closed beside SQLite: the locks of the process would go with it."""
    path = tmp_path / "records.sqlite"
    store = SQLiteIdempotencyStore(path, SystemClock(), timedelta(days=1))
    for number in range(JOBS):
        claimed = store.claim(job(f"long-{number}"), owner="a", lease=timedelta(seconds=60))
        assert isinstance(claimed, Acquired)
        if number % 20 == 0:
            other = start(path, f"w{number}")
            other.communicate("go\n", timeout=60)
            assert other.returncode == 0
        store.complete(claimed.claim, Answer("1"))
    assert path.with_name("records.sqlite-wal").exists()
    fresh = SQLiteIdempotencyStore(path, SystemClock(), timedelta(days=1))
    for number in range(JOBS):
        assert isinstance(fresh.claim(job(f"long-{number}"), owner="b", lease=timedelta(seconds=60)), Completed)
    assert fresh._reader.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    fresh.close()
    store.close()


def test_a_file_that_stays_locked_is_unavailable_in_the_end(tmp_path: Path) -> None:
    wait = timedelta(seconds=0.05)
    store = SQLiteIdempotencyStore(tmp_path / "records.sqlite", SystemClock(), timedelta(days=1), busy_timeout=wait)
    other = SQLiteIdempotencyStore(tmp_path / "records.sqlite", SystemClock(), timedelta(days=1))
    other._writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailableError, match=r"SQLite: .*another process has held its lock for 0\.05 s"):
        store.claim(job("1"), owner="a", lease=timedelta(seconds=60))
    assert store.find(job("1").key) is None, "reading goes on"
    other._writer.execute("ROLLBACK")
    store.claim(job("1"), owner="a", lease=timedelta(seconds=60))
    store.close()
    other.close()
