"""What must hold of attempts, effects and answers in every run. Whatever breaks a rule is a `Violation` there."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from domain.answer import Answer
from domain.attempt import Attempt
from domain.identity import JobKey
from domain.job import Job
from domain.ports.events import Trace
from domain.record import Acquired, Claim, Record
from tests.simulation import spec
from tests.simulation.attempts import FORGOTTEN, AttemptSeen, may_lapse, window
from tests.simulation.deliveries import Deliveries
from tests.simulation.endings import Ending, name_of
from tests.simulation.lives import Lives
from tests.simulation.plan import PAYLOADS, Identity, Plan
from tests.simulation.spec import Transition
from tests.simulation.tries import StoreTries
from tests.simulation.world import Process, Violation, World


@dataclass(slots=True)
class Oracle:
    """The rules. Counts are by kind: outcomes, faults, windows, reasons."""

    world: World
    plan: Plan
    deliveries: Deliveries
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)
    attempts: dict[JobKey, list[AttemptSeen]] = field(default_factory=dict)
    by_fence: dict[tuple[str, int | None], AttemptSeen] = field(default_factory=dict)
    tries: StoreTries = field(default_factory=StoreTries)
    identities: dict[JobKey, Identity] = field(default_factory=dict)
    stored: dict[JobKey, dict[Answer, list[AttemptSeen]]] = field(default_factory=dict)
    """Whose answers: one that was omitted is equal to another's."""

    versions: dict[JobKey, list[tuple[int, Record | None]]] = field(default_factory=dict)
    first_of_life: dict[JobKey, int] = field(default_factory=dict)
    lives: dict[JobKey, Lives] = field(default_factory=dict)

    def fail(self, what: str) -> None:
        raise Violation(what)

    # What the store did.

    def stands(self, key: JobKey, record: Record | None) -> None:
        self.versions.setdefault(key, []).append((self.world.now, record))

    def stood_at(self, key: JobKey, tick: int) -> Record | None:
        """What a lookup finds that sees the table as it was then."""
        return next((record for at, record in reversed(self.versions.get(key, ())) if at <= tick), None)

    def claimed(
        self, process: Process, job: Job, result: Acquired, seen: Transition, lease_end: datetime | None
    ) -> None:
        record, claim = seen.after, result.claim
        assert record is not None
        assert record.lease_until is not None
        if self.identities.setdefault(job.key, (job.tenant, job.job_id)) != (job.tenant, job.job_id):
            self.fail(f"{job.tenant} {job.job_id} has the key of another job")
        all_of_it = self.attempts.setdefault(job.key, [])
        lives = self.lives.setdefault(job.key, Lives(all_of_it))
        known = {one.claim.attempt: one for one in all_of_it[self.first_of_life.get(job.key, 0) :]}
        if claim.attempt in known:
            if known[claim.attempt].claim.owner != claim.owner:
                self.fail(f"attempt {claim.attempt} was given twice")
            mine = known[claim.attempt]
            if claim.life.number != mine.claim.life.number and not mine.is_known:  # it learns of it in another life
                lives.begins_with(mine.number_in_all)
            return
        if known and claim.attempt <= max(known):
            self.fail(f"attempt {claim.attempt} after {max(known)}: attempts must increase")
        if lease_end is not None and record.lease_until != lease_end:
            self.fail(f"a lease until {record.lease_until}; invocation and grace end at {lease_end}")
        if all_of_it:
            all_of_it[-1].is_taken_over(seen.before, self.world.now, process)
        if seen.before is None or spec.is_forgotten(seen.before, seen.now):
            lives.begins(len(all_of_it))
        until = record.lease_until
        attempt = AttemptSeen(claim, len(all_of_it), process, until, until, record.fingerprint, record.last_error)
        all_of_it.append(attempt)
        self.by_fence.setdefault((claim.owner, claim.attempt), attempt)

    def learned(self, claim: Claim) -> None:
        """Whoever asked for it has its answer. A claim that was asked for before and lands later tells it nothing."""
        if seen := self.by_fence.get((claim.owner, claim.attempt)):
            seen.is_known = True

    def deleted_record(self, key: JobKey) -> None:
        """By the table: attempts may start anew."""
        self.first_of_life[key] = len(self.attempts.get(key, ()))

    def completed(self, claim: Claim, answer: Answer, record: Record) -> None:
        seen = self.by_fence[claim.owner, claim.attempt]
        if seen.effect_at is None:
            self.fail("completed without an effect")
        text = "null" if seen.big else f'{{"by":"{claim.owner}"}}'
        if answer.text != text or (answer.omitted or "").startswith("too_large") != seen.big:
            self.fail(f"the stored answer is not its owner's: {answer}")
        self.stored.setdefault(claim.key, {}).setdefault(answer, []).append(seen)
        seen.completed, seen.completed_expires_at = True, record.expires_at

    def asked_to_count(self, claim: Claim) -> None:
        self.by_fence[claim.owner, claim.attempt].asked_to_count = True

    def counted(self, claim: Claim, after: Record) -> None:
        """A run, before it begins."""
        seen = self.by_fence[claim.owner, claim.attempt]
        self.faults["counted first"] += not seen.counted
        seen.counted = True
        self._looks_whether_anew(seen, after)

    def _looks_whether_anew(self, seen: AttemptSeen, after: Record) -> None:
        if after.life.runs == 1 and seen.claim.life.runs and after.life.number == seen.claim.life.number:
            self.lives[seen.claim.key].counts_anew(seen.number_in_all)

    def released(self, claim: Claim, told: spec.Released, change: Transition) -> None:
        seen, after = self.by_fence[claim.owner, claim.attempt], change.after
        assert after is not None
        is_counted = told.life is not None and told.life.runs > 0 and told.life.runs != claim.life.runs
        if is_counted and not seen.started:
            self.fail(f"attempt {claim.attempt} is counted as a run, and did not run")
        if seen.started and seen.process.counts_runs and not is_counted and (told.life or claim.life).runs != 1:
            self.fail(f"attempt {claim.attempt} ran, and is not counted as a run")
        seen.counted = seen.started and seen.process.counts_runs
        seen.released = True
        self._looks_whether_anew(seen, after)
        if seen.effect_at is not None:
            self.fail("released after its effect: the next one would repeat it")
        if seen.interrupted:
            self.fail("released though it was interrupted: nobody knows how far it came")
        if told.error != (seen.raised or seen.last_error or ""):
            self.fail(f"released as {told.error}, and what was raised is {seen.raised or seen.last_error}")
        if told.forget_payload != (seen.raised == "PermanentError"):
            self.fail("a release forgets the payload after a permanent error, and only then")

    def write_refused(self, claim: Claim) -> None:
        """A completion or a release."""
        self.by_fence[claim.owner, claim.attempt].write_refused = True

    def renewed(self, claim: Claim, record: Record) -> None:
        seen = self.by_fence.get((claim.owner, claim.attempt))
        if seen is not None and record.lease_until is not None:
            seen.lease_until = record.lease_until

    # What the operation did.

    def started(self, job: Job, attempt: Attempt, now: datetime, last_try: datetime | None) -> AttemptSeen:
        seen = self.by_fence.get((attempt.execution_id, attempt.number))
        if seen is None:
            raise Violation(f"an operation started as attempt {attempt.number}, which is not what was claimed")
        self._is_beside(seen)
        seen.started = True
        if seen.process.counts_runs and self.lives[job.key].ran_too_often(lambda: self._messages_of(job)):
            self.fail("a job ran more often than it may")
        if seen.lease_until < now:
            self.fail("an operation started after its lease")
        if last_try is not None and now >= last_try:
            self.fail("an operation started within the deadline margin")
        if attempt.deadline != last_try:
            self.fail(f"an attempt's deadline is {attempt.deadline}, and its answer is stored until {last_try}")
        epoch = "" if seen.claim.epoch == 1 else f"#{seen.claim.epoch}"
        if attempt.effect_key("charge") != f"{job.key}{epoch}#charge":
            self.fail(f"another effect key: {attempt.effect_key('charge')}")
        if job.payload not in PAYLOADS:
            self.fail("an operation was handed what another attempt had changed")
        return seen

    def _is_beside(self, mine: AttemptSeen) -> None:
        """What may have killed a worker runs with nothing beside it, so that it harms nobody a second time."""
        mine.may_have_killed = any(one.died for one in self.lives[mine.claim.key].of(mine))
        for one in self.by_fence.values():
            if one.process is mine.process and one.is_under_way and (one.may_have_killed or mine.may_have_killed):
                self.fail("a job with which a worker died runs beside another")

    def killed_by_its_job(self, process: Process) -> None:
        """Now. Others may run beside it, this once."""
        under_way = sum(one.process is process and one.is_under_way for one in self.by_fence.values())
        self.faults["killed by its job"] += 1
        self.faults["killed beside others"] += under_way > 1

    def _messages_of(self, job: Job) -> int:
        mine, known = (job.tenant, job.job_id), self.deliveries.known.items()
        return len({name for (name, _), one in known if one.planned.job.identity == mine})

    def asked_lost(self, seen: AttemptSeen, is_lost: bool, now: datetime) -> None:
        """An operation asked whether its lease is lost: refused, or over as far as its worker can know."""
        is_over = now >= seen.believed_until
        if seen.believed_tick is not None:  # and its clock may have been set
            is_over = is_over or self.world.now >= seen.believed_tick
        if is_lost and not (seen.renewal_refused or is_over):
            self.fail("lost() told of a lease that is held")
        if not is_lost and (seen.renewal_refused or is_over):
            self.fail("the lease is over, and lost() did not tell")

    def effect(self, mine: AttemptSeen) -> None:
        if mine.effect_at is not None:
            self.fail("one attempt, two effects")
        mine.effect_at = self.world.now
        for other in self.attempts[mine.claim.key]:
            if other is not mine and other.effect_at is not None:
                way = window(other, mine)
                is_allowed = way == FORGOTTEN or self.plan.hostile or may_lapse(other) or may_lapse(mine)
                if way is None or not is_allowed:
                    self.fail(f"two effects: attempts {other.claim.attempt} and {mine.claim.attempt} ({way})")
                self.windows[str(way)] += 1

    # What became of a delivery.

    def finished(self, trace: Trace, now: datetime, last_try: datetime | None) -> None:
        seen = self.by_fence.get((trace.execution_id, trace.attempt))
        self.outcomes[name_of(trace.outcome)] += 1
        if seen is not None:
            seen.finished = True
        if wrong := Ending(self, trace, seen, now, last_try).wrong():
            self.fail(f"{trace.job.job_id}: {wrong}")
        self.tries.answered("find", self.world.current.name)
        self.deliveries.finished(trace, now)


class Unwatched(Oracle):
    """For probes: the port's conditions hold for them too, and they have no effects."""

    def claimed(
        self, process: Process, job: Job, result: Acquired, seen: Transition, lease_end: datetime | None
    ) -> None: ...
    def learned(self, claim: Claim) -> None: ...
    def deleted_record(self, key: JobKey) -> None: ...
    def completed(self, claim: Claim, answer: Answer, record: Record) -> None: ...
    def asked_to_count(self, claim: Claim) -> None: ...
    def counted(self, claim: Claim, after: Record) -> None: ...
    def released(self, claim: Claim, told: spec.Released, change: Transition) -> None: ...
    def write_refused(self, claim: Claim) -> None: ...
    def renewed(self, claim: Claim, record: Record) -> None: ...
