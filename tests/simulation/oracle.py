"""What must hold in every run, and what was seen of it. Whatever breaks a rule is a `Violation` at that step."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from domain.answer import Answer
from domain.identity import JobKey
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.events import Trace
from domain.record import Acquired, Claim, Record
from tests.simulation.plan import MARGIN, MAX_ATTEMPTS, Plan, PlannedMessage
from tests.simulation.sqs import SentMessage
from tests.simulation.world import Process, Violation, World

UNKNOWN_OPERATION_RECEIVES: Final = 10


@dataclass(slots=True)
class AttemptSeen:
    """One attempt at a job, as the store and the world know it."""

    claim: Claim
    process: Process
    asked_at: datetime
    lease_until: datetime
    expires_at: datetime
    effect_at: int | None = None
    completed: bool = False
    completed_expires_at: datetime | None = None
    released: bool = False
    completion_lost: bool = False
    fingerprint: str | None = None


@dataclass(slots=True)
class Oracle:
    """The rules. Counts are by kind: outcomes, faults, windows, reasons."""

    world: World
    plan: Plan
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    attempts: dict[JobKey, dict[int, AttemptSeen]] = field(default_factory=dict)
    by_owner: dict[str, AttemptSeen] = field(default_factory=dict)
    last_outcome: dict[tuple[str, int], tuple[Outcome, datetime]] = field(default_factory=dict)
    keys: dict[str, JobKey] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    stored: dict[JobKey, set[str]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    told_back: set[tuple[str, int]] = field(default_factory=set)
    letters: dict[str, dict[str, Any]] = field(default_factory=dict)

    def fail(self, what: str) -> None:
        raise Violation(what)

    # What the store did.

    def claimed(self, process: Process, key: JobKey, result: Acquired, record: Record, asked_at: datetime) -> None:
        known = self.attempts.setdefault(key, {})
        self.keys[record.job_id or ""] = key
        attempt = result.claim.attempt
        if attempt in known:
            if known[attempt].claim.owner != result.claim.owner:
                self.fail(f"attempt {attempt} was given twice")
            return
        if known and attempt <= max(known):
            self.fail(f"attempt {attempt} after {max(known)}: attempts must increase")
        assert record.lease_until is not None
        seen = AttemptSeen(
            result.claim, process, asked_at, record.lease_until, record.expires_at, fingerprint=record.fingerprint
        )
        known[attempt] = self.by_owner[result.claim.owner] = seen

    def completed(self, claim: Claim, answer: Answer, record: Record) -> None:
        seen = self.by_owner.get(claim.owner)
        if seen is None:
            return
        if seen.effect_at is None:
            self.fail("completed without an effect")
        if json.loads(answer.text) != {"by": claim.owner}:
            self.fail("the stored answer is not its owner's")
        self.stored.setdefault(claim.key, set()).add(answer.text)
        seen.completed, seen.completed_expires_at = True, record.expires_at

    def released(self, claim: Claim) -> None:
        seen = self.by_owner.get(claim.owner)
        if seen is None:
            return
        seen.released = True
        if seen.effect_at is not None:
            self.fail("released after its effect: the next one would repeat it")

    def release_refused(self, claim: Claim) -> None:
        self.refused.add(claim.owner)

    def renewed(self, claim: Claim, record: Record) -> None:
        seen = self.by_owner.get(claim.owner)
        if seen is not None and record.lease_until is not None:
            seen.lease_until, seen.expires_at = record.lease_until, record.expires_at

    # What the operation did.

    def effect(self, key: JobKey, execution_id: str) -> None:
        mine = self.by_owner.get(execution_id)
        if mine is None:
            return self.fail("an effect without a claim")
        if mine.effect_at is not None:
            self.fail("one attempt, two effects")
        mine.effect_at = self.world.now
        for other in self.attempts[key].values():
            if other is not mine and other.effect_at is not None:
                window = self._window(other, mine, self.attempts[key].values())
                if window is None or not self.plan.hostile:
                    self.fail(f"two effects: attempts {other.claim.attempt} and {mine.claim.attempt} ({window})")
                    return None
                self.windows[window] += 1
        return None

    def _window(self, earlier: AttemptSeen, later: AttemptSeen, known: Iterable[AttemptSeen]) -> str | None:
        """Which of the documented ways led to the second effect. Clocks differ, so each claim since counts."""
        if later.claim.attempt < earlier.claim.attempt:  # it was taken over, and went on
            return None if later.released else "outlived its lease"
        since = [one.asked_at for one in known if one.claim.attempt > earlier.claim.attempt]
        if earlier.completed:
            ends = earlier.completed_expires_at
            return "retention over" if ends is not None and any(ends < asked_at for asked_at in since) else None
        if earlier.released:
            return None
        if earlier.process.dead:
            return "killed between effect and record"
        if earlier.completion_lost:
            return "record could not be written"
        if any(earlier.lease_until < asked_at for asked_at in since):
            return "outlived its lease"
        return None

    # What became of a delivery.

    def finished(self, trace: Trace, now: datetime, last_start: datetime | None) -> None:
        message_id, receives = trace.delivery.message_id or "", trace.delivery.receives
        execution_id, outcome = trace.execution_id, trace.outcome
        self.outcomes[_name(outcome)] += 1
        self.last_outcome[message_id, receives] = outcome, now
        match outcome:
            case Executed(answer) | Skipped(answer):
                if answer.text not in self.stored.get(trace.job.key, ()):
                    self.fail(f"{message_id} was answered with what was never stored: {answer}")
                if isinstance(outcome, Skipped):
                    self._may_be_answered(trace, answer, now)
                self.done.add(message_id)
                if self.plan.fifo and not self.plan.hostile:
                    self._in_order(message_id)
            case Rejected() if execution_id in self.refused:
                self.fail(f"{message_id} was rejected by a worker that had lost its lease")
            case Failed(Failure.COMPLETION_LOST):
                seen = self.by_owner.get(execution_id)
                if not self.plan.hostile and (last_start is None or now < last_start - timedelta(seconds=MARGIN)):
                    self.fail("a completion was given up while there was time")
                if seen is not None:
                    seen.completion_lost = True
            case Failed(Failure.LEASE_LOST) if not self.plan.hostile:
                seen = self.by_owner.get(execution_id)
                if seen is not None and not seen.released:  # an answer to a release was lost, and the job taken since
                    self.fail("a lease was lost though everything behaved")

    def _may_be_answered(self, trace: Trace, answer: Answer, now: datetime) -> None:
        """Only by a record of the same payload whose retention runs, by the clock of who asks."""
        source = self.by_owner.get(json.loads(answer.text)["by"])
        if source is None:
            return
        if source.fingerprint != trace.job.fingerprint:
            self.fail(f"{trace.delivery.message_id} has another payload and was answered")
        if source.completed_expires_at is not None and source.completed_expires_at < now - trace.duration:
            self.fail(f"{trace.delivery.message_id} was answered by a record whose retention is over")

    def _in_order(self, message_id: str) -> None:
        """Nothing of a FIFO group is done before what was sent before it has ended."""
        mine = next((one for one in self.plan.messages if one.name == message_id), None)
        for other in self.plan.messages:
            if mine is None or other is mine or other.group != mine.group:
                continue
            if other.sent_at < mine.sent_at and other.name not in self.done and other.name not in self.letters:
                self.fail(f"{message_id} was done before {other.name} of its group")

    def started(self, execution_id: str, attempt: int, now: datetime, last_start: datetime | None) -> None:
        seen = self.by_owner.get(execution_id)
        if seen is None or seen.claim.attempt != attempt:
            return self.fail(f"an operation started as attempt {attempt}, which is not what was claimed")
        if seen.lease_until < now:
            self.fail("an operation started after its lease")
        if last_start is not None and now >= last_start:
            self.fail("an operation started within the deadline margin")
        return None

    def not_lost(self, execution_id: str, now: datetime) -> None:
        """An operation asked whether its lease is lost, and was told that it is not."""
        if self.by_owner[execution_id].lease_until < now:
            self.fail("the lease is over, and lost() did not tell")

    # What became of a message.

    def deleted(self, message: SentMessage) -> None:
        name = message.planned.name
        if name not in self.done and name not in self.letters:
            self.fail(f"{name} left the queue, neither done nor buried")

    def hidden(self, message_id: str, receives: int, seconds: int, now: datetime) -> None:
        self.told_back.add((message_id, receives))
        outcome, told_at = self.last_outcome.get((message_id, receives), (None, now))
        match outcome:
            case Failed(Failure.STORE_UNAVAILABLE):
                least, most = 60, 900
            case Failed(Failure.NOT_STARTED):
                least, most = 1, 12
            case Failed():
                least, most = min(450, 5 * 2 ** min(receives - 1, 10)), 900
            case Deferred(until):
                lease = int((until - told_at).total_seconds())
                least, most = max(5, lease), max(900, lease + 2)
            case Executed() | Skipped():
                return self.fail(f"{message_id} is done and was sent back")
            case _:
                return None
        after = (now - told_at).total_seconds() + seconds
        if after < least:
            self.fail(f"{message_id} is back after {after} s instead of {least}")
        if seconds > most:
            self.fail(f"{message_id} is kept back for {seconds} s instead of {most}")
        return None

    def buried(self, planned: PlannedMessage, reason: dict[str, Any], sent_before: int) -> None:
        told = str(reason["reason"])
        self.reasons[told] += 1
        self.letters[planned.name] = reason
        if not self._may_be_buried(planned, told, sent_before, reason):
            self.fail(f"{planned.name} was buried as {told}")

    def _may_be_buried(self, planned: PlannedMessage, reason: str, age: int, letter: dict[str, Any]) -> bool:
        key = self.keys.get(planned.job.job_id)
        attempts = self.attempts.get(key, {}) if key else {}
        match reason:
            case "not_json":
                return planned.broken
            case "unknown_operation":
                return planned.unknown_operation and letter["receives"] >= UNKNOWN_OPERATION_RECEIVES
            case "account_closed":
                return planned.job.behaviour == "refuses"
            case "payload_mismatch":
                others = {one.other_payload for one in self.plan.messages if one.job == planned.job}
                return len(others) == 2 or any(job == planned.job for job in self.plan.runner_jobs)
            case "attempts_exhausted":
                is_told = letter["receives"] > 1 and (letter["attempts"] or 0) > MAX_ATTEMPTS
                return is_told and max(attempts, default=0) >= letter["attempts"]
            case "stale":
                return age > self.plan.retention
            case _:
                return False


def _name(outcome: Outcome) -> str:
    match outcome:
        case Failed(reason):
            return f"Failed {reason}"
        case Rejected(reason):
            return f"Rejected {reason}"
        case _:
            return type(outcome).__name__


class Unwatched(Oracle):
    """For probes: the port's conditions hold for them too, and they have no effects."""

    def claimed(self, process: Process, key: JobKey, result: Acquired, record: Record, asked_at: datetime) -> None: ...
    def completed(self, claim: Claim, answer: Answer, record: Record) -> None: ...
    def released(self, claim: Claim) -> None: ...
    def release_refused(self, claim: Claim) -> None: ...
    def renewed(self, claim: Claim, record: Record) -> None: ...
