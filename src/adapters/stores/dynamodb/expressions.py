"""The conditional writes, as DynamoDB expressions: what `IdempotencyStore` says in words stands here in its language.

`#name` is the attribute of that name in the layer's schema, `:name` a value given with the write.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from adapters.stores.dynamodb.record import FencedRecord, to_ms
from domain.life import Life

type Value = dict[str, str]

_EXPIRED: Final = "#expiration < :now"
_LEASE_ENDED: Final = "#lease < :now_ms"
_LEASE_OVER: Final = f"({_LEASE_ENDED} OR (attribute_not_exists(#lease) AND {_EXPIRED}))"
_RETENTION_OVER: Final = f"({_EXPIRED} AND (#status <> :in_progress OR {_LEASE_OVER}))"
_LAPSED: Final = f"#status = :in_progress AND {_LEASE_ENDED} AND NOT ({_EXPIRED})"
_SAME_PAYLOAD: Final = (
    "(attribute_not_exists(#fingerprint) OR #fingerprint = :fingerprint OR NOT begins_with(#fingerprint, :scheme))"
)
_SAME_JOB: Final = "(attribute_not_exists(#job_id) OR #job_id = :job_id)"
_NOT_RELEASED_BY: Final = "(attribute_not_exists(#released_by) OR #released_by <> :owner)"
_HELD: Final = "#status = :in_progress AND #owner = :owner AND #attempts = :attempts"


@dataclass(slots=True)
class Write:
    """One UpdateItem in the making."""

    condition: str
    values: dict[str, Value]
    sets: list[str] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)

    def set(self, attribute: str, value: Value) -> None:
        self.sets.append(f"#{attribute} = :{attribute}")
        self.values[f":{attribute}"] = value

    @property
    def update(self) -> str:
        """The UpdateExpression; empty where nothing is set."""
        if not self.sets:
            return ""
        text = f"SET {', '.join(self.sets)}"
        return f"{text} REMOVE {', '.join(self.removes)}" if self.removes else text

    def names(self, schema: Mapping[str, str]) -> dict[str, str]:
        """Just the attribute names in use; DynamoDB refuses any other."""
        return {f"#{name}": schema.get(name, name) for name in _names_in(f"{self.update} {self.condition}")}


@lru_cache
def _names_in(expressions: str) -> frozenset[str]:
    """Kept, since few texts come up: what varies from job to job are the values."""
    return frozenset(re.findall(r"#(\w+)", expressions))


def claim(record: FencedRecord, now: datetime) -> Write:
    """Take a record that is missing, or lapsed with a matching fingerprint while its retention runs."""
    write = _claim(record, now)
    lapsed = _LAPSED
    if record.scheme:
        write.values[":scheme"] = text(f"{record.scheme}:")
        lapsed = f"{lapsed} AND {_SAME_PAYLOAD}"
    write.sets.append("#unended = if_not_exists(#unended, :zero) + :one")
    if record.owner is not None:
        lapsed = f"{lapsed} AND {_NOT_RELEASED_BY}"
    write.condition = f"attribute_not_exists(#id) OR ({_of_the_same_job(record, lapsed)})"
    return write


def claim_expired(record: FencedRecord, now: datetime) -> Write:
    """Take a record whose retention is over. Another life of it begins, which a single write cannot decide."""
    write = _claim(record, now)
    write.condition = _of_the_same_job(record, _RETENTION_OVER)
    write.sets += ["#life = if_not_exists(#life, :one) + :one", "#unended = :one"]
    write.removes += ["#runs", "#rejected_at"]
    return write


def _of_the_same_job(record: FencedRecord, condition: str) -> str:
    return condition if record.job_id is None else f"{_SAME_JOB} AND {condition}"


def _claim(record: FencedRecord, now: datetime) -> Write:
    write = Write(
        condition="",
        values={
            ":in_progress": text("INPROGRESS"),
            **_at(now),
            ":zero": number(0),
            ":one": number(1),
        },
        sets=[
            "#status = :in_progress",
            "#attempts = if_not_exists(#attempts, :zero) + :one",
            "#first_seen = if_not_exists(#first_seen, :now_ms)",
            "#last_seen = :now_ms",
        ],
        removes=["#data", "#omitted", "#released_by"],
    )
    write.set("owner", text(record.owner or ""))
    write.set("lease", number(record.in_progress_expiry_timestamp or 0))
    write.set("expiration", number(record.expiry_timestamp or 0))
    if record.payload_hash:
        write.set("fingerprint", text(record.payload_hash))
    else:
        write.removes.append("#fingerprint")
    if record.job_id is not None:
        write.set("job_id", text(record.job_id))
        write.set("operation", text(record.operation or ""))
    return write


def begin(record: FencedRecord, life: Life) -> Write:
    """Count a run, in the life in which it was claimed."""
    write = _held_by(record)
    _count(write, life)
    return write


def complete(record: FencedRecord) -> Write:
    """Store the answer."""
    write = _held_by(record)
    write.set("status", text("COMPLETED"))
    write.set("data", text(record.response_data))
    write.set("expiration", number(record.expiry_timestamp or 0))
    if record.omitted is not None:
        write.set("omitted", text(record.omitted))
    _note_last_seen(write, record)
    write.removes = ["#runs", "#unended", "#rejected_at"]
    return write


def release(record: FencedRecord, *, forget_payload: bool, life: Life | None) -> Write:
    """End the lease for every clock and give up the fence. `life` is counted, if the record is still of that one."""
    write = _held_by(record)
    write.set("lease", number(0))
    write.set("released_by", text(record.owner or ""))
    write.removes = ["#owner", "#fingerprint"] if forget_payload else ["#owner"]
    if record.last_error:
        write.set("last_error", text(record.last_error))
    _note_last_seen(write, record)
    if life is not None:
        _count(write, life)
    return write


def renew(record: FencedRecord) -> Write:
    """Move the ends of lease and retention, never backwards."""
    write = _held_by(record)
    write.condition = f"{write.condition} AND #lease < :lease"
    write.set("lease", number(record.in_progress_expiry_timestamp or 0))
    write.set("expiration", number(record.expiry_timestamp or 0))
    return write


def forget(seen: FencedRecord, expiry: int, *, force: bool) -> Write:
    """Release what is as it was seen, for another epoch; without `force` only if no attempt is under way."""
    write = _as_seen(seen)
    write.sets += ["#status = :in_progress", "#epoch = if_not_exists(#epoch, :one) + :one"]
    write.values |= {":in_progress": text("INPROGRESS"), ":one": number(1)}
    write.set("lease", number(0))
    write.set("expiration", number(expiry))
    write.removes = ["#owner", "#fingerprint", "#data", "#omitted", "#released_by"]
    _begin_life(write)
    if not force:  # `:lease` is 0, as a release writes it
        write.condition += " AND (#status <> :in_progress OR #lease = :lease)"
    return write


def restart(seen: FencedRecord) -> Write:
    """Begin another life of what is as it was seen."""
    write = _as_seen(seen)
    write.values[":one"] = number(1)
    _begin_life(write)
    return write


def _as_seen(seen: FencedRecord) -> Write:
    """By the attributes of `Record.is_same_as`; an item need not have them all."""
    told = {
        "status": text(seen.stored_status),
        "owner": None if seen.owner is None else text(seen.owner),
        "attempts": number(seen.attempts) if seen.attempts else None,
        "epoch": number(seen.epoch) if seen.epoch > 1 else None,
    }
    conditions = [
        f"attribute_not_exists(#{name})" if value is None else f"#{name} = :seen_{name}" for name, value in told.items()
    ]
    values = {f":seen_{name}": value for name, value in told.items() if value is not None}
    return Write(" AND ".join(conditions), values)


def purge(now: datetime) -> Write:
    """The condition under which an item may be deleted: a record of onejob's or Powertools', whoever else is there."""
    values = {":in_progress": text("INPROGRESS"), ":completed": text("COMPLETED"), **_at(now)}
    return Write(f"#status IN (:in_progress, :completed) AND {_RETENTION_OVER}", values)


def _at(now: datetime) -> dict[str, Value]:
    return {":now": number(Decimal(to_ms(now)) / 1000), ":now_ms": number(to_ms(now))}


def _count(write: Write, life: Life) -> None:
    same_life = "#life = :life"
    write.values[":life"] = number(life.number)
    if life.number == 1:
        same_life = f"(attribute_not_exists(#life) OR {same_life})"
    write.condition = f"{write.condition} AND {same_life}"
    write.set("runs", number(life.runs))
    write.set("unended", number(life.unended))
    if life.rejected_at is None:
        write.removes.append("#rejected_at")
    else:
        write.set("rejected_at", number(to_ms(life.rejected_at)))


def _begin_life(write: Write) -> None:
    write.sets.append("#life = if_not_exists(#life, :one) + :one")
    write.removes += ["#runs", "#unended", "#rejected_at"]


def _note_last_seen(write: Write, record: FencedRecord) -> None:
    if record.last_seen is not None:  # a bare decorator knows none
        write.set("last_seen", number(record.last_seen))


def _held_by(record: FencedRecord) -> Write:
    values = {
        ":in_progress": text("INPROGRESS"),
        ":owner": text(record.owner or ""),
        ":attempts": number(record.attempts),
    }
    return Write(_HELD, values)


def text(value: str) -> Value:
    """A string attribute."""
    return {"S": value}


def number(value: int | Decimal) -> Value:
    """A number attribute."""
    return {"N": str(value)}
