"""The `IdempotencyStore` in a SQLite file. The domain judges; SQLite's write lock makes judging and writing one."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final

from adapters.sqlite.database import open_database
from adapters.sqlite.group_commit import GroupCommit
from domain.answer import Answer
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.clock import Clock
from domain.record import RELEASED, Acquired, Claim, ClaimAnswer, Free, Record, Status, judge

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_SELECT: Final = """
    SELECT job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error,
           first_seen
    FROM record WHERE key = ?
"""
_REPLACE: Final = """
    INSERT OR REPLACE INTO record (key, job_id, operation, status, owner, attempts, lease_until, expires_at,
                                   fingerprint, last_error, first_seen)
    VALUES (?, ?, ?, 'INPROGRESS', ?, ?, ?, ?, ?, ?, ?)
"""
_HELD: Final = "WHERE key = ? AND status = 'INPROGRESS' AND owner = ? AND attempts = ?"
_COMPLETE: Final = f"UPDATE record SET status = 'COMPLETED', answer = ?, omitted = ?, expires_at = ? {_HELD}"
_RELEASE: Final = (
    "UPDATE record SET owner = NULL, lease_until = ?, last_error = coalesce(?, last_error), "
    f"fingerprint = iif(?, NULL, fingerprint) {_HELD}"
)
_RENEW: Final = (
    f"UPDATE record SET lease_until = max(lease_until, ?1), expires_at = iif(lease_until < ?1, ?2, expires_at) {_HELD}"
)
_COMPLETED: Final = "SELECT 1 FROM record WHERE key = ? AND status = 'COMPLETED' AND owner = ? AND attempts = ?"
_RELEASED: Final = "SELECT 1 FROM record WHERE key = ? AND owner IS NULL AND attempts = ? AND lease_until = ?"


class SQLiteIdempotencyStore:
    """Thread-safe, and safe among processes on one machine. Raises `UnusableDatabaseError` when it is made."""

    max_answer_bytes: int | None = 100_000_000

    def __init__(self, path: Path, clock: Clock, retention: timedelta) -> None:
        self._clock = clock
        self._retention = retention
        self._path = path = path.absolute()  # whatever folder an operation may change to
        self._writer = open_database(path)
        self._writes = GroupCommit(self._writer, self._check_in_place)
        self._reader = open_database(path)
        self._file = _identity(path)
        self._reading = Lock()

    def close(self) -> None:
        """Give the file back."""
        self._writer.close()
        self._reader.close()

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        seen = judge(self.find(job.key), job, owner, self._clock.now())
        if not isinstance(seen, Free):  # most duplicates: no write, no flush
            return seen

        def work(connection: sqlite3.Connection) -> ClaimAnswer:
            now = self._clock.now()
            old = _read(connection, job.key)
            seen = judge(old, job, owner, now)
            if not isinstance(seen, Free):
                return seen
            attempts = (old.attempts if old else 0) + 1
            last_error = old.last_error if old else None
            first_seen = old.first_seen if old and old.first_seen else now
            ends = _number(now + lease), _number(now + max(self._retention, lease))
            identity = str(job.key), job.job_id, job.operation
            connection.execute(
                _REPLACE, (*identity, owner, attempts, *ends, job.fingerprint, last_error, _number(first_seen))
            )
            return Acquired(Claim(job.key, owner, attempts), last_error, seen.verified)

        with _translated():
            return self._writes.run(work)

    def complete(self, claim: Claim, answer: Answer) -> None:
        values = (answer.text, answer.omitted, _number(self._clock.now() + self._retention))
        self._write(claim, _COMPLETE, values, unless=_COMPLETED, was=_fence(claim))

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False) -> None:
        values = (_number(RELEASED), error or None, forget_payload)
        was = (str(claim.key), claim.attempt, _number(RELEASED))
        self._write(claim, _RELEASE, values, unless=_RELEASED, was=was)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        now = self._clock.now()
        self._write(claim, _RENEW, (_number(now + lease), _number(now + max(self._retention, lease))))

    def find(self, key: JobKey) -> Record | None:
        with _translated(), self._reading:
            return _read(self._reader, key)

    def _check_in_place(self) -> None:
        """SQLite would go on writing to a file that nobody finds any more."""
        if _identity(self._path) != self._file:
            raise sqlite3.OperationalError(f"{self._path} was deleted or replaced while it was in use")

    def _write(
        self,
        claim: Claim,
        statement: str,
        values: tuple[object, ...],
        *,
        unless: str | None = None,
        was: tuple[object, ...] = (),
    ) -> None:
        """Write under the fence; `unless` with `was` finds the record where the same claim wrote just that before."""

        def work(connection: sqlite3.Connection) -> None:
            landed = connection.execute(statement, (*values, *_fence(claim))).rowcount == 1
            if not landed and (unless is None or connection.execute(unless, was).fetchone() is None):
                raise LeaseLostError(f"{claim.key}: attempt {claim.attempt} holds no claim")

        with _translated():
            self._writes.run(work)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _fence(claim: Claim) -> tuple[str, str, int]:
    return str(claim.key), claim.owner, claim.attempt


def _read(connection: sqlite3.Connection, key: JobKey) -> Record | None:
    row: tuple[Any, ...] | None = connection.execute(_SELECT, (str(key),)).fetchone()
    if row is None:
        return None
    job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error, first_seen = row
    return Record(
        key=key,
        job_id=job_id,
        status=Status(status),
        owner=owner,
        attempts=attempts,
        lease_until=_moment(lease_until),
        expires_at=_moment(expires_at),
        fingerprint=fingerprint,
        answer=None if answer is None else Answer(answer, omitted),
        last_error=last_error,
        first_seen=_moment(first_seen),
    )


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _moment(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"SQLite: {error}") from error
