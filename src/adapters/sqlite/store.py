"""The `IdempotencyStore` in a SQLite file. The domain judges; SQLite's write lock makes judging and writing one."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.sqlite.database import open_database
from adapters.sqlite.group_commit import GroupCommit
from adapters.sqlite.rows import read, to_number, translated
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.clock import Clock
from domain.record import RELEASED, Acquired, Claim, ClaimAnswer, Free, Record, judge

_REPLACE: Final = """
    INSERT OR REPLACE INTO record (key, job_id, operation, status, owner, attempts, lease_until, expires_at,
                                   fingerprint, last_error, first_seen, last_seen, epoch)
    VALUES (?, ?, ?, 'INPROGRESS', ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_HELD: Final = "WHERE key = ? AND status = 'INPROGRESS' AND owner = ? AND attempts = ?"
_COMPLETE: Final = (
    f"UPDATE record SET status = 'COMPLETED', answer = ?, omitted = ?, expires_at = ?, last_seen = ? {_HELD}"
)
_RELEASE: Final = (
    "UPDATE record SET owner = NULL, lease_until = ?, last_error = coalesce(?, last_error), "
    f"fingerprint = iif(?, NULL, fingerprint), last_seen = ? {_HELD}"
)
_RENEW: Final = (
    f"UPDATE record SET lease_until = max(lease_until, ?1), expires_at = iif(lease_until < ?1, ?2, expires_at) {_HELD}"
)
_COMPLETED: Final = "SELECT 1 FROM record WHERE key = ? AND status = 'COMPLETED' AND owner = ? AND attempts = ?"
_RELEASED: Final = "SELECT 1 FROM record WHERE key = ? AND owner IS NULL AND attempts = ? AND lease_until = ?"


class SQLiteIdempotencyStore:
    """Thread-safe, and safe among processes on one machine. Raises `UnusableDatabaseError` when it is made."""

    max_answer_bytes: int | None = 100_000_000

    def __init__(self, path: Path, clock: Clock, retention: timedelta, threads: Threads = SYSTEM_THREADS) -> None:
        self._clock = clock
        self._retention = retention
        self._path = path = path.absolute()  # whatever folder an operation may change to
        self._writer = open_database(path)
        self._writes = GroupCommit(self._writer, self._check_in_place, threads)
        self._reader = open_database(path)
        self._file = _identity(path)
        self._reading = threads.lock()

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
            old = read(connection, job.key)
            seen = judge(old, job, owner, now)
            if not isinstance(seen, Free):
                return seen
            attempts, epoch = (old.attempts if old else 0) + 1, old.epoch if old else 1
            last_error = old.last_error if old else None
            first_seen = old.first_seen if old and old.first_seen else now
            ends = to_number(now + lease), to_number(now + max(self._retention, lease))
            identity = str(job.key), job.job_id, job.operation
            times = to_number(first_seen), to_number(now)
            connection.execute(
                _REPLACE, (*identity, owner, attempts, *ends, job.fingerprint, last_error, *times, epoch)
            )
            return Acquired(Claim(job.key, owner, attempts, epoch), last_error, seen.verified)

        with translated():
            return self._writes.run(work)

    def complete(self, claim: Claim, answer: Answer) -> None:
        now = self._clock.now()
        values = (answer.text, answer.omitted, to_number(now + self._retention), to_number(now))
        self._write(claim, _COMPLETE, values, unless=_COMPLETED, was=_fence(claim))

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False) -> None:
        values = (to_number(RELEASED), error or None, forget_payload, to_number(self._clock.now()))
        was = (str(claim.key), claim.attempt, to_number(RELEASED))
        self._write(claim, _RELEASE, values, unless=_RELEASED, was=was)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        now = self._clock.now()
        self._write(claim, _RENEW, (to_number(now + lease), to_number(now + max(self._retention, lease))))

    def find(self, key: JobKey) -> Record | None:
        with translated(), self._reading:
            return read(self._reader, key)

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

        with translated():
            self._writes.run(work)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _fence(claim: Claim) -> tuple[str, str, int]:
    return str(claim.key), claim.owner, claim.attempt
