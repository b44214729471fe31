"""A record as a row, and the units of its times."""

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from domain.answer import Answer
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.life import Life
from domain.record import RELEASED, Record, Status

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_LARGEST: Final = 10**16 - 1
"""Of a count; the stores agree on it."""

COLUMNS: Final = (
    "job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error, first_seen, "
    "last_seen, epoch, life, runs, unended, rejected_at, released_by"
)


def text_or_bytes(stored: bytes) -> str | bytes:
    """For `Connection.text_factory`: what is no UTF-8 stays as it is, or SQLite would give no row of the page."""
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


REPLACE: Final = """
    INSERT OR REPLACE INTO record (key, job_id, operation, status, owner, attempts, lease_until, expires_at,
                                   fingerprint, answer, omitted, last_error, first_seen, last_seen, epoch,
                                   life, runs, unended, rejected_at, released_by)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
"""Its values are those of `row`."""


def read(connection: sqlite3.Connection, key: JobKey) -> Record | None:
    """The record, or None."""
    row = connection.execute(f"SELECT {COLUMNS} FROM record WHERE key = ?", (str(key),)).fetchone()
    return None if row is None else to_record(key, row)


def to_record(key: JobKey, row: tuple[Any, ...]) -> Record:
    """From the values of `COLUMNS`. Raises `ForeignRecordError` for what onejob never writes."""
    try:
        return _to_record(key, row)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ForeignRecordError(f"{key}: the record is not one of onejob: {type(error).__name__}") from error


def _to_record(key: JobKey, row: tuple[Any, ...]) -> Record:
    job_id, status, owner, attempts, lease_until, expires_at, fingerprint, answer, omitted, last_error, *rest = row
    first_seen, last_seen, epoch, life, runs, unended, rejected_at, released_by = rest
    for text in (job_id, owner, fingerprint, answer, omitted, last_error, released_by):
        if not isinstance(text, str | None):  # no UTF-8
            raise TypeError
    if not (0 <= attempts <= _LARGEST and 1 <= epoch <= _LARGEST) or min(lease_until, expires_at, first_seen) < 0:
        raise ValueError
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
        life=Life(life, runs, unended, None if rejected_at is None else to_moment(rejected_at)),
        released_by=released_by,
    )


def row(record: Record) -> tuple[object, ...]:
    """All values of a record, in the order of the table's columns with the key before them."""
    answer, life = record.answer, record.life
    return (
        *(str(record.key), record.job_id, record.key.operation, record.status, record.owner, record.attempts),
        *(_number(record.lease_until or RELEASED), to_number(record.expires_at), record.fingerprint),
        *(answer and answer.text, answer and answer.omitted, record.last_error),
        *(_number(record.first_seen), _number(record.last_seen), record.epoch),
        *(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by),
    )


def _number(moment: datetime | None) -> int | None:
    return None if moment is None else to_number(moment)


def to_number(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def to_moment(microseconds: int) -> datetime:
    """The moment of a time in microseconds."""
    return _EPOCH + microseconds * _MICROSECOND
