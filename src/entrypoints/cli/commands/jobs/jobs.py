"""What the records of jobs say, and letting a job run again: the work of `onejob show`, `list` and `forget`."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from domain.errors import LeaseHeldError, RecordChangedError, StoreUnavailableError
from domain.identity import JobKey
from domain.record import Record, State
from entrypoints.cli.errors import NothingDoneError, UnusableOptionError
from entrypoints.cli.records import Records, audit
from entrypoints.cli.tables import iso, when

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def as_object(record: Record, now: datetime, *, show_payload: bool) -> dict[str, Any]:
    """For scripts. The answer is there only if asked for."""
    held = record.in_progress and record.state(now) is not State.RELEASED
    return {
        "job_id": record.job_id,
        "operation": record.key.operation,
        "status": record.state(now),
        "attempts": record.attempts,
        "runs": record.life.runs,
        "epoch": record.epoch,
        "owner": record.owner,
        "lease_until": iso(record.lease_until) if held else None,
        "first_seen": iso(record.first_seen),
        "last_seen": iso(record.last_seen),
        "expires_at": iso(record.expires_at),
        "last_error": record.last_error,
        "fingerprint": record.fingerprint,
        "omitted": record.answer.omitted if record.answer else None,
        "key": str(record.key),
        **({"answer": record.answer.text if record.answer else None} if show_payload else {}),
    }


MEANING: Final = {
    State.RUNNING: "a worker holds it; a duplicate waits until the lease ends",
    State.LAPSED: "its worker was killed, timed out or is cut off; the next delivery takes over",
    State.RELEASED: "its last attempt failed, or it was forgotten; the next delivery runs it",
    State.COMPLETED: "a delivery is answered from here",
    State.EXPIRED: "its retention is over; the next delivery runs it as new",
}


def as_rows(record: Record, now: datetime, *, show_payload: bool) -> list[tuple[str, object]]:
    """For people."""
    state = record.state(now)
    shown = as_object(record, now, show_payload=show_payload)
    rows: list[tuple[str, object]] = [
        ("job", record.job_id),
        ("operation", record.key.operation),
        ("status", f"{state}: {MEANING[state]}"),
        ("attempts", record.attempts),
        ("runs counted", record.life.runs),
        ("epoch", record.epoch),
        ("owner", record.owner),
        ("lease ends", when(record.lease_until, now) if shown["lease_until"] else None),
        ("first seen", when(record.first_seen, now)),
        ("last seen", when(record.last_seen, now)),
        ("kept until", when(record.expires_at, now)),
        ("last error", record.last_error),
        ("fingerprint", record.fingerprint),
        ("key", record.key),
    ]
    if record.answer is not None and record.answer.omitted:
        rows.append(("answer", f"omitted: {record.answer.omitted}"))
    elif record.answer is not None:
        rows.append(("answer", record.answer.text if show_payload else "there is one (--show-payload)"))
    return rows


def found(records: Records, key: JobKey) -> Record:
    """Raises `NothingDoneError`, which says where was looked."""
    record = records.admin.look(key)
    if record is None:
        raise NothingDoneError(
            f"no record of that job: it was never claimed, or its record is deleted. Looked for {key}; "
            "is it --operation, --tenant, --namespace or --table?"
        )
    return record


def listed(records: Records, states: frozenset[State], since: datetime | None) -> Iterator[Record]:
    """Those of the namespace; `since` asks when a worker last touched them."""
    for record in records.admin.records():
        if record.key.namespace != records.settings.namespace:
            continue
        if states and record.state(records.clock.now()) not in states:
            continue
        last = record.last_seen or record.first_seen
        if since is None or (last is not None and last >= since):
            yield record


def moment(text: str, now: datetime) -> datetime:
    """`30m`, `2h`, `3d` before now, or ISO 8601 (UTC unless it says otherwise). Raises `UnusableOptionError`."""
    if short := re.fullmatch(r"([0-9]{1,6})([smhd])", text):
        return now - timedelta(**{_UNITS[short[2]]: int(short[1])})
    try:
        said = datetime.fromisoformat(text)
    except ValueError:
        raise UnusableOptionError(f"--since {text}: expected 30m, 2h, 3d, or a time like 2026-01-31T08:00Z") from None
    return said if said.tzinfo else said.replace(tzinfo=UTC)


def check_forgettable(record: Record, now: datetime, *, force: bool) -> None:
    """Raises `NothingDoneError`."""
    match record.state(now):
        case State.EXPIRED:
            raise NothingDoneError("its retention is over: the next delivery runs it anyway")
        case State.RUNNING if not force:
            raise NothingDoneError(
                f"it is running: a worker holds it until {iso(record.lease_until or record.expires_at)}. Wait; or "
                "--force, and its effect may happen twice"
            )
        case State.LAPSED if not force:
            raise NothingDoneError(
                "its worker is gone or cut off, and may have had its effect: the next delivery takes it over under the "
                "same effect keys. Send it again; or --force, and its effect may happen twice"
            )


def forget(records: Records, seen: Record, *, force: bool) -> Record:
    """Let it run again, if it is still as it was shown; writes the audit line. Raises `NothingDoneError`."""
    who = records.who()
    try:
        after = records.admin.forget(seen, force=force)
    except StoreUnavailableError as error:
        audit(who, seen, None, records.clock.now())
        raise NothingDoneError(f"{error}: perhaps it is done all the same: look with onejob show") from error
    except RecordChangedError:
        raise NothingDoneError("somebody changed it since it was shown: nothing is done; look again") from None
    except LeaseHeldError:
        raise NothingDoneError("a worker has it: nothing is done; look again, or --force") from None
    audit(who, seen, after, records.clock.now())
    return after
