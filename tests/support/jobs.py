"""Jobs, operations and events for tests."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from domain.attempt import Attempt
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operation, OperationFunction, Operations
from domain.ports.events import Trace
from domain.ports.store import IdempotencyStore
from domain.record import Claim
from domain.strict_json import Json


def answer_ok(job: Job, attempt: Attempt) -> object:
    return {"job_id": job.job_id, "execution_id": attempt.execution_id}


def operations(run: OperationFunction = answer_ok, *, volatile: frozenset[str] = frozenset()) -> Operations:
    return Operations(Operation("default", run, volatile))


def job(job_id: str = "job-001", **message: Json) -> Job:
    return JobFactory("test", operations()).job({"job_id": job_id, **message})


def died_with(store: IdempotencyStore, factory: JobFactory, *job_ids: str) -> None:
    """A worker claimed these jobs, and never ended them: their leases have lapsed."""
    for job_id in job_ids:
        store.claim(factory.job({"job_id": job_id}), owner="dead", lease=timedelta(seconds=-1))


def counting_ids(prefix: str = "run") -> Callable[[], str]:
    numbers = iter(range(1, 1_000_000))
    return lambda: f"{prefix}-{next(numbers)}"


@dataclass
class RecordedEvents:
    """`JobEvents` that remembers."""

    traces: list[Trace] = field(default_factory=list)
    unverified: list[Job] = field(default_factory=list)
    failed_releases: list[Exception] = field(default_factory=list)
    overdue_attempts: list[Claim] = field(default_factory=list)

    def finished(self, trace: Trace) -> None:
        self.traces.append(trace)

    def fingerprint_unverified(self, job: Job) -> None:
        self.unverified.append(job)

    def release_failed(self, job: Job, error: Exception) -> None:
        self.failed_releases.append(error)

    def overdue(self, job: Job, claim: Claim) -> None:
        self.overdue_attempts.append(claim)
