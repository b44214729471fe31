"""The store port as a worker has it: late, failing, and watched. One store serves all, with its asker's time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from domain.answer import Answer
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Claim, ClaimAnswer, Record
from tests.simulation import spec
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, Plan
from tests.simulation.world import Process, World, moment


class RequestClock:
    """What the store takes for now: the time at which the request was made, on the clock of who made it."""

    def __init__(self) -> None:
        self.asked_at = moment(0)

    def now(self) -> datetime:
        return self.asked_at

    def sleep(self, duration: timedelta) -> None:
        raise NotImplementedError("a store does not sleep")


@dataclass(frozen=True, slots=True)
class Backend:
    """The real store, and its clock."""

    store: IdempotencyStore
    clock: RequestClock
    retention: timedelta
    put: Callable[[Record], None]
    """Write a record as another tool may have written it, past the port."""


@dataclass(slots=True)
class WorkerStore:
    """An `IdempotencyStore` for the code of one process."""

    world: World
    plan: Plan
    oracle: Oracle
    backend: Backend
    process: Process
    now: Callable[[], datetime]
    crash_point: Callable[[], None]
    max_answer_bytes: int | None = None

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        def check(before: Record | None, after: Record | None, asked_at: datetime, result: Any) -> str | None:
            wrong = spec.claim(before, after, job, owner, lease, self.backend.retention, asked_at, result)
            if wrong is None and isinstance(result, Acquired) and after is not None:
                self.oracle.claimed(self.process, job.key, result, after, asked_at)
            return wrong

        answer: ClaimAnswer = self._ask(
            "claim", job.key, lambda: self.backend.store.claim(job, owner=owner, lease=lease), check
        )
        return answer

    def complete(self, claim: Claim, answer: Answer) -> None:
        def check(before: Record | None, after: Record | None, asked_at: datetime, result: Any) -> str | None:
            wrong = spec.complete(before, after, claim, answer, self.backend.retention, asked_at, result)
            if wrong is None and result is None and after is not None:
                self.oracle.completed(claim, answer, after)
            return wrong

        self._ask("complete", claim.key, lambda: self.backend.store.complete(claim, answer), check)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False) -> None:
        def check(before: Record | None, after: Record | None, asked_at: datetime, result: Any) -> str | None:
            wrong = spec.release(before, after, claim, error, forget_payload, result)
            if wrong is None and result is None:
                self.oracle.released(claim)
            return wrong

        try:
            self._ask(
                "release",
                claim.key,
                lambda: self.backend.store.release(claim, error, forget_payload=forget_payload),
                check,
            )
        except LeaseLostError:
            self.oracle.release_refused(claim)
            raise

    def renew(self, claim: Claim, lease: timedelta) -> None:
        def check(before: Record | None, after: Record | None, asked_at: datetime, result: Any) -> str | None:
            wrong = spec.renew(before, after, claim, lease, self.backend.retention, asked_at, result)
            if wrong is None and result is None and after is not None:
                self.oracle.renewed(claim, after)
            return wrong

        self._ask("renew", claim.key, lambda: self.backend.store.renew(claim, lease), check)

    def find(self, key: JobKey) -> Record | None:
        def check(before: Record | None, after: Record | None, asked_at: datetime, result: Any) -> str | None:
            return None if before == after == result else f"find changed or missed something: {result}"

        found: Record | None = self._ask("find", key, lambda: self.backend.store.find(key), check)
        return found

    def _ask(self, name: str, key: JobKey, do: Callable[[], Any], check: Callable[..., str | None]) -> Any:
        """Two places to switch: before the request lands, and before its answer is seen."""
        world, plan = self.world, self.plan
        asked_at = self.now()
        fault = self._fault(name)
        world.pause(world.chance.randint(0, plan.latency) if plan.latency else 0)
        self.crash_point()
        if fault == "throttled" or self._is_down():
            self.oracle.faults["down" if fault != "throttled" else fault] += 1
            raise StoreUnavailableError(f"{name}: {fault}")
        if fault == "late":
            self.oracle.faults[fault] += 1
            world.at(world.now + world.chance.randint(1, 40), lambda: self._land(name, key, do, check, asked_at))
            world.pause(2)
            raise StoreUnavailableError(f"{name}: timed out, and lands later")
        result = self._land(name, key, do, check, asked_at)
        world.pause()
        self.crash_point()
        if fault == "lost":
            self.oracle.faults[fault] += 1
            raise StoreUnavailableError(f"{name}: landed, the answer is lost")
        if isinstance(result, Exception):
            raise result
        return result

    def _fault(self, name: str) -> str:
        plan, world = self.plan, self.world
        if world.now >= FAULTS_UNTIL:
            return "ok"
        drawn = world.chance.random() * 1000
        if not plan.hostile and name in ("complete", "renew"):  # or the window would open
            return "lost" if drawn < plan.lost else "ok"
        for fault, chance in (("throttled", plan.throttled), ("lost", plan.lost), ("late", plan.late)):
            if drawn < chance:
                return fault
            drawn -= chance
        return "ok"

    def _is_down(self) -> bool:
        now = self.world.now
        return self.plan.hostile and any(start <= now < end for start, end in self.plan.outages)

    def _land(
        self, name: str, key: JobKey, do: Callable[[], Any], check: Callable[..., str | None], asked_at: datetime
    ) -> Any:
        """At one instant: what stands there, the request, what stands there then, and whether that is right."""
        store = self.backend.store
        self.backend.clock.asked_at = asked_at
        before = store.find(key)
        try:
            result = do()
        except StoreUnavailableError as error:
            return error
        except Exception as error:
            result = error
        after = store.find(key)
        if wrong := check(before, after, asked_at, result):
            self.oracle.fail(f"{name}: {wrong}")
        return result
