"""What a million jobs cost on AWS, from the requests that tests count: `uv run python benchmarks/cost.py`.

Prices are list prices of us-east-1 in dollars, without free tiers; docs/deploy.md shows the table.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

WRITE_UNIT: Final = 0.625e-6
"""DynamoDB on demand: a write of up to 1 KB, landed or refused by its condition."""
READ_UNIT: Final = 0.125e-6
"""A strongly consistent read of up to 4 KB; an eventually consistent one is half."""
SQS_REQUEST: Final = 0.40e-6
LAMBDA_REQUEST: Final = 0.20e-6
LAMBDA_GB_SECOND: Final = 0.0000133334
"""arm64."""
LOGS_GB: Final = 0.50
STORED_GB_MONTH: Final = 0.25 + 0.20
"""The table and its point-in-time recovery."""
RETENTION_MONTHS: Final = 28 / 30.4

MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What the bill depends on beside the number of jobs."""

    batch: int = 10
    memory_gb: float = 0.5
    batch_seconds: float = 0.06
    """The invocation beside your operation: two round trips to DynamoDB, and what is around them."""
    log_bytes: int = 380
    """The line of a job."""
    log_bytes_per_batch: int = 900
    """Lambda's three lines and one of metrics."""


@dataclass(frozen=True, slots=True)
class Job:
    """How a delivery ends, in requests to DynamoDB."""

    name: str
    writes: tuple[float, ...] = ()
    """Sizes of the items written, in KB."""
    reads: tuple[float, ...] = ()
    """Sizes of the items read (eventually consistent), in KB."""
    is_sent: bool = False
    """A message of its own, and not one that came back."""
    is_kept: bool = False
    """Leaves a record."""


NEW: Final = Job("new job, small answer", writes=(0.7, 0.9), is_sent=True, is_kept=True)
DUPLICATE: Final = Job("duplicate, sent again", writes=(0.9,), is_sent=True)
REDELIVERED: Final = Job("duplicate, delivered again", reads=(0.9,))
FAILING: Final = Job("a failed attempt, before the one that succeeds", writes=(0.7, 0.7), reads=(0.7,))
LARGE: Final = Job("new job, answer of 100 KB", writes=(0.7, 100.9), is_sent=True, is_kept=True)
LARGE_DUPLICATE: Final = Job("its duplicate, sent again", writes=(100.9,), is_sent=True)
LARGE_REDELIVERED: Final = Job("its duplicate, delivered again", reads=(100.9,))
JOBS: Final = (NEW, DUPLICATE, REDELIVERED, FAILING, LARGE, LARGE_DUPLICATE, LARGE_REDELIVERED)


def dollars(job: Job, worker: Worker = Worker()) -> dict[str, float]:
    """For a million of them, by service."""
    units = sum(ceil(size) for size in job.writes)
    reads = sum(ceil(size / 4) / 2 for size in job.reads)
    requests = job.is_sent + 2 / worker.batch
    seconds = worker.batch_seconds * worker.memory_gb / worker.batch
    stored = job.writes[-1] if job.is_kept else 0
    log_bytes = worker.log_bytes + worker.log_bytes_per_batch / worker.batch
    return {
        "DynamoDB": MILLION * (units * WRITE_UNIT + reads * READ_UNIT),
        "Storage": MILLION * stored / 1e6 * RETENTION_MONTHS * STORED_GB_MONTH,
        "SQS": MILLION * requests * SQS_REQUEST,
        "Lambda": MILLION * (LAMBDA_REQUEST / worker.batch + seconds * LAMBDA_GB_SECOND),
        "Logs": MILLION * log_bytes / 1e9 * LOGS_GB,
    }


def table() -> str:
    """Markdown."""
    names = list(dollars(NEW))
    lines = [f"| a million of | {' | '.join(names)} | together |", f"|---|{'---:|' * (len(names) + 1)}"]
    for job in JOBS:
        costs = dollars(job)
        cells = " | ".join(f"{costs[name]:.2f}" for name in names)
        lines.append(f"| {job.name} | {cells} | **{sum(costs.values()):.2f}** |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
