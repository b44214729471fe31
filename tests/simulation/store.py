"""The store port as a worker has it: late, failing, and watched. One store serves all, with its asker's time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from domain.answer import Answer
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.record import Acquired, Claim, ClaimAnswer, Record
from tests.simulation import spec
from tests.simulation.backends import Backend, Do
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, LONG_RETENTION, STALE_FOR, Plan
from tests.simulation.spec import Released, Transition
from tests.simulation.world import Process, World, moment, tick_of


class UnknownFaultError(Exception):
    """What a client raises and nobody says that it does, as from the refresh of its credentials."""


type Check = Callable[[Transition], str | None]


@dataclass(slots=True)
class WorkerStore:
    """An `IdempotencyStore` for the code of one process. `last_try` is the end of its tries, if it has one."""

    world: World
    plan: Plan
    oracle: Oracle
    backend: Backend
    process: Process
    now: Callable[[], datetime]
    crash_point: Callable[[], None]
    max_answer_bytes: int | None = None
    last_try: datetime | None = None
    lease_end: datetime | None = None

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        def check(seen: Transition) -> str | None:
            wrong = spec.claim(seen, job, owner, lease)
            if wrong is None and isinstance(seen.result, Acquired) and seen.after is not None:
                self.oracle.claimed(self.process, job, seen.result, seen, lease_end)
            return wrong

        lease_end = self.lease_end
        answer: ClaimAnswer = self._ask(
            "claim", owner, job.key, lambda store: store.claim(job, owner=owner, lease=lease), check
        )
        if isinstance(answer, Acquired):
            self.oracle.learned(answer.claim)
        return answer

    def complete(self, claim: Claim, answer: Answer) -> None:
        def check(seen: Transition) -> str | None:
            wrong = spec.complete(seen, claim, answer)
            if wrong is None and seen.result is None and seen.after is not None:
                self.oracle.completed(claim, answer, seen.after)
            return wrong

        if self.max_answer_bytes is not None and len(answer.text) > self.max_answer_bytes:
            self.oracle.fail("an answer is larger than the store takes")
        self._write("complete", claim, lambda store: store.complete(claim, answer), check)

    def begin(self, claim: Claim, life: Life) -> None:
        def check(seen: Transition) -> str | None:
            wrong = spec.begin(seen, claim, life)
            if wrong is None and seen.result is None and seen.after is not None:
                self.oracle.counted(claim, seen.after)
            return wrong

        self.oracle.asked_to_count(claim)
        self._write("begin", claim, lambda store: store.begin(claim, life), check)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        told = Released(error, forget_payload, life)

        def check(seen: Transition) -> str | None:
            wrong = spec.release(seen, claim, told)
            if wrong is None and seen.result is None and seen.before != seen.after:
                self.oracle.released(claim, told, seen)
            return wrong

        self._write(
            "release",
            claim,
            lambda store: store.release(claim, error, forget_payload=forget_payload, life=life),
            check,
        )

    def _write(self, name: str, claim: Claim, do: Do, check: Check) -> None:
        try:
            self._ask(name, claim.owner, claim.key, do, check)
        except LeaseLostError:
            self.oracle.write_refused(claim)
            raise

    def renew(self, claim: Claim, lease: timedelta) -> None:
        def check(seen: Transition) -> str | None:
            wrong = spec.renew(seen, claim, lease)
            if wrong is None and seen.result is None and seen.after is not None:
                self.oracle.renewed(claim, seen.after)
            return wrong

        self._ask("renew", claim.owner, claim.key, lambda store: store.renew(claim, lease), check)

    def find(self, key: JobKey) -> Record | None:
        found: Record | None = self._ask("find", self.world.current.name, key, lambda store: store.find(key), spec.find)
        if self.world.chance.random() * 1000 < self.plan.stale_reads:
            then = self.world.now - self.world.chance.randint(0, STALE_FOR)
            old = self.oracle.stood_at(key, then)
            self.oracle.faults["stale read"] += old != found
            return old
        return found

    def close(self) -> None:
        """The world closes the store behind it (`Backend.close`)."""

    @property
    def tries_until(self) -> datetime | None:
        """The end of its tries, on its clock as that now is."""
        return self.last_try

    def _ask(self, name: str, owner: str, key: JobKey, do: Do, check: Check) -> Any:
        """The oracle hears of each try, and of its failure."""
        self.oracle.tries.asks(name, owner, self.now(), self.tries_until)
        try:
            answer = self._try(name, key, do, check)
        except (StoreUnavailableError, UnknownFaultError):
            self.oracle.tries.failed(name, owner, self.now())
            raise
        self.oracle.tries.answered(name, owner)
        return answer

    def _try(self, name: str, key: JobKey, do: Do, check: Check) -> Any:
        """Two places to switch: before the request lands, and before its answer is seen."""
        world, plan = self.world, self.plan
        asked_at = self.now()
        fault = self._fault(name)
        world.pause(world.chance.randint(0, plan.latency) if plan.latency else 0)
        self.crash_point()
        is_cut_off = self.process.is_cut_off("store")
        if is_cut_off:
            fault = "cut off from the store"
        if is_cut_off or fault == "throttled" or self._is_down():
            self.oracle.faults["down" if fault in ("ok", "lost", "late", "strange") else fault] += 1
            raise self._failure(f"{name}: {fault}")
        if fault == "late":
            self.oracle.faults[fault] += 1
            self._land_later(lambda: self._land(name, key, do, check, asked_at))
            world.pause(2)
            raise StoreUnavailableError(f"{name}: timed out, and lands later")
        if fault == "strange":
            self.oracle.faults["answered by a stranger"] += 1
            result = self.backend.ask_stranger(name, do)
            if not (isinstance(result, StoreUnavailableError) or (name == "find" and result is None)):
                self.oracle.fail(f"{name}: an answer without evidence was believed: {result}")
        else:
            result = self._land(name, key, do, check, asked_at)
        world.pause()
        self.crash_point()
        if fault == "lost":
            self.oracle.faults[fault] += 1
            raise self._failure(f"{name}: landed, the answer is lost")
        if isinstance(result, Exception):
            raise result
        return result

    def _failure(self, text: str) -> Exception:
        """Of a class of the port's in two of three ticks; no draw, so that a seed stays the world that it was."""
        if self.world.now % 3:
            return StoreUnavailableError(text)
        self.oracle.faults["of unknown class"] += 1
        return UnknownFaultError(text)

    def _land_later(self, land: Callable[[], None]) -> None:
        """Whatever becomes of who asked."""
        world = self.world
        at = world.now + world.chance.randint(1, 40)
        world.at(at, partial(world.spawn, Process(), land) if self.backend.switches else land)

    def _fault(self, name: str) -> str:
        plan, world = self.plan, self.world
        if world.now >= FAULTS_UNTIL:
            return "ok"
        drawn = world.chance.random() * 1000
        if not plan.hostile and name in ("complete", "renew"):  # or the window would open
            return "lost" if drawn < plan.lost else "ok"
        faults = ("throttled", plan.throttled), ("lost", plan.lost), ("late", plan.late), ("strange", plan.strangers)
        for fault, chance in faults:
            if drawn < chance:
                return fault
            drawn -= chance
        return "ok"

    def _is_down(self) -> bool:
        now = self.world.now
        return self.plan.hostile and any(start <= now < end for start, end in self.plan.outages)

    def _land(self, name: str, key: JobKey, do: Do, check: Check, asked_at: datetime) -> Any:
        """What stands there, the request, what stands there then, and whether that is right."""

        def seen(before: Record | None, after: Record | None, result: Any) -> None:
            if before != after:
                self._changed(key, after)
            if wrong := check(Transition(before, after, asked_at, self.backend.retention, result)):
                self.oracle.fail(f"{name}: {wrong}")

        return self.backend.land(self.process, key, asked_at, do, seen)

    def _changed(self, key: JobKey, after: Record | None) -> None:
        self.oracle.stands(key, after)
        if after is not None and self.plan.deletions and self.plan.retention < LONG_RETENTION:
            self.world.at(tick_of(after.expires_at) + self.world.chance.randint(1, 60), lambda: self._delete(key))

    def _delete(self, key: JobKey) -> None:
        """As the table does, by its own clock, at some time after the retention."""
        record = self.backend.peek(key)
        if record is not None and record.expires_at < moment(self.world.now):
            self.oracle.faults["deleted by the table"] += 1
            self.backend.delete(key)
            self.oracle.stands(key, None)
            self.oracle.deleted_record(key)
