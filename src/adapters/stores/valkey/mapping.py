"""A record as a hash, the name of its key, and the units of its times."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from domain.answer import Answer
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.life import Life
from domain.record import Record, Status

PREFIX: Final = "onejob:"

_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LIFE: Final = {"life": "1", "runs": "0", "unended": "0", "rejected_at": ""}
_WHOLE: Final = re.compile(r"[0-9]{1,16}")


def name_of(key: JobKey) -> str:
    """The name under which the server keeps its record."""
    return f"{PREFIX}{key}"


def key_of(name: bytes) -> JobKey | None:
    """The key whose record has this name; None where it is none of onejob's."""
    before, _, key = name.decode(errors="replace").partition(PREFIX)
    return None if before else JobKey.parse(key)


def to_record(found: Mapping[bytes, bytes], key: JobKey) -> Record:
    """Raises `ForeignRecordError` for a value of another tool, by the rules of the scripts and more."""
    try:
        read = {name.decode(): value.decode() for name, value in found.items()}
        status = Status(read["status"])
        return Record(
            key=key,
            job_id=read["job_id"],
            status=status,
            owner=read.get("owner"),
            attempts=_whole(read["attempts"]),
            lease_until=_to_moment(read["lease_until"]),
            expires_at=_to_moment(read["expires_at"]),
            fingerprint=read.get("fingerprint"),
            answer=Answer(read["answer"], read.get("omitted")) if status is Status.COMPLETED else None,
            last_error=read.get("last_error"),
            first_seen=_to_moment(read["first_seen"]),
            last_seen=_to_moment(read["last_seen"]),
            epoch=_epoch(read["epoch"]),
            life=to_life(*(read.get(name, default) for name, default in _LIFE.items())),
            released_by=read.get("released_by"),
        )
    except (KeyError, ValueError, ArithmeticError) as error:
        raise ForeignRecordError(f"{key}: the record is not one of onejob: {type(error).__name__}") from error


def to_life(number: str, runs: str, unended: str, rejected_at: str) -> Life:
    """The count of runs, from its values as text. Raises `ValueError`."""
    return Life(_whole(number), _whole(runs), _whole(unended), _to_moment(rejected_at) if rejected_at else None)


def of_life(life: Life) -> tuple[int, int, int, int | str]:
    """The count of runs, as the scripts take it."""
    return life.number, life.runs, life.unended, "" if life.rejected_at is None else to_number(life.rejected_at)


def to_number(moment: datetime) -> int:
    """Microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def _whole(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError
    return int(text)


def _epoch(text: str) -> int:
    if (number := _whole(text)) < 1:
        raise ValueError
    return number


def _to_moment(microseconds: str) -> datetime:
    return _EPOCH + _whole(microseconds) * _MICROSECOND
