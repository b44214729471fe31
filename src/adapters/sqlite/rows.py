"""A record as a row, and the units of its times."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.record import Record, Status

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

COLUMNS: Final = (
    "job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error, first_seen, "
    "last_seen, epoch, runs, rejected"
)


def read(connection: sqlite3.Connection, key: JobKey) -> Record | None:
    """The record, or None."""
    row = connection.execute(f"SELECT {COLUMNS} FROM record WHERE key = ?", (str(key),)).fetchone()
    return None if row is None else to_record(key, row)


def to_record(key: JobKey, row: tuple[Any, ...]) -> Record:
    """From the values of `COLUMNS`."""
    job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error, *rest = row
    first_seen, last_seen, epoch, runs, rejected = rest
    return Record(
        key=key,
        job_id=job_id,
        status=Status(status),
        owner=owner,
        attempts=attempts,
        lease_until=to_moment(lease_until),
        expires_at=to_moment(expires_at),
        fingerprint=fingerprint,
        answer=None if answer is None else Answer(answer, omitted),
        last_error=last_error,
        first_seen=to_moment(first_seen),
        last_seen=None if last_seen is None else to_moment(last_seen),
        epoch=epoch,
        runs=runs,
        rejected=rejected,
    )


def to_number(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def to_moment(microseconds: int) -> datetime:
    """The moment of a time in microseconds."""
    return _EPOCH + microseconds * _MICROSECOND


@contextmanager
def translated() -> Iterator[None]:
    """SQLite's errors as the port's."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailableError(f"SQLite: {error}") from error
