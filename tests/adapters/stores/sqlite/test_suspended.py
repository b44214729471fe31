"""A process that is suspended in a write transaction: others are told so within their time, and go on when it ends."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.database import MIGRATIONS, UnusableDatabaseError
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Claim, Completed
from tests.support.clock import FakeClock
from tests.support.jobs import job

LEASE = timedelta(seconds=60)
DAY = timedelta(days=1)
WAIT = timedelta(milliseconds=100)
WITHIN_SECONDS = 5
"""Far more than the wait, far less than SQLite's own patience would be."""
SAYS = (
    r"records\.sqlite: another process has held its lock for 0\.1 s: .*suspended.*"
    r"`fuser -v .*records\.sqlite` or `lsof .*records\.sqlite`"
)


@contextmanager
def suspended(path: Path, *statements: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that took the lock and is then stopped, as by SIGSTOP, Ctrl-Z, a debugger or a frozen container."""
    command = [sys.executable, str(Path(__file__).with_name("holding_process.py")), str(path), *statements]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        try:
            yield process
        finally:
            process.kill()


class World:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.store = SQLiteIdempotencyStore(path, self.clock, DAY, busy_timeout=WAIT)
        self.admin = SQLiteStoreAdmin(path, self.clock, DAY, busy_timeout=WAIT)
        self.claim = self.acquire("held")
        self.store.complete(self.acquire("done"), Answer("1"))

    def acquire(self, job_id: str) -> Claim:
        answer = self.store.claim(job(job_id), owner="a", lease=LEASE)
        assert isinstance(answer, Acquired)
        return answer.claim

    def forget(self) -> None:
        seen = self.admin.look(job("done").key)
        assert seen is not None
        self.admin.forget(seen)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "records.sqlite")
    yield made
    made.store.close()
    made.admin.close()


WRITES: dict[str, Callable[[World], object]] = {
    "claim": lambda world: world.acquire("new"),
    "complete": lambda world: world.store.complete(world.claim, Answer("1")),
    "release": lambda world: world.store.release(world.claim, "OSError"),
    "renew": lambda world: world.store.renew(world.claim, LEASE * 2),
    "forget": World.forget,
    "purge": lambda world: world.admin.purge(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
@pytest.mark.parametrize("ending", [signal.SIGCONT, signal.SIGKILL], ids=["continues", "dies"])
def test_a_write_waits_for_its_time_says_who_is_in_the_way_and_lands_afterwards(
    world: World, write: Callable[[World], object], ending: signal.Signals
) -> None:
    with suspended(world.path, "BEGIN IMMEDIATE", "DELETE FROM record") as process:
        began = time.monotonic()
        with pytest.raises(StoreUnavailableError, match=SAYS):
            write(world)
        assert WAIT.total_seconds() * 0.9 <= time.monotonic() - began < WITHIN_SECONDS
        process.send_signal(ending)
        if ending is signal.SIGCONT:
            process.communicate("go on\n")
        process.wait()
        write(world)


def test_readers_are_not_stopped(world: World) -> None:
    with suspended(world.path, "BEGIN IMMEDIATE", "DELETE FROM record"):
        began = time.monotonic()
        assert isinstance(world.store.claim(job("done"), owner="b", lease=LEASE), Completed)
        assert world.store.find(job("held").key) is not None
        assert world.admin.look(job("held").key) is not None
        assert len(list(world.admin.records())) == 2
        with closing(SQLiteStoreAdmin(world.path, world.clock, DAY, busy_timeout=WAIT)) as opened:
            assert len(list(opened.records())) == 2
        assert time.monotonic() - began < WAIT.total_seconds() * 50


def test_threads_that_wait_together_are_all_told_within_two_waits(world: World) -> None:
    errors: list[Exception] = []

    def write(number: int) -> None:
        try:
            world.acquire(str(number))
        except StoreUnavailableError as error:
            errors.append(error)

    with suspended(world.path, "BEGIN IMMEDIATE"):
        threads = [Thread(target=write, args=(number,)) for number in range(16)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WITHIN_SECONDS)
        assert time.monotonic() - began < WITHIN_SECONDS
    assert len(errors) == 16
    assert all("another process has held its lock" in str(error) for error in errors)


def test_a_new_file_that_another_process_is_making_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with suspended(path, "BEGIN EXCLUSIVE", "CREATE TABLE record (key)") as process:
        began = time.monotonic()
        with pytest.raises(UnusableDatabaseError, match=SAYS):
            SQLiteIdempotencyStore(path, FakeClock(), DAY, busy_timeout=WAIT)
        assert time.monotonic() - began < WITHIN_SECONDS
        process.kill()
        process.wait()
        SQLiteIdempotencyStore(path, FakeClock(), DAY, busy_timeout=WAIT).close()


def test_a_file_that_must_be_brought_up_to_date_first_is_refused_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as older:
        older.execute("PRAGMA journal_mode = WAL")
        older.execute(MIGRATIONS[0])
        older.execute("PRAGMA user_version = 1")
    with suspended(path, "BEGIN IMMEDIATE"):
        began = time.monotonic()
        with pytest.raises(UnusableDatabaseError, match=SAYS):
            SQLiteStoreAdmin(path, FakeClock(), DAY, busy_timeout=WAIT)
        assert time.monotonic() - began < WITHIN_SECONDS
