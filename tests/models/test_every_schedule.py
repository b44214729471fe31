"""Every order of the steps of two workers, with a kill and a lapse anywhere: what must never be, never is.

CI runs the schedules with few preemptions: the turn is seldom taken from a worker that could go on; kills and lapses
are tried at each point all the same. `just schedules` runs them all, but of the two cases whose first attempt raises
(a million each, since a release is a step more) those with up to three preemptions.
"""

import os
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from adapters.stores import memory
from domain import service
from domain.answer import Answer
from domain.errors import LeaseLostError, PermanentError
from domain.lease import Lease
from domain.outcome import Executed
from domain.record import Acquired, Busy, Claim, Claimable, Completed, Record, Status
from domain.record import judge as judge_rightly
from tests.models.schedules import Bounds, ViolationError, every_schedule
from tests.models.two_workers import Case, TwoWorkers
from tests.models.watched_store import LEASE

ALL = bool(os.environ.get("ONEJOB_ALL_SCHEDULES"))
CASES = {
    "it succeeds": Case(),
    "it looks at lost() before its effect": Case(looks=True),
    "its first attempt is rejected": Case(raises=PermanentError),
    "its first attempt fails": Case(raises=ConnectionError),
    "the time jumps to the very end of a lease": Case(jump=LEASE),
}
FEW: Final = 1
IN_CI = {"it succeeds": 2}
IN_THE_LONG_RUN = {"its first attempt is rejected": 3, "its first attempt fails": 3}

USUAL = {"Executed", "Skipped", "Deferred", "killed before its effect", "killed between effect and record"}
MET = {
    "it succeeds": {"two effects, after a kill", "two effects, a lease outlived", "lease_lost"},
    "it looks at lost() before its effect": {"two effects, after a kill", "lease_lost", "operation_raised"},
    "its first attempt fails": {"operation_raised", "lease_lost"},
    "its first attempt is rejected": {"permanent_error", "lease_lost"},
    "the time jumps to the very end of a lease": {"time jumped while a claim was held"},
}


@pytest.mark.parametrize("case", list(CASES))
def test_in_no_schedule_is_a_promise_broken(case: str) -> None:
    preemptions = IN_THE_LONG_RUN.get(case) if ALL else IN_CI.get(case, FEW)
    schedules, met = 0, Counter[str]()
    for world in every_schedule(lambda: TwoWorkers(CASES[case]), Bounds(preemptions=preemptions)):
        schedules += 1
        met.update(world.met)
    bound = "any number of" if preemptions is None else f"up to {preemptions}"
    print(f"\n{case}: {schedules} schedules, {bound} preemptions")
    print(*(f"{met[each]:8} {each}" for each in sorted(met)), sep="\n")
    assert met.keys() >= USUAL | MET[case]


type Plant = Callable[[pytest.MonkeyPatch], None]


