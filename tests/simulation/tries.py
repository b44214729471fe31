"""How often one owner asks the store for one thing, and until when: bounds that `JobService` keeps."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from tests.simulation.plan import RUNNER_LEASE
from tests.simulation.world import Violation

LONGEST_PAUSE: Final = timedelta(seconds=2)
"""Between two tries."""
MOST: Final = 3
"""Tries of anything but a completion, which has until its deadline."""


@dataclass(slots=True)
class Tries:
    """Requests of one kind that one owner made since it was answered."""

    number: int
    first_at: datetime
    last_try: datetime | None
    failed_at: datetime | None = None

    def ends(self, name: str) -> datetime | None:
        """From then on nothing is tried again. Without a deadline a completion has one lease length."""
        return self.first_at + RUNNER_LEASE if self.last_try is None and name == "complete" else self.last_try


@dataclass(slots=True)
class StoreTries:
    """By kind and owner. Renewals are the heartbeat's, which is the world's."""

    known: dict[tuple[str, str], Tries] = field(default_factory=dict)

    def asks(self, name: str, owner: str, now: datetime, last_try: datetime | None) -> None:
        tries = self.known.get((name, owner))
        if tries is None or name == "renew":
            self.known[name, owner] = Tries(1, now, last_try)
            return
        if tries.number >= MOST and name != "complete":
            raise Violation(f"{name}: tried more than {tries.number} times")
        ends = tries.ends(name)
        if ends is not None and tries.failed_at is not None and tries.failed_at >= ends:
            raise Violation(f"{name}: tried again though its time was over")
        if tries.failed_at is not None and tries.failed_at >= now:
            raise Violation(f"{name}: tried again without a pause")
        tries.number += 1

    def failed(self, name: str, owner: str, now: datetime) -> None:
        self.known[name, owner].failed_at = now

    def shift(self, owners: set[str], by: timedelta) -> None:
        """The clock of these was set. The time in which they try is not measured by it."""
        for (_, owner), tries in self.known.items():
            if owner in owners:
                tries.first_at += by
                tries.last_try = tries.last_try and tries.last_try + by
                tries.failed_at = tries.failed_at and tries.failed_at + by

    def answered(self, name: str, owner: str) -> None:
        self.known.pop((name, owner), None)

    def are_used_up(self, name: str, owner: str, now: datetime, *, beats: bool = False) -> bool:
        """The last try failed just now, and there was no other: number or time did not allow it. Who has a heartbeat
        may have waited since, for a renewal that was under way.
        """
        tries = self.known.get((name, owner))
        if tries is None or tries.failed_at is None or (tries.failed_at != now and not beats):
            return False
        ends = tries.ends(name)
        is_late = ends is not None and tries.failed_at + LONGEST_PAUSE > ends
        return is_late or (name != "complete" and tries.number >= MOST)


class Unbounded(StoreTries):
    """For probes, which ask what they like."""

    def asks(self, name: str, owner: str, now: datetime, last_try: datetime | None) -> None: ...
    def failed(self, name: str, owner: str, now: datetime) -> None: ...
