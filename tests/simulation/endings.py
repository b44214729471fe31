"""What an outcome may be: the table at the top of `JobService`, asked of what the store and the world have seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from domain.answer import Answer
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.events import Trace
from domain.record import Record, Status
from tests.simulation.attempts import AttemptSeen, may_lapse
from tests.simulation.lives import Lives
from tests.simulation.plan import CALM_SKEW, STALE_FOR
from tests.simulation.world import moment

if TYPE_CHECKING:
    from tests.simulation.oracle import Oracle

UNKNOWN_OPERATION_RECEIVES: Final = 10
MOST_APART: Final = 100
"""Seconds, more than clocks differ: what is sent within that after a rejection may have been sent before it."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one delivery. `seen` is the attempt that it claimed, if it did; `now` is by its worker's clock."""

    oracle: "Oracle"
    trace: Trace
    seen: AttemptSeen | None
    now: datetime
    last_try: datetime | None

    def wrong(self) -> str | None:
        """What is wrong with its outcome, if something is."""
        if self.seen is not None and self.seen.interrupted:
            return "an interrupted operation has an outcome"
        match self.trace.outcome:
            case Executed(answer):
                stored = self.oracle.stored.get(self.trace.job.key, {})
                is_ours = any(seen is self.seen for seen in stored.get(answer, ()))
                return None if is_ours else f"{answer} is not stored"
            case Skipped(answer):
                return self._answered(answer)
            case Deferred(until):
                old = STALE_FOR if self.trace.delivery.is_redelivery else 0
                leases = (one.lease_until for one in self._stood_there(old) if one.status is Status.IN_PROGRESS)
                return None if until in leases else f"deferred until {until}, when no lease ends"
            case Rejected() as rejected:
                return self._rejected(rejected) if self.seen is None else self._given_up(rejected, self.seen)
            case Failed() as failed:
                return self._unclaimed(failed) if self.seen is None else self._failed(failed, self.seen)

    @property
    def _lives(self) -> Lives:
        return self.oracle.lives[self.trace.job.key]

    def _answered(self, answer: Answer) -> str | None:
        """Only by a record of the same payload whose retention runs, by the clock of who asks."""
        sources = self.oracle.stored.get(self.trace.job.key, {}).get(answer, [])
        wrong = [self._answered_by(source) for source in sources]
        return None if None in wrong else next(iter(wrong), f"answered with what was never stored: {answer}")

    def _answered_by(self, source: AttemptSeen) -> str | None:
        if source.fingerprint != self.trace.job.fingerprint:
            return "answered though its payload is another"
        if source.completed_expires_at is None or source.completed_expires_at < self.now - self.trace.duration:
            return "answered by a record whose retention is over"
        return None

    def _rejected(self, rejected: Rejected) -> str | None:
        """Nothing was claimed."""
        receives = self.trace.delivery.receives
        match rejected.reason:
            case "payload_mismatch" if self._met_another_payload():
                return None
            case "unknown_operation" if receives >= UNKNOWN_OPERATION_RECEIVES:
                return None
        return f"rejected without cause as {rejected.reason}"

    def _met_another_payload(self) -> bool:
        """A completed record may be an old copy."""
        old = (record for record in self._stood_there(STALE_FOR) if record.status is Status.COMPLETED)
        return any(
            record.fingerprint not in (None, self.trace.job.fingerprint) for record in (*self._stood_there(), *old)
        )

    def _stood_there(self, before: int = 0) -> Iterator[Record]:
        """What stood there while this was handled, or so many ticks before."""
        now = self.oracle.world.now
        began = now - int(self.trace.duration.total_seconds()) - before
        until = now
        for at, record in reversed(self.oracle.versions.get(self.trace.job.key, [])):
            if until < began:
                break
            if record is not None:
                yield record
            until = at

    def _given_up(self, rejected: Rejected, seen: AttemptSeen) -> str | None:
        attempt = seen.claim.attempt
        if seen.write_refused or (seen.renewal_refused and not seen.released):
            return "rejected by a worker that had lost its lease"
        if seen.raised == "PermanentError":
            wanted = Rejected("account_closed", "account: closed", "PermanentError", attempt)
        elif seen.started or not self._lives.may_be_exhausted(seen, self.trace.delivery.sent_at):
            return f"attempt {attempt} was rejected as {rejected.reason}, and had not begun its runs"
        else:
            detail = "" if seen.last_error else "killed or timed out"
            wanted = Rejected("attempts_exhausted", detail, seen.last_error, attempt)
        if not seen.released:
            return "rejected, and its release has not landed"
        if self.trace.delivery.counts_runs:
            apart = MOST_APART if self.oracle.plan.hostile else 2 * CALM_SKEW
            self._lives.rejected(seen.number_in_all + 1, moment(self.oracle.world.now + apart))
        return None if rejected == wanted else f"expected {wanted}, got {rejected}"

    def _given_back(self, seen: AttemptSeen) -> str | None:
        if seen.released or self.oracle.tries.are_used_up("release", seen.claim.owner, self.now, beats=seen.beats):
            return None
        return f"attempt {seen.claim.attempt} ended without effect and was not released"

    def _unclaimed(self, failed: Failed) -> str | None:
        tries = self.oracle.tries
        match failed.reason:
            case Failure.STORE_UNAVAILABLE:
                asked = ("claim", self.trace.execution_id), ("find", self.oracle.world.current.name)
                is_right = any(tries.are_used_up(*one, self.now) for one in asked)
                return None if is_right else "the store was given up while there was time"
            case Failure.UNKNOWN_OPERATION:
                is_right = self.trace.delivery.receives < UNKNOWN_OPERATION_RECEIVES
                return None if is_right else "an unknown operation is still waited for"
        return f"nothing was claimed, and it failed as {failed}"

    def _failed(self, failed: Failed, seen: AttemptSeen) -> str | None:
        match failed.reason:
            case Failure.OPERATION_RAISED if seen.renewal_refused and not (seen.released or seen.was_refused_late):
                return "failed by a worker that had lost its lease"
            case Failure.OPERATION_RAISED:
                is_told = failed.error_type == seen.raised
                return self._given_back(seen) if is_told else f"expected {seen.raised}, got {failed.error_type}"
            case Failure.NOT_STARTED:
                behind = timedelta(seconds=seen.process.skews[1] - seen.process.skew)  # if its clock was set back
                is_late = self.last_try is not None and self.now + behind >= self.last_try
                is_right = (is_late or seen.had_no_heartbeat) and not seen.started
                return self._given_back(seen) if is_right else "there was time to start, or it was"
            case Failure.STORE_UNAVAILABLE:
                was_to_be_rejected = seen.raised == "PermanentError" or not seen.started
                return self._given_back(seen) if was_to_be_rejected else "it ran, and is told as never begun"
            case Failure.COMPLETION_LOST:
                seen.completion_lost = True
                is_right = self.oracle.tries.are_used_up("complete", seen.claim.owner, self.now, beats=seen.beats)
                return None if is_right else "a completion was given up while there was time"
            case Failure.LEASE_LOST:
                if seen.started and not (seen.write_refused or seen.renewal_refused):
                    return "a lease was lost, and nobody said so"
                # in a calm world: a release was answered too late, and the job taken since
                is_right = self.oracle.plan.hostile or seen.released or seen.was_forgotten or may_lapse(seen)
                return None if is_right else "a lease was lost though everything behaved"
        return f"claimed, and it failed as {failed}"


def name_of(outcome: Outcome) -> str:
    """As it is counted."""
    match outcome:
        case Failed(reason):
            return f"Failed {reason}"
        case Rejected(reason):
            return f"Rejected {reason}"
        case _:
            return type(outcome).__name__
