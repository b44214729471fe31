"""Every store against the model of its port, in many short lives; and the same machine over broken stores goes red.

In CI the lives are always the same ones. `just models` runs new ones, as many as told.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from adapters.stores import memory
from domain import record as judgement
from domain.record import Claim, Record, Status
from tests.contract.harness import STORES
from tests.models.reference import SITUATIONS
from tests.models.store_machine import Ground, machine, whole_seconds

LIVES = {"memory": 200, "sqlite": 150, "valkey": 150, "dynamodb (ministack)": 130}
LIVES_OF_ANOTHER = 150
MOTO = "dynamodb (moto)"
"""The same store as over the emulator, on a fake that takes its time: in the long form only."""

STEPS = 60
MORE = int(os.environ.get("ONEJOB_MODEL_LIVES", "0"))


def run(name: str, lives: int, *, explain: bool = True, derandomize: bool = not MORE) -> Counter[str]:
    """Ask the store; the situations that it was in. Raises AssertionError where it and the model differ."""
    kept_until = whole_seconds if name.startswith("dynamodb") else lambda end: end
    with STORES[name]() as harness:
        ground = Ground(harness, kept_until, Counter(), count())
        run_state_machine_as_test(
            machine(ground),
            settings=settings(
                max_examples=lives,
                stateful_step_count=STEPS,
                derandomize=derandomize,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate, *([Phase.shrink] if explain else [])],
                print_blob=explain,
            ),
        )
    return ground.situations


@pytest.mark.parametrize("name", [name for name in STORES if MORE or name != MOTO])
def test_a_store_answers_and_remembers_as_the_model_of_its_port(name: str) -> None:
    met = run(name, MORE or LIVES.get(name, LIVES_OF_ANOTHER))
    print(f"\n{name}: {sum(met.values())} questions", *(f"{met[each]:7} {each}" for each in sorted(met)), sep="\n")
    assert set(met) == SITUATIONS


type Plant = Callable[[pytest.MonkeyPatch], None]


def _lease_is_over_at_its_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Record, "lease_is_over", lambda self, now: self.lease_until <= now)


def _retention_is_over_at_its_end(patch: pytest.MonkeyPatch) -> None:
    def is_over(self: Record, now: datetime) -> bool:
        return self.expires_at <= now and (not self.in_progress or self.lease_is_over(now))

    patch.setattr(Record, "retention_is_over", is_over)


def _fence(*compared: str) -> Plant:
    def plant(patch: pytest.MonkeyPatch) -> None:
        def fenced(status: Status) -> Callable[[Record | None, Claim], bool]:
            def passed(record: Record | None, claim: Claim) -> bool:
                held = {"status": status, "owner": claim.owner, "attempts": claim.attempt}
                return record is not None and all(getattr(record, name) == held[name] for name in compared)

            return passed

        patch.setattr(memory, "is_held_by", fenced(Status.IN_PROGRESS))
        patch.setattr(memory, "was_completed_by", fenced(Status.COMPLETED))

    return plant


def _judge(change: Callable[..., Any]) -> Plant:
    """Another judgement: `change` gets the right one and its arguments."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = judgement.judge
        patch.setattr(memory, "judge", lambda *asked: change(right, *asked))

    return plant


def _no_mismatch_on_takeover(right: Any, record: Any, job: Any, owner: Any, now: Any) -> Any:
    if record and record.in_progress and record.lease_is_over(now):
        record = replace(record, fingerprint=job.fingerprint)
    return right(record, job, owner, now)


def _itself_by_owner_alone(right: Any, record: Any, job: Any, owner: Any, now: Any) -> Any:
    if record and record.in_progress and record.owner == owner and not record.lease_is_over(now):
        return judgement.Acquired(Claim(job.key, owner, record.attempts), record.last_error)
    return right(record, job, owner, now)


def _foreign_record_is_ours(right: Any, record: Any, job: Any, owner: Any, now: Any) -> Any:
    return right(record and replace(record, job_id=job.job_id), job, owner, now)


def _any_released_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(memory, "was_released_by", lambda record, claim: record is not None and record.owner is None)


def _store(name: str, change: Callable[[Any, Record], Record]) -> Plant:
    """A write that leaves another record than it should."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(memory.MemoryIdempotencyStore, name)

        def write(self: Any, what: Any, *rest: Any, **more: Any) -> Any:
            before = self._records.get(what.key)
            answer = right(self, what, *rest, **more)
            if self._records[what.key] != before:
                self._records[what.key] = change(before, self._records[what.key])
            return answer

        patch.setattr(memory.MemoryIdempotencyStore, name, write)

    return plant


PLANTS: dict[str, Plant] = {
    "a lease is over at its very end": _lease_is_over_at_its_end,
    "a retention is over at its very end": _retention_is_over_at_its_end,
    "a fence without the attempt": _fence("status", "owner"),
    "a fence without the owner": _fence("status", "attempts"),
    "a fence without the status": _fence("owner", "attempts"),
    "a takeover asks for no payload": _judge(_no_mismatch_on_takeover),
    "a claim finds itself by its owner alone": _judge(_itself_by_owner_alone),
    "a record of another job is taken for ours": _judge(_foreign_record_is_ours),
    "any attempt may repeat a release": _any_released_attempt,
    "a claim forgets the last error": _store("claim", lambda old, new: replace(new, last_error=None)),
    "a claim starts to count anew": _store("claim", lambda old, new: replace(new, attempts=1)),
    "a claim keeps the old answer": _store("claim", lambda old, new: replace(new, answer=old and old.answer)),
    "a completion keeps the old retention": _store(
        "complete", lambda old, new: replace(new, expires_at=old.expires_at)
    ),
    "a release leaves the lease": _store("release", lambda old, new: replace(new, lease_until=old.lease_until)),
    "a release leaves the owner": _store("release", lambda old, new: replace(new, owner=old.owner)),
    "a release always forgets the payload": _store("release", lambda old, new: replace(new, fingerprint=None)),
    "a renewal moves no retention": _store("renew", lambda old, new: replace(new, expires_at=old.expires_at)),
}


@pytest.mark.parametrize("plant", list(PLANTS))
def test_the_machine_finds_a_planted_bug(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTS[plant](monkeypatch)
    with pytest.raises(AssertionError):
        run("memory", LIVES["memory"], explain=False, derandomize=True)
