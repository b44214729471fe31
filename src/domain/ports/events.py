"""The port that tells operators what happened. Nothing told here may change an outcome."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from domain.delivery import Delivery
from domain.job import Job
from domain.outcome import Outcome
from domain.record import Claim


@dataclass(frozen=True, slots=True)
class Trace:
    """One delivery of one job, from start to outcome. `attempt` is None where nothing was claimed."""

    job: Job
    delivery: Delivery
    execution_id: str
    attempt: int | None
    outcome: Outcome
    duration: timedelta
    error: BaseException | None = None


class JobEvents(Protocol):
    """Called from the thread that runs the job. Must not raise, and must not tell a payload value."""

    def finished(self, trace: Trace) -> None:
        """Once for every `process` that returns."""
        ...

    def fingerprint_unverified(self, job: Job) -> None:
        """The stored fingerprint is absent or of another scheme: the payloads were not compared."""
        ...

    def release_failed(self, job: Job, error: Exception) -> None:
        """A failed attempt could not give its claim back: the job waits for the lease to lapse."""
        ...

    def overdue(self, job: Job, claim: Claim) -> None:
        """The deadline of this attempt is over and its operation still runs: its lease is renewed no more, so that
        another worker may take the job over. Once for an attempt, from any thread.
        """
        ...
