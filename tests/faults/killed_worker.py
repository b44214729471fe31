"""Workers that kill themselves where they are told to; run by test_killed_at_every_point.py.

One process is started and imports everything. For each line of JSON that it reads it forks a worker, a process of its
own with a store of its own, and answers with the status in which that ended (0: unharmed, -9: killed).
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from domain.answer import Answer
from domain.attempt import Attempt
from domain.delivery import Delivery
from domain.identity import JobKey
from domain.job import Job
from domain.lease import Lease
from domain.life import Life
from domain.outcome import Outcome
from domain.ports.store import IdempotencyStore
from domain.record import Claim, ClaimAnswer, Record
from domain.service import JobService
from tests.support.clock import FakeClock
from tests.support.jobs import RecordedEvents, job, operations

LEASE = timedelta(seconds=60)
RETENTION = timedelta(days=1)


@dataclass
class Points:
    """The boundaries that a worker passes, written down; at the one of that number it dies as by `kill -9`."""

    file: Path
    fatal: int
    passed: int = 0

    def passing(self, name: str) -> None:
        self.passed += 1
        append(self.file, name)
        if self.passed == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    @contextmanager
    def around(self, call: str) -> Iterator[None]:
        """Nothing was asked yet; and: it landed, and the answer is not seen."""
        self.passing(f"before {call}")
        yield
        self.passing(f"after {call}")


class KillingStore:
    """A real store, each call between two points."""

    def __init__(self, inner: IdempotencyStore, points: Points) -> None:
        self.inner = inner
        self.points = points
        self.max_answer_bytes = inner.max_answer_bytes

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        with self.points.around("claim"):
            return self.inner.claim(job, owner=owner, lease=lease)

    def begin(self, claim: Claim, life: Life) -> None:
        with self.points.around("begin"):
            self.inner.begin(claim, life)

    def complete(self, claim: Claim, answer: Answer) -> None:
        with self.points.around("complete"):
            self.inner.complete(claim, answer)

    def release(self, claim: Claim, error: str, **how: Any) -> None:
        with self.points.around("release"):
            self.inner.release(claim, error, **how)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        with self.points.around("renew"):
            self.inner.renew(claim, lease)

    def find(self, key: JobKey) -> Record | None:
        with self.points.around("find"):
            return self.inner.find(key)

    def close(self) -> None:
        self.inner.close()


def append(file: Path, line: str) -> None:
    """Durable as an effect should be: a killed process has written it or not."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.fsync(descriptor)
    os.close(descriptor)


@contextmanager
def opened(backend: str, folder: Path, clock: FakeClock) -> Iterator[IdempotencyStore]:
    if backend == "sqlite":
        from adapters.stores.sqlite.store import SQLiteIdempotencyStore

        with closing(SQLiteIdempotencyStore(folder / "records.sqlite", clock, RETENTION)) as store:
            yield store
    elif backend == "valkey":
        from tests.support.valkey import valkey_store

        with closing(valkey_store(int(os.environ["ONEJOB_TEST_PORT"]), clock, RETENTION)) as shared:
            yield shared
    else:
        from tests.support.aws import dynamodb_store

        yield dynamodb_store(clock, RETENTION)


def work(
    backend: str, folder: str, job_id: str, now: str, receives: int, fatal: int, fails: list[int], renews: bool
) -> None:
    """One delivery. Appends to files of points, effects and outcomes that are named after the job."""
    clock, place = FakeClock(datetime.fromisoformat(now)), Path(folder)
    points = Points(place / f"{job_id}.points", fatal)
    with opened(backend, place, clock) as inner:
        outcome = run(KillingStore(inner, points), clock, place, job_id, receives, fails, renews)
    append(place / f"{job_id}.outcomes", type(outcome).__name__)


def run(
    store: KillingStore, clock: FakeClock, place: Path, job_id: str, receives: int, fails: list[int], renews: bool
) -> Outcome:
    points = store.points

    def operation(job: Job, attempt: Attempt) -> object:
        if attempt.number in fails:
            raise ConnectionError
        with points.around("effect"):
            append(place / f"{job_id}.effects", str(attempt.number))
        return {"attempt": attempt.number}

    @contextmanager
    def one_beat(lease: Lease, length: timedelta, *_: object) -> Iterator[None]:
        if renews:
            store.renew(lease.claim, length)
        yield

    service = JobService(
        store=store,
        operations=operations(operation),
        events=RecordedEvents(),
        clock=clock,
        new_id=lambda: os.urandom(16).hex(),
        jitter=lambda: 0.0,
        max_attempts=5,
        margin=timedelta(seconds=5),
        heartbeat=one_beat,
    )
    return service.process(job(job_id), lease=LEASE, deadline=None, delivery=Delivery(receives))


def forked(order: dict[str, Any]) -> int:
    worker = os.fork()
    if worker == 0:
        try:
            work(**order)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


if __name__ == "__main__":
    modules = {
        "sqlite": "adapters.stores.sqlite.store",
        "valkey": "tests.support.valkey",
        "dynamodb": "tests.support.aws",
    }
    import_module(modules[sys.argv[1]])
    for line in sys.stdin:
        print(forked(json.loads(line)), flush=True)
