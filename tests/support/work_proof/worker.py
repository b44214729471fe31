"""A worker of the proof: `onejob work`, its wall clock set by the test and an operation that notes its effects.

Run as `python -m tests.support.work_proof.worker work ...`. `PROOF_CLOCK` names a file with the seconds by which the
wall clock is off; `PROOF_BACKOFF` is the first back-off in seconds; `PROOF_SEED` draws what a job is like.
"""

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from threading import Event
from time import monotonic
from typing import Any, Self

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job

CLOCK_WIDTH = 8
LONG_SECONDS = 5.0
"""Of a few jobs: their leases and messages must be renewed."""


@dataclass(frozen=True)
class Drawn:
    """What a job is like, by its id: how long it takes before and after its effect, in seconds, and how it fails."""

    fails_for_good: bool
    failures: int
    before: float
    after: float

    @classmethod
    def of(cls, seed: str, job_id: str) -> Self:
        random = Random(f"{seed}:{job_id}")
        chance, is_long = random.random(), random.random() < 0.02
        failures = 2 if chance > 0.98 else 1 if chance > 0.9 else 0
        after = LONG_SECONDS if is_long else random.uniform(0.02, 0.25)
        return cls(chance < 0.04, failures, random.uniform(0, 0.2), after)

    @property
    def is_long(self) -> bool:
        return self.after == LONG_SECONDS


def note(job: Job, attempt: Attempt, step: str, **more: float) -> None:
    """A line of the worker's own file. What `write` has taken outlives the process."""
    line: dict[str, Any] = {"job": job.job_id, "attempt": attempt.number, "epoch": attempt.epoch, "worker": os.getpid()}
    file = os.open(f"effects.{os.getpid()}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(line | {"step": step, "at": monotonic()} | more) + "\n").encode())
    os.close(file)


def record(job: Job, attempt: Attempt) -> int:
    """The operation. It asks whether its lease is lost right before its effect."""
    drawn = Drawn.of(os.environ["PROOF_SEED"], job.job_id)
    note(job, attempt, "begun")
    Event().wait(drawn.before)
    if drawn.fails_for_good:
        raise PermanentError("drawn")
    if attempt.number <= drawn.failures:
        raise ConnectionError("drawn")
    asked = monotonic()
    if attempt.lost():
        raise TimeoutError("lease lost")
    note(job, attempt, "effect", asked=asked)
    Event().wait(drawn.after)
    note(job, attempt, "ended")
    return attempt.number


def main() -> None:
    from adapters import system
    from adapters.sqs import visibility
    from entrypoints.cli import app

    clock = os.open(os.environ["PROOF_CLOCK"], os.O_RDONLY)

    def now(self: system.SystemClock) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=int(os.pread(clock, CLOCK_WIDTH, 0)))

    system.SystemClock.now = now  # type: ignore[method-assign]
    first = float(os.environ["PROOF_BACKOFF"])
    visibility.FIRST_BACKOFF = timedelta(seconds=first)  # type: ignore[misc]
    visibility.OUTAGE_BACKOFF = timedelta(seconds=2 * first)  # type: ignore[misc]
    app.main()


if __name__ == "__main__":
    main()
