"""A worker whose leases are renewed by the real heartbeat, in the simulator's threads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from adapters.threads.heartbeat import ThreadHeartbeat
from domain.attempt import Attempt
from domain.errors import HeartbeatUnavailableError, LeaseLostError, StoreUnavailableError
from domain.job import Job
from domain.lease import Lease
from domain.record import Claim
from tests.simulation.attempts import AttemptSeen
from tests.simulation.plan import PlannedJob
from tests.simulation.store import UnknownFaultError
from tests.simulation.threads import GreenThreads
from tests.simulation.workers import Shared, Worker

LOOK_EVERY = 5


class BeatingWorker(Worker):
    """What the heartbeat asked and was answered is told to the oracle."""

    def __init__(self, shared: Shared, skew: int) -> None:
        super().__init__(shared, skew)
        self.set_its_clock()
        self.threads = GreenThreads(self.world, self, self.thread_is_refused)
        self.beating = ThreadHeartbeat(self._renew, self.clock, self.threads)

    def set_its_clock(self) -> None:
        """Somebody sets it; of some somebody sets it right again."""
        plan, world = self.plan, self.world
        if world.chance.random() * 1000 >= plan.steps:
            return
        at, by = world.now + world.chance.randint(1, 80), world.chance.choice((-60, -30, -5, 5, 30, 60))
        world.at(at, lambda: self._step(by))
        if world.chance.random() < 0.5:
            world.at(at + world.chance.choice((1, 10)), lambda: self._step(-by))

    def _step(self, by: int) -> None:
        if self.dead:
            return
        self.oracle.faults["clock set"] += 1
        self.is_set(self.skew + by)
        self.clock.skew = self.skew
        self.suspended_at = self.world.now  # what was counted before is counted otherwise
        self.oracle.tries.shift(self.owners | self.world.names_of(self), timedelta(seconds=by))

    @contextmanager
    def heartbeat(
        self, lease: Lease, length: timedelta, until: datetime | None, overdue: Callable[[], None]
    ) -> Iterator[None]:
        seen = self.oracle.by_fence[lease.claim.owner, lease.claim.attempt]
        end = lease.end.monotonic
        seen.beats, seen.asked_at = True, int((end - length).total_seconds())
        seen.believed_tick = int(end.total_seconds())
        try:
            with self.beating(lease, length, until, overdue):
                yield
        except HeartbeatUnavailableError:
            seen.beats, seen.had_no_heartbeat = False, True
            raise

    def _renew(self, claim: Claim, lease: timedelta) -> None:
        seen, asked = self.oracle.by_fence[claim.owner, claim.attempt], self.clock.now()
        asked_at = self.world.now
        try:
            self.store.renew(claim, lease)
        except LeaseLostError:
            self.oracle.faults["renewal refused"] += 1
            seen.renewal_refused = True
            seen.was_refused_late = self.oracle.tries.are_used_up("release", claim.owner, self.clock.now(), beats=True)
            raise
        except (StoreUnavailableError, UnknownFaultError):
            seen.renewal_failed, seen.failed_at = True, self.world.now
            raise
        self.oracle.faults["renewed"] += 1
        seen.believed_until, seen.believed_tick = asked + lease, asked_at + int(lease.total_seconds())
        seen.asked_at, seen.failed_at = asked_at, -1

    def work_longer(self, planned: PlannedJob, attempt: Attempt, seen: AttemptSeen) -> None:
        for _ in range(planned.longer // LOOK_EVERY):
            self.world.pause(LOOK_EVERY)
            self.stop_if_lost(attempt, seen)

    def overdue(self, job: Job, claim: Claim) -> None:
        super().overdue(job, claim)
        self.oracle.by_fence[claim.owner, claim.attempt].is_overdue = True
