"""The core alone, over a memory store, beside idemkit's decorator over its own: CPU a call, no SDK, no queue."""

import json
import os
import subprocess
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

from benchmarks import sides
from benchmarks.pairs import Comparison, Section

IDEMKIT: Final = "1.0.2"
SCRIPT: Final = Path(__file__).parent / "idemkit_calls.py"
KINDS: Final = ("new call", "duplicate")


def in_process(pairs: int, calls: int) -> Section:
    """A new process for each measurement. idemkit is asked as a plain function and inside an event loop."""
    rounds = [(sides.fresh(_onejob, calls), _idemkit(calls)) for _ in range(pairs)]
    comparisons = [
        Comparison(
            name=f"{kind}, memory store",
            unit="ms",
            ours=[onejob[number] for onejob, _ in rounds],
            theirs=[idemkit[way][number] for _, idemkit in rounds],
            against=f"idemkit {way}",
        )
        for number, kind in enumerate(KINDS)
        for way in ("sync", "async")
    ]
    return Section("the core over memory", comparisons, {"idemkit": IDEMKIT})


def _idemkit(calls: int) -> dict[str, list[float]]:
    command = ["uv", "run", "--isolated", "--no-project", "--quiet", "--with", f"idemkit=={IDEMKIT}", "python"]
    done = subprocess.run(
        [*command, str(SCRIPT), str(calls)],
        env={name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")},
        capture_output=True,
        text=True,
        check=True,
    )
    measured: dict[str, list[float]] = json.loads(done.stdout)
    return measured


def _onejob(calls: int) -> list[float]:
    """From a message as it was parsed to its outcome."""
    from adapters.stores.memory import MemoryIdempotencyStore
    from adapters.system import SystemClock, jitter, new_id
    from domain.delivery import Delivery
    from domain.job_factory import JobFactory
    from domain.operation import Operation, Operations
    from domain.outcome import Executed, Skipped
    from domain.ports.events import Trace
    from domain.service import JobService

    class Silent:
        def finished(self, trace: Trace) -> None:
            pass

        def fingerprint_unverified(self, job: object) -> None:
            pass

        def release_failed(self, job: object, error: Exception) -> None:
            pass

        def overdue(self, job: object, claim: object) -> None:
            pass

    clock = SystemClock()
    operations = Operations(Operation("default", lambda job, attempt: {"ok": "xx"}))
    service = JobService(
        store=MemoryIdempotencyStore(clock, timedelta(days=1)),
        operations=operations,
        events=Silent(),
        clock=clock,
        new_id=new_id,
        jitter=jitter,
        max_attempts=5,
        margin=timedelta(seconds=5),
    )
    factory, delivery, lease = JobFactory("bench", operations), Delivery(1, "m"), timedelta(minutes=1)
    times = []
    for expected in (Executed, Skipped):  # first new, then the same again
        began = time.process_time()
        for number in range(calls):
            outcome = service.process(
                factory.job({"job_id": f"job-{number}"}), lease=lease, deadline=None, delivery=delivery
            )
            assert isinstance(outcome, expected)
        times.append((time.process_time() - began) * 1000 / calls)
    return times
