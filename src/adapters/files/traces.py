"""What became of the job that a thread ran last, for the runner of a file."""

from threading import local

from domain.job import Job
from domain.ports.events import Trace
from domain.record import Claim


class LastTraces:
    """`JobEvents` for one machine: each thread remembers what it was told last, for the line that it works on."""

    def __init__(self) -> None:
        self._of_thread = local()

    def finished(self, trace: Trace) -> None:
        self._of_thread.trace = trace

    def last(self) -> Trace | None:
        """What this thread was told last."""
        trace: Trace | None = getattr(self._of_thread, "trace", None)
        return trace

    def fingerprint_unverified(self, job: Job) -> None:
        pass

    def release_failed(self, job: Job, error: Exception) -> None:
        pass

    def overdue(self, job: Job, claim: Claim) -> None:
        pass
