"""A worker without a deadline, whose lease is renewed while it works: what `onejob run` is."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.lease import Lease
from domain.outcome import Deferred, Failed, Outcome
from domain.ports.clock import Moment
from tests.simulation.attempts import AttemptSeen
from tests.simulation.plan import PAYLOADS, RUNNER_LEASE, PlannedJob
from tests.simulation.workers import Interrupted, Shared, Worker

LOOK_EVERY = 5


class Runner(Worker):
    """A worker without a deadline, whose lease is renewed while it works: what `onejob run` is."""

    def __init__(self, shared: Shared, skew: int, jobs: Sequence[PlannedJob]) -> None:
        super().__init__(shared, skew)
        self.jobs = jobs
        self.process_job = self.service(heartbeat=self.heartbeat).process

    def work(self) -> None:
        try:
            self._work()
        except Interrupted:
            self.died_at = self.world.now

    def _work(self) -> None:
        for planned in self.jobs:
            tenant = {"tenant": planned.tenant} if planned.tenant else {}
            job = self.factory.job({"job_id": planned.job_id, **PAYLOADS[0], **tenant})
            for receives in range(1, 60):
                outcome = self.process_job(
                    job,
                    lease=RUNNER_LEASE,
                    deadline=None,
                    delivery=Delivery(receives, f"runner-{planned.job_id}", counts_runs=False),
                )
                if not isinstance(outcome, Deferred | Failed):
                    break
                self.world.pause(_wait(outcome, self.clock.now()))

    def work_longer(self, planned: PlannedJob, attempt: Attempt, seen: AttemptSeen) -> None:
        for _ in range(planned.longer // LOOK_EVERY):
            self.world.pause(LOOK_EVERY)
            self.stop_if_lost(attempt, seen)

    @contextmanager
    def heartbeat(
        self, lease: Lease, length: timedelta, _until: datetime | None, _overdue: Callable[[], None]
    ) -> Iterator[None]:
        beat = _Beat()
        self.oracle.by_fence[lease.claim.owner, lease.claim.attempt].beats = True
        self.world.spawn(self, partial(self._beat, beat, lease, length))
        try:
            yield
        finally:
            beat.ended = True
            while beat.busy and not self.world.is_over:
                self.world.pause(1)

    def _beat(self, beat: "_Beat", lease: Lease, length: timedelta) -> None:
        while True:
            self.world.pause(int(length.total_seconds()) // 3)
            if beat.ended:
                return
            asked = Moment.of(self.clock)
            beat.busy = True
            try:
                self.store.renew(lease.claim, length)
            except LeaseLostError:
                self.oracle.faults["renewal refused"] += 1
                self.oracle.by_fence[lease.claim.owner, lease.claim.attempt].renewal_refused = True
                lease.refuse()
                return
            except StoreUnavailableError:
                self.oracle.by_fence[lease.claim.owner, lease.claim.attempt].renewal_failed = True
            else:
                self.oracle.faults["renewed"] += 1
                self.oracle.by_fence[lease.claim.owner, lease.claim.attempt].believed_until = asked.wall + length
                lease.extend(asked, length)
            finally:
                beat.busy = False


@dataclass(slots=True)
class _Beat:
    ended: bool = False
    busy: bool = False


def _wait(outcome: Outcome, now: datetime) -> int:
    if isinstance(outcome, Deferred):
        return max(1, int((outcome.until - now).total_seconds()) + 1)
    return 5