def _fence(*compared: str) -> Plant:
    def fenced(status: Status) -> Callable[[Record | None, Claim], bool]:
        def passed(record: Record | None, claim: Claim) -> bool:
            held = {"status": status, "owner": claim.owner, "attempts": claim.attempt}
            return record is not None and all(getattr(record, name) == held[name] for name in compared)

        return passed

    def plant(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(memory, "is_held_by", fenced(Status.IN_PROGRESS))
        patch.setattr(memory, "was_completed_by", fenced(Status.COMPLETED))

    return plant


def _judge(change: Callable[[Any, Any], Any]) -> Plant:
    """A claim that finds something else: `change` gets the record and what was right."""
    right = judge_rightly

    def judge(record: Any, *rest: Any) -> Any:
        return change(record, right(record, *rest))

    return lambda patch: patch.setattr(memory, "judge", judge)


def _free_if(wrong: Callable[[Any, Any], bool]) -> Plant:
    return _judge(lambda record, seen: Claimable() if wrong(record, seen) else seen)


def _service(name: str, change: Callable[..., Any]) -> Plant:
    """A method of the service that `change`, given the right one, replaces."""
    right = getattr(service.JobService, name)

    def method(self: Any, *given: Any, **named: Any) -> Any:
        return change(right, self, *given, **named)

    return lambda patch: patch.setattr(service.JobService, name, method)


def _released_on_completion_loss(right: Any, self: Any, run: Any, claim: Any, answer: Any) -> Any:
    outcome = right(self, run, claim, answer)
    if not isinstance(outcome, Executed):
        self.store.release(claim, "lost")
    return outcome


def _lost_is_executed(right: Any, self: Any, run: Any, claim: Any, answer: Any) -> Any:
    right(self, run, claim, answer)
    return Executed(answer)


def _released_before_completion(right: Any, self: Any, run: Any, claim: Any, answer: Any) -> Any:
    self.store.release(claim, "early")
    return right(self, run, claim, answer)


def _in_progress_is_believed(right: Any, self: Any, run: Any) -> Any:
    record = self.store.find(run.job.key) if run.delivery.is_redelivery else None
    return Completed(record.answer) if record else None


def _claimed_twice(right: Any, self: Any, run: Any) -> Any:
    seen = right(self, run)
    return right(self, run) if isinstance(seen, Busy) else seen


def _busy_runs(right: Any, self: Any, run: Any) -> Any:
    seen = right(self, run)
    return Acquired(Claim(run.job.key, run.execution_id, 1)) if isinstance(seen, Busy) else seen


def _attempts_begin_anew(patch: pytest.MonkeyPatch) -> None:
    right = memory.MemoryIdempotencyStore.claim

    def claim(self: Any, job: Any, **named: Any) -> Any:
        record = self._records.get(job.key)
        if record is not None and record.in_progress and record.lease_is_over(self._clock.now()):
            del self._records[job.key]
        return right(self, job, **named)

    patch.setattr(memory.MemoryIdempotencyStore, "claim", claim)


def _failure_swallowed(patch: pytest.MonkeyPatch) -> None:
    right = memory.MemoryIdempotencyStore.complete

    def complete(self: Any, claim: Any, answer: Any) -> None:
        try:
            right(self, claim, answer)
        except LeaseLostError:
            return

    patch.setattr(memory.MemoryIdempotencyStore, "complete", complete)


PLANTS: dict[str, Plant] = {
    "a completion asks for no fence": _fence("status"),
    "any completion counts as repeated": _fence(),
    "a live lease is free": _free_if(lambda record, seen: isinstance(seen, Busy)),
    "a lease is over at its very end": lambda patch: patch.setattr(
        Record, "lease_is_over", lambda self, now: self.lease_until <= now
    ),
    "a lease never ends": lambda patch: patch.setattr(
        Record, "lease_is_over", lambda self, now: self.lease_until.year == 1970
    ),
    "a completed record is free when its lease is over": _free_if(
        lambda record, seen: isinstance(seen, Completed) and record.attempts > 1
    ),
    "a takeover begins to count anew": _attempts_begin_anew,
    "a lost lease is never noticed": lambda patch: patch.setattr(Lease, "lost", lambda self: False),
    "a lost completion is told as executed": _service("_complete", _lost_is_executed),
    "a lost completion is swallowed by the store": _failure_swallowed,
    "a lost completion is released": _service("_complete", _released_on_completion_loss),
    "a claim is given back before its answer is stored": _service("_complete", _released_before_completion),
    "a record in progress is taken for done": _service("_look_up", _in_progress_is_believed),
    "a busy job runs": _service("_claim", _busy_runs),
    "a busy job counts as skipped": _judge(
        lambda record, seen: Completed(Answer("null")) if isinstance(seen, Busy) else seen
    ),
    "a failed attempt keeps its claim": _service(
        "_release", lambda right, self, run, claim, error, outcome, **_: outcome
    ),
    "an answer is replaced by null": _service(
        "_complete", lambda right, self, run, claim, answer: right(self, run, claim, Answer("null"))
    ),
}


def run_all() -> None:
    for case in reversed(CASES.values()):
        for _ in every_schedule(lambda case=case: TwoWorkers(case), Bounds(preemptions=FEW)):  # type: ignore[misc]
            pass


@pytest.mark.parametrize("plant", list(PLANTS))
def test_a_planted_bug_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[plant](monkeypatch)
    with pytest.raises(ViolationError) as found:
        run_all()
    print(f"\n{plant}: {found.value}")
