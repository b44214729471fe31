"""A worker without a deadline, whose lease is renewed while it works: what `onejob run` is."""

from collections.abc import Sequence
from datetime import datetime

from domain.delivery import Delivery
from domain.outcome import Deferred, Failed, Outcome
from tests.simulation.beating import BeatingWorker
from tests.simulation.plan import PAYLOADS, RUNNER_LEASE, PlannedJob
from tests.simulation.workers import Interrupted, Shared


class Runner(BeatingWorker):
    """A worker without a deadline, whose lease is renewed while it works: what `onejob run` is."""

    counts_runs = False

    def __init__(self, shared: Shared, skew: int, jobs: Sequence[PlannedJob]) -> None:
        super().__init__(shared, skew)
        self.jobs = jobs
        self.cut_off()
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


def _wait(outcome: Outcome, now: datetime) -> int:
    if isinstance(outcome, Deferred):
        return max(1, int((outcome.until - now).total_seconds()) + 1)
    return 5
