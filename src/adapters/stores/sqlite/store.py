"""The `IdempotencyStore` in a SQLite file. The domain judges; SQLite's write lock makes judging and writing one."""

import sqlite3
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.stores.sqlite.database import BUSY_TIMEOUT
from adapters.stores.sqlite.file import DatabaseFile
from adapters.stores.sqlite.group_commit import GroupCommit
from adapters.stores.sqlite.rows import REPLACE, read, row, to_number
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.ports.clock import Clock
from domain.record import (
    Claim,
    Claimable,
    ClaimAnswer,
    Record,
    acquired,
    begun,
    claimed,
    completed,
    is_held_by,
    judge,
    released,
    renewed,
    was_completed_by,
    was_released_by,
)

_COMPLETE: Final = """
    UPDATE record SET status = 'COMPLETED', answer = ?, omitted = ?, expires_at = ?, last_seen = ?,
                      runs = 0, unended = 0, rejected_at = NULL
    WHERE key = ? AND status = 'INPROGRESS' AND owner = ? AND attempts = ?
"""
"""`domain.record.completed`, in one statement: most jobs end so."""


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
        allow_network: bool = False,
    ) -> None:
        self._clock = clock
        self._retention = retention
        self._file = DatabaseFile(path, busy_timeout, allow_network=allow_network)
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
        if not isinstance(seen, Claimable):  # most duplicates: no write, no flush
            return seen

        def work(connection: sqlite3.Connection) -> ClaimAnswer:
            now = self._clock.now()
            old = read(connection, job.key)
            seen = judge(old, job, owner, now)
            if not isinstance(seen, Claimable):
                return seen
            new = claimed(old, job, owner=owner, now=now, lease=lease, retention=self._retention)
            connection.execute(REPLACE, row(new))
            return acquired(new, verified=seen.verified)

        with self._file.translate_errors():
            return self._writes.run(work)

    def begin(self, claim: Claim, life: Life) -> None:
        self._write(claim, lambda held: begun(held, claim, life))

    def complete(self, claim: Claim, answer: Answer) -> None:
        now = self._clock.now()
        values = answer.text, answer.omitted, to_number(now + self._retention), to_number(now)

        def write_it(connection: sqlite3.Connection) -> bool:
            fence = str(claim.key), claim.owner, claim.attempt
            return connection.execute(_COMPLETE, (*values, *fence)).rowcount == 1

        self._write(
            claim,
            lambda held: completed(held, answer, now, self._retention),
            unless=was_completed_by,
            at_once=write_it,
        )

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        now = self._clock.now()
        self._write(
            claim,
            lambda held: released(held, claim, now, error, forget_payload=forget_payload, life=life),
            unless=was_released_by,
        )

    def renew(self, claim: Claim, lease: timedelta) -> None:
        now = self._clock.now()
        self._write(claim, lambda held: renewed(held, now, lease, self._retention))

    def find(self, key: JobKey) -> Record | None:
        with self._file.translate_errors():
            with self._reading:
                found = read(self._reader, key)
            self._file.check_in_place()
            return found

    def _write(
        self,
        claim: Claim,
        change: Callable[[Record], Record],
        *,
        unless: Callable[[Record | None, Claim], bool] = lambda *_: False,
        at_once: Callable[[sqlite3.Connection], bool] = lambda _: False,
    ) -> None:
        """Write under the fence. `unless` says whether the same claim wrote just that before; `at_once` writes where it
        may without a look.
        """

        def work(connection: sqlite3.Connection) -> None:
            if at_once(connection):
                return
            old = read(connection, claim.key)
            if unless(old, claim):
                return
            if old is None or not is_held_by(old, claim):
                raise LeaseLostError(f"{claim.key}: attempt {claim.attempt} holds no claim")
            new = change(old)
            if new != old:
                connection.execute(REPLACE, row(new))

        with self._file.translate_errors():
            self._writes.run(work)
