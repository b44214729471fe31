"""The real SQLite store on a real file. Each simulated process has its own, whose locks are places to switch.

So claims of one process line up, and share a commit; and a commit may fail with all that it carries.
"""

import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path
from shutil import rmtree
from typing import Any, Final

from greenlet import getcurrent

from adapters.stores.sqlite.admin import SQLiteStoreAdmin
from adapters.stores.sqlite.database import BUSY_TIMEOUT, open_database
from adapters.stores.sqlite.file import DatabaseFile
from adapters.stores.sqlite.group_commit import GroupCommit, Work
from adapters.stores.sqlite.rows import read
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.threads.seam import Threads
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store_admin import StoreAdmin
from domain.record import Record
from tests.simulation.backends import Backend, Do, RequestClock, Seen
from tests.simulation.plan import FAULTS_UNTIL, Plan
from tests.simulation.threads import GreenThreads
from tests.simulation.world import Process, Violation, World

MEMORY_DISK: Final = Path("/dev/shm")
DELETE_ALL: Final = "DELETE FROM record"
DELETE: Final = "DELETE FROM record WHERE key = ?"


def still_backend(world: World, plan: Plan) -> Backend:
    """One store that serves all, and no switch in it: its traces are those of the other stores."""
    clock, retention = RequestClock(), timedelta(seconds=plan.retention)
    _connection().execute(DELETE_ALL)
    store = SQLiteIdempotencyStore(_file(), clock, retention)
    return _Still(store, clock, retention, _no_stock_record, _delete, _admins(retention))


def sqlite_backend(world: World, plan: Plan) -> Backend:
    """A store for each process, with a switch wherever it waits for a lock."""
    clock, retention = TaskClock(), timedelta(seconds=plan.retention)
    _connection().execute(DELETE_ALL)
    store = SQLiteIdempotencyStore(_file(), clock, retention)
    return _Switching(store, clock, retention, _no_stock_record, _delete, _admins(retention), world, plan)


class _Still(Backend):
    def close(self) -> None:
        assert isinstance(self.store, SQLiteIdempotencyStore)
        self.store.close()


@dataclass(slots=True, eq=False)
class _Request:
    """One request under way. `landed` once its transaction is there to stay."""

    key: JobKey
    asked_at: datetime
    seen: Seen
    transition: tuple[Record | None, Record | None, Any] | None = None
    landed: bool = False

    def land(self) -> None:
        assert self.transition is not None
        self.landed = True
        self.seen(*self.transition)


class TaskClock(RequestClock):
    """The time of the request that a task is at; within a shared commit, of the request whose piece of work runs."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: dict[object, _Request] = {}
        self.piece: _Request | None = None

    @property
    def request(self) -> _Request:
        return self.requests[getcurrent()]

    def now(self) -> datetime:
        return (self.piece or self.request).asked_at


@dataclass(slots=True)
class _Switching(Backend):
    world: World
    plan: Plan
    stores: dict[Process, SQLiteIdempotencyStore] = field(default_factory=dict)

    @property
    def switches(self) -> bool:
        return True

    def land(self, process: Process, key: JobKey, asked_at: datetime, do: Do, seen: Seen) -> Any:
        clock, task = self.clock, getcurrent()
        assert isinstance(clock, TaskClock)
        store = self.stores.get(process) or self._open(process)
        clock.requests[task] = request = _Request(key, asked_at, seen)
        try:
            result = do(store)
        except StoreUnavailableError as error:
            return error
        except Exception as error:
            result = error
        finally:
            del clock.requests[task]
        if request.transition is None:  # it only read, at this instant
            before = self.peek(key)
            seen(before, before, result)
        elif not request.landed:
            raise Violation(f"answered from a transaction that was rolled back: {result}")
        return result

    def peek(self, key: JobKey) -> Record | None:
        return read(_connection(), key)

    def close(self) -> None:
        assert isinstance(self.store, SQLiteIdempotencyStore)
        for store in (self.store, *self.stores.values()):
            store.close()

    def _open(self, process: Process) -> SQLiteIdempotencyStore:
        assert isinstance(self.clock, TaskClock)
        threads = GreenThreads(self.world, process, slowness=self.plan.hostile and 1 + self.plan.seed // 2 % 2)
        self.stores[process] = store = SQLiteIdempotencyStore(_file(), self.clock, self.retention, threads)
        connection: Any = _Connection(store._writer, self.commit_fails)
        store._writes = _WatchedCommit(connection, self.clock, store._file.check_in_place, threads)
        return store

    def commit_fails(self) -> bool:
        """As when the disk is full."""
        plan, world = self.plan, self.world
        return plan.hostile and world.now < FAULTS_UNTIL and world.chance.random() * 1000 < plan.throttled


class _Connection:
    """A connection on which a commit may fail. `landed` are the requests whose work is in the transaction."""

    def __init__(self, connection: sqlite3.Connection, fails: Callable[[], bool]) -> None:
        self._connection, self._fails = connection, fails
        self.pending: list[_Request] = []

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        match statement:
            case "COMMIT" if self._fails():
                raise sqlite3.OperationalError("database or disk is full")
            case "BEGIN IMMEDIATE":
                self.pending = []
        done = self._connection.execute(statement, values)
        if statement == "COMMIT":
            pending, self.pending = self.pending, []
            for request in pending:
                request.land()
            _Counts.commits += 1
            _Counts.shared += len(pending) > 1
        return done


class _Counts:
    """Of this interpreter: how many commits, and how many of them were shared."""

    commits = 0
    shared = 0


def counts() -> tuple[int, int]:
    """Commits so far, and those that several requests shared."""
    return _Counts.commits, _Counts.shared


class _WatchedCommit(GroupCommit):
    """Each piece of work has the time of who asked for it, and is seen when it is there to stay."""

    def __init__(self, connection: Any, clock: TaskClock, check: Callable[[], None], threads: Threads) -> None:
        super().__init__(connection, check, threads)
        self._clock = clock

    def run[T](self, work: Work[T]) -> T:
        clock, request = self._clock, self._clock.request

        def watched(connection: Any) -> T:
            before, clock.piece = read(connection, request.key), request
            try:
                result: Any = work(connection)
            except sqlite3.Error:
                raise
            except Exception as error:
                result = error
            finally:
                clock.piece = None
            request.transition = before, read(connection, request.key), result
            connection.pending.append(request)
            if isinstance(result, Exception):
                raise result
            return result  # type: ignore[no-any-return]

        return super().run(watched)


def _no_stock_record(record: Record) -> None:
    """No other tool writes into this file."""


def _admins(retention: timedelta) -> Callable[[Clock], StoreAdmin]:
    """All on one connection, which none of them holds at a switch."""

    def make(clock: Clock) -> StoreAdmin:
        admin = SQLiteStoreAdmin.__new__(SQLiteStoreAdmin)
        admin._clock, admin._retention, admin._connection = clock, retention, _connection()
        admin._file = _database()
        return admin

    return make


def _delete(key: JobKey) -> None:
    _connection().execute(DELETE, (str(key),))


@cache
def _database() -> DatabaseFile:
    return DatabaseFile(_file(), BUSY_TIMEOUT)


@cache
def _file() -> Path:
    """One for this interpreter, emptied for each run."""
    folder = tempfile.mkdtemp(prefix="onejob-simulation-", dir=MEMORY_DISK if MEMORY_DISK.is_dir() else None)
    Finalize(None, rmtree, (folder, True), exitpriority=0)  # also in a process of a pool, which `atexit` forgets
    return Path(folder, "records.db")


@cache
def _connection() -> sqlite3.Connection:
    """For what is done past the port."""
    return open_database(_file())
