"""Asks the port what the service never asks: one owner with two payloads, an attempt that is over, another scheme."""

from dataclasses import replace
from datetime import timedelta

from domain.answer import Answer
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.life import Life
from domain.operation import Operations
from domain.record import Acquired, Claim, Record, Status
from tests.simulation.oracle import Unwatched
from tests.simulation.store import UnknownFaultError, WorkerStore
from tests.simulation.tries import Unbounded
from tests.simulation.workers import NAMESPACE, Shared, Worker

STEPS = 12
FACTORY = JobFactory(NAMESPACE, Operations())
JOBS = {
    (number, payload): FACTORY.job({"job_id": f"probe-{number}", "payload": payload})
    for number in (0, 1)
    for payload in (0, 1)
}
"""By id and payload."""


class Probe(Worker):
    """Random requests on a few keys of its own kind; every answer is checked against the port's conditions."""

    def __init__(self, shared: Shared, skew: int) -> None:
        super().__init__(shared, skew)
        oracle = Unwatched(self.world, self.plan, self.oracle.deliveries, faults=self.oracle.faults, tries=Unbounded())
        self.store = WorkerStore(self.world, self.plan, oracle, shared.backend, self, self.clock.now, self.crash_point)
        self.claims: list[Claim] = []

    def work(self) -> None:
        if self.world.chance.random() < 0.5:
            self._put_a_stock_record()
        for _ in range(STEPS):
            self.world.pause(self.world.chance.choice((0, 0, 1, 3, 8)))
            try:
                self._ask()
            except (LeaseLostError, StoreUnavailableError, UnknownFaultError):
                continue

    def _put_a_stock_record(self) -> None:
        """As Powertools itself writes one: no owner, no fingerprint, and a retention that may end before its lease."""
        now, chance = self.clock.now(), self.world.chance
        key = self._job().key
        if self.plan.stock_records and self.shared.backend.peek(key) is None:
            lease, retention = timedelta(seconds=chance.randint(2, 40)), timedelta(seconds=chance.randint(1, 20))
            record = Record(key, None, Status.IN_PROGRESS, None, 0, now + lease, now + retention, None)
            self.shared.backend.put(record)

    def _ask(self) -> None:
        chance = self.world.chance
        if not self.claims or chance.random() < 0.5:
            lease = timedelta(seconds=chance.choice((0, 1, 4, 10)))
            answer = self.store.claim(self._job(), owner=f"owner-{chance.randint(0, 1)}", lease=lease)
            if isinstance(answer, Acquired):
                self.claims.append(answer.claim)
            return
        claim = chance.choice(self.claims)
        match chance.randint(0, 4):
            case 0:
                self.store.complete(claim, chance.choice((Answer("1"), Answer("null"), Answer("null", "too large"))))
            case 1:
                self.store.release(
                    claim,
                    chance.choice(("OSError", "")),
                    forget_payload=chance.random() < 0.3,
                    life=chance.choice((None, self._life(claim))),
                )
            case 2:
                self.store.renew(claim, timedelta(seconds=chance.choice((1, 6))))
            case 3:
                self.store.begin(claim, self._life(claim))
            case _:
                self.store.find(claim.key)

    def _life(self, claim: Claim) -> Life:
        chance = self.world.chance
        rejected_at = chance.choice((None, self.clock.now()))
        return Life(claim.life.number, chance.randint(0, 6), chance.randint(0, 2), rejected_at)

    def _job(self) -> Job:
        chance = self.world.chance
        job = JOBS[chance.randint(0, 1), chance.randint(0, 1)]
        return replace(job, fingerprint=f"other:{job.fingerprint}") if chance.random() < 0.3 else job
