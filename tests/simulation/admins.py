"""The `StoreAdmin` as an operator has it: late, failing, and watched. What it may change stands here again in words."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.life import Life
from domain.ports.store_admin import Purged, StoreAdmin
from domain.record import RELEASED, Record, Status
from tests.simulation.backends import Backend
from tests.simulation.oracle import Oracle
from tests.simulation.world import Process, Violation, World


@dataclass(slots=True)
class WatchedAdmin:
    """Each request lands at one instant. `fails` is asked before and after it, and switches."""

    world: World
    oracle: Oracle
    backend: Backend
    admin: StoreAdmin
    process: Process
    now: Callable[[], datetime]
    fails: Callable[[], bool]
    order: Iterator[int]
    """Of what operators did."""

    forgotten_at: dict[JobKey, int] = field(default_factory=dict)

    def look(self, key: JobKey) -> Record | None:
        found: Record | None = self._ask("look", lambda: self.admin.look(key))
        return found

    def records(self) -> Iterator[Record]:
        yield from self._ask("records", lambda: list(self.admin.records()))

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        def is_right(before: Record, after: Record | None, now: datetime) -> str | None:
            if before.key != seen.key or after is None:
                return "forgot another record, or deleted it"
            if not before.is_same_as(seen):
                return "forgot what had changed since it was seen"
            if before.status is Status.IN_PROGRESS and before.lease_until != RELEASED and not force:
                return "forgot what is held, though nobody forced it"
            return _not_forgotten(before, after, now + self.backend.retention)

        forgotten: Record = self._ask("forget", lambda: self.admin.forget(seen, force=force), is_right)
        return forgotten

    def restart(self, seen: Record) -> None:
        def is_right(before: Record, after: Record | None, now: datetime) -> str | None:
            if before.key != seen.key or after is None:
                return "restarted another record, or deleted it"
            if not before.is_same_as(seen):
                return "restarted what had changed since it was seen"
            expected = replace(before, life=Life(before.life.number + 1))
            return None if after == expected else f"expected {expected}"

        def restart() -> None:
            self.admin.restart(seen)
            after = self.backend.peek(seen.key)
            if after is None or after.life.number <= seen.life.number:
                raise Violation("a restart began no other life")

        self._ask("restart", restart, is_right)

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        def is_right(before: Record, after: Record | None, now: datetime) -> str | None:
            if after is not None:
                return "purge wrote a record"
            return None if _is_over(before, now) else "purged a record whose retention is not over"

        purged: Purged = self._ask("purge", lambda: self.admin.purge(after=after, limit=limit), is_right)
        return purged

    def close(self) -> None:
        """The world closes the store behind it (`Backend.close`)."""

    def _ask(
        self,
        name: str,
        do: Callable[[], Any],
        is_right: Callable[[Record, Record | None, datetime], str | None] = lambda *_: "it only looks",
    ) -> Any:
        if self.fails():
            raise StoreUnavailableError(f"{name}: throttled")
        now = self.now()
        self.backend.clock.asked_at = now
        before = {key: self.backend.peek(key) for key in self.oracle.versions}
        error: Exception | None = None
        result: Any = None
        try:
            result = do()
        except Exception as raised:
            error = raised
        for key, record in before.items():
            after = self.backend.peek(key)
            if record == after:
                continue
            if record is None or (wrong := is_right(record, after, now)):
                raise Violation(f"{name}: {'made a record' if record is None else wrong}: {record} -> {after}")
            self._changed(record, after)
        if self.fails():
            raise StoreUnavailableError(f"{name}: landed, the answer is lost")
        if error is not None:
            raise error
        return result

    def _changed(self, before: Record, after: Record | None) -> None:
        oracle, key = self.oracle, before.key
        oracle.stands(key, after)
        last = oracle.attempts[key][-1]
        if after is None:
            oracle.faults["purged"] += 1
            last.deleted_by = self.process
            oracle.deleted_record(key)
            return
        oracle.lives[key].begins(len(oracle.attempts[key]))
        if after.epoch == before.epoch:
            oracle.faults["restarted"] += 1
            return
        last.was_forgotten = True
        self.forgotten_at[key] = next(self.order)
        is_held = before.status is Status.IN_PROGRESS and before.lease_until != RELEASED
        oracle.faults["forgotten by force" if is_held else "forgotten"] += 1


def _not_forgotten(before: Record, after: Record, expires_at: datetime) -> str | None:
    """Released, with nothing of the last run but its attempts, and another epoch."""
    if after.epoch != before.epoch + 1:
        return f"epoch {before.epoch} became {after.epoch}"
    wanted = replace(
        after,
        status=Status.IN_PROGRESS,
        owner=None,
        lease_until=RELEASED,
        expires_at=expires_at,
        fingerprint=None,
        answer=None,
        life=Life(before.life.number + 1),
        attempts=before.attempts,
        last_error=before.last_error,
        first_seen=before.first_seen,
        last_seen=before.last_seen,
        released_by=None,
    )
    return None if after == wanted else f"expected {wanted}"


def _is_over(record: Record, now: datetime) -> bool:
    """A live lease is judged before retention."""
    if record.expires_at >= now:
        return False
    return record.status is Status.COMPLETED or (record.lease_until is not None and record.lease_until < now)
