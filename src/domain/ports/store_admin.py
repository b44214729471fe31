"""The port through which operators look at records and change them. No worker needs it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from domain.identity import JobKey
from domain.record import Record


@dataclass(frozen=True, slots=True)
class Purged:
    """A page of a purge: how many records it looked at and deleted, and where to go on; None at the end."""

    seen: int
    deleted: int
    after: str | None


class StoreAdmin(Protocol):
    """The records of one `IdempotencyStore`. Every method raises `StoreUnavailableError` when it cannot answer.

    Items that another tool wrote are passed over by `records` and `purge`, and never changed; `look` and `forget` raise
    `ForeignRecordError` for them.
    """

    def look(self, key: JobKey) -> Record | None:
        """Return the record, or None. Strongly consistent read."""
        ...

    def records(self) -> Iterator[Record]:
        """All records, in no order, read as they are asked for. What is written meanwhile may be among them or not.

        Records of other tools are left out where their keys are none of onejob's.
        """
        ...

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        """Let a job run again; the record as it then is.

        It is released, without owner, answer, fingerprint and runs, so that a corrected payload may run too. The
        attempts stay, since they fence; the epoch goes up by one, and with it every `effect_key`. Retention starts
        anew.
        Lands if and only if the record is as it was seen (`Record.is_same_as`), else `RecordChangedError`; and, without
        `force`, if no attempt is under way (`Record.is_held`), else `LeaseHeldError`. Clocks do not matter here: an
        attempt that has lapsed may have had its effect, and the next delivery takes it over under the same effect keys.
        With `force` a worker that holds the job learns it at its next renewal or write, and its answer is lost: its
        effect may be had twice.
        After the first one `IdempotencyStore.find` may for a moment still answer with what was forgotten.
        """
        ...

    def restart(self, seen: Record) -> None:
        """Begin another life of a job, since its message is sent anew: no run is counted (`domain.life`).

        Nothing else changes. Lands if and only if the record is as it was seen
        (`Record.is_same_as`), else `RecordChangedError`. An attempt that is under way goes on, and does not count.
        """
        ...

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        """Delete what nobody answers for any more (`Record.retention_is_over`), looking at `limit` records or fewer.

        Each deletion is conditional: a record that is claimed meanwhile stays. To be called again with `after` of its
        answer, until that is None.
        """
        ...

    def close(self) -> None:
        """As `IdempotencyStore.close`."""
        ...
