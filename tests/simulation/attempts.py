"""One attempt at a job as the store and the world know it, and the documented ways to a second effect."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from domain.record import RELEASED, Claim, Record, Status
from tests.simulation.world import Process, Violation

TABLE_SKEW: Final = 0
"""The table's own clock is right."""

FORGOTTEN: Final = "forgotten by an operator"
"""No window: another epoch has an effect of its own, under keys of its own."""

ASKED_AGAIN_WITHIN: Final = 6
"""Ticks, in which a renewal that failed is asked for again, and fails."""

type End = Literal["deleted", "forgotten", "released", "lapsed"]


@dataclass(slots=True)
class AttemptSeen:
    """`lease_until` is what the store has, `believed_until` what its worker may count on. `end` is in what state the
    next claim found it, `taken_by` whose that was; `deleted_by` is the operator who purged it, `was_forgotten`
    tells that one had it forgotten.
    """

    claim: Claim
    number_in_all: int
    process: Process
    lease_until: datetime
    believed_until: datetime
    fingerprint: str | None
    last_error: str | None
    is_known: bool = False
    """Its worker has the answer to its claim."""
    started: bool = False
    may_have_killed: bool = False
    """A worker died in an attempt before it of the same life: nothing may run beside it."""
    asked_to_count: bool = False
    counted: bool = False
    """Its run is in the record's number."""
    careful: bool = False
    big: bool = False
    raised: str | None = None
    interrupted: bool = False
    effect_at: int | None = None
    completed: bool = False
    completed_expires_at: datetime | None = None
    released: bool = False
    write_refused: bool = False
    renewal_refused: bool = False
    renewal_failed: bool = False
    asked_at: int = 0
    """When the last renewal that landed was asked for, or the claim: its lease counts from then."""
    failed_at: int = -1
    """When a renewal last failed, if one did since."""
    believed_tick: int | None = None
    """As `believed_until`, on the clock that does not jump; None: not renewed."""
    had_no_heartbeat: bool = False
    was_refused_late: bool = False
    """A renewal was, when its release had been given up already."""
    is_overdue: bool = False
    """Its heartbeat ended, since the time of its attempt was over."""
    beats: bool = False
    completion_lost: bool = False
    finished: bool = False
    end: End | None = None
    taken_at: int = 0
    taken_by: Process | None = None
    deleted_by: Process | None = None
    was_forgotten: bool = False

    @property
    def is_under_way(self) -> bool:
        return self.started and not (self.finished or self.interrupted or self.process.dead)

    @property
    def died(self) -> bool:
        """Its worker did, before anything of its end was written."""
        return self.started and not (self.finished or self.released or self.completed) and self.process.dead

    def is_taken_over(self, found: Record | None, at: int, by: Process) -> None:
        """The next attempt was claimed. `found` is what stood there."""
        self.taken_at, self.taken_by = at, by
        if found is None:
            self.end = "deleted"
        elif found.status is Status.COMPLETED:
            self.end = "forgotten"
        else:
            self.end = "released" if found.lease_until == RELEASED else "lapsed"
            if self.end == "lapsed" and self.beats and not self._may_have_lapsed(by):
                raise Violation(f"the lease of attempt {self.claim.attempt} lapsed, and nothing kept it from a renewal")

    def _may_have_lapsed(self, by: Process) -> bool:
        """A lease that is renewed lapses only if its worker has ended with it, died, slept or was not answered since it
        asked for the last renewal that landed, or if the clock of who takes it was ahead.
        """
        process = self.process
        has_ended = self.finished or self.interrupted or self.is_overdue or process.dead
        is_ahead = by.skews[1] > process.skews[0]
        is_unanswered = self.believed_tick is not None and self.failed_at >= self.believed_tick - ASKED_AGAIN_WITHIN
        return has_ended or is_ahead or is_unanswered or process.asleep_until > self.asked_at


def may_lapse(seen: AttemptSeen) -> bool:
    """In a calm world too: a lease that a heartbeat renews has no grace for a clock that is ahead, and it is as long as
    two renewals that get no answer.
    """
    is_ahead = seen.taken_by is not None and seen.taken_by.skews[1] > seen.process.skews[0]
    return seen.beats and (seen.renewal_failed or is_ahead or seen.is_overdue)


def window(one: AttemptSeen, other: AttemptSeen) -> str | None:
    """Which of the documented ways led to the effects of both; None if none did."""
    first = min(one, other, key=lambda attempt: attempt.number_in_all)
    assert first.effect_at is not None
    if first.claim.epoch < (other if first is one else one).claim.epoch:
        return FORGOTTEN
    if first.was_forgotten:  # and the other is of a later life of the record
        return "retention over"
    if first.completed:
        return "retention over" if first.end in ("forgotten", "deleted") else None
    if first.end not in ("lapsed", "deleted"):
        return None
    if first.process.died_at is not None and not first.finished:
        return "killed between effect and record" if first.effect_at <= first.process.died_at else None
    if first.completion_lost:
        return "record could not be written"
    if first.careful and first.effect_at >= first.taken_at and _was_no_later(first):
        return None
    return "outlived its lease"


def _was_no_later(first: AttemptSeen) -> bool:
    """The clock of who ended its lease was not ahead: then `lost()` told the truth before the effect."""
    if first.end == "deleted" or first.taken_by is None:
        return first.process.skews[0] >= (TABLE_SKEW if first.deleted_by is None else first.deleted_by.skews[1])
    return first.process.skews[0] >= first.taken_by.skews[1]
