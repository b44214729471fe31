"""The `IdempotencyStore` in a SQLite file. The domain judges; SQLite's write lock makes judging and writing one."""

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.sqlite.database import BUSY_TIMEOUT
from adapters.sqlite.file import DatabaseFile
from adapters.sqlite.group_commit import GroupCommit
from adapters.sqlite.rows import read, to_number
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.clock import Clock
from domain.record import (
    RELEASED,
    Claim,
    ClaimAnswer,
    Free,
    Record,
    RunCount,
    acquired,
    claimed,
    counted,
    judge,
)

_REPLACE: Final = """
    INSERT OR REPLACE INTO record (key, job_id, operation, status, owner, attempts, lease_until, expires_at,
                                   fingerprint, last_error, first_seen, last_seen, epoch, runs, rejected)
    VALUES (?, ?, ?, 'INPROGRESS', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_HELD: Final = "WHERE key = ? AND status = 'INPROGRESS' AND owner = ? AND attempts = ?"
_COMPLETE: Final = (
    f"UPDATE record SET status = 'COMPLETED', answer = ?, omitted = ?, expires_at = ?, last_seen = ? {_HELD}"
)
_BEGIN: Final = (
    f"UPDATE record SET rejected = iif(?1 AND runs = ?2, NULL, rejected), runs = iif(runs = ?2, ?3, runs) {_HELD}"
)
_RELEASE: Final = (
    "UPDATE record SET owner = NULL, lease_until = ?, last_error = coalesce(?, last_error), "
    "fingerprint = iif(?, NULL, fingerprint), last_seen = ?, runs = iif(?, 0, runs) + ?, "
    f"rejected = coalesce(?, iif(?, NULL, rejected)) {_HELD}"
)
_RENEW: Final = (
    f"UPDATE record SET lease_until = max(lease_until, ?1), expires_at = iif(lease_until < ?1, ?2, expires_at) {_HELD}"
)
_COMPLETED: Final = "SELECT 1 FROM record WHERE key = ? AND status = 'COMPLETED' AND owner = ? AND attempts = ?"
_RELEASED: Final = "SELECT 1 FROM record WHERE key = ? AND owner IS NULL AND attempts = ? AND lease_until = ?"


class SQLiteIdempotencyStore:
    """Thread-safe, and safe among processes on one machine. Raises `UnusableDatabaseError` when it is made.

    A write waits for the writers of other processes for `busy_timeout`, behind another thread for twice that; then it
    is `StoreUnavailableError`. Readers wait for no writer.
    """

    max_answer_bytes: int | None = 100_000_000

    def __init__(
        self,
        path: Path,
        clock: Clock,
        retention: timedelta,
        threads: Threads = SYSTEM_THREADS,
        *,
        busy_timeout: timedelta = BUSY_TIMEOUT,
    ) -> None:
        self._clock = clock
        self._retention = retention
        self._file = DatabaseFile(path, busy_timeout)
        self._writer = self._file.connect()
        self._writes = GroupCommit(self._writer, self._file.check_in_place, threads)
        try:
            self._reader = self._file.connect()
        except BaseException:
            self._writer.close()
            raise
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
            new = claimed(old, job, owner=owner, now=now, lease=lease, retention=self._retention)
            connection.execute(_REPLACE, _row(new, job.operation))
            return acquired(new, seen)

        with self._file.translated():
            return self._writes.run(work)

    def complete(self, claim: Claim, answer: Answer) -> None:
        now = self._clock.now()
        values = (answer.text, answer.omitted, to_number(now + self._retention), to_number(now))
        self._write(claim, _COMPLETE, values, unless=_COMPLETED, was=_fence(claim))

    def begin(self, claim: Claim, *, anew: bool) -> None:
        self._write(claim, _BEGIN, (anew, claim.runs, 1 if anew else claim.runs + 1))

    def release(
        self,
        claim: Claim,
        error: str,
        *,
        forget_payload: bool = False,
        runs: RunCount = RunCount.SAME,
        rejected: str | None = None,
    ) -> None:
        anew, now = runs is RunCount.FIRST, to_number(self._clock.now())
        counts = anew, counted(0, runs), rejected, anew
        values = (to_number(RELEASED), error or None, forget_payload, now, *counts)
        was = (str(claim.key), claim.attempt, to_number(RELEASED))
        self._write(claim, _RELEASE, values, unless=_RELEASED, was=was)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        now = self._clock.now()
        self._write(claim, _RENEW, (to_number(now + lease), to_number(now + max(self._retention, lease))))

    def find(self, key: JobKey) -> Record | None:
        with self._file.translated():
            with self._reading:
                found = read(self._reader, key)
            self._file.check_in_place()
            return found

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

        with self._file.translated():
            self._writes.run(work)


def _row(record: Record, operation: str) -> tuple[object, ...]:
    """The values of `_REPLACE`."""
    assert record.lease_until is not None  # noqa: S101
    assert record.first_seen is not None  # noqa: S101
    assert record.last_seen is not None  # noqa: S101
    ends = to_number(record.lease_until), to_number(record.expires_at)
    times = to_number(record.first_seen), to_number(record.last_seen)
    return (
        *(str(record.key), record.job_id, operation, record.owner, record.attempts, *ends, record.fingerprint),
        *(record.last_error, *times, record.epoch, record.runs, record.rejected),
    )


def _fence(claim: Claim) -> tuple[str, str, int]:
    return str(claim.key), claim.owner, claim.attempt
