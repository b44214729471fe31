"""What so many jobs a day need of AWS: rates, quotas, storage, dollars: `uv run python -m benchmarks.scale`.

docs/scale.md shows the table and explains the limits. Quotas are the defaults of us-east-1; they can be raised but
where a comment says otherwise.
"""

import argparse
from dataclasses import dataclass
from math import ceil
from typing import Final

from benchmarks import cost

DAY: Final = 86_400
TABLE_WRITES: Final = 40_000
"""Write units a second that an account's table may use on demand."""
PARTITION_WRITES: Final = 1_000
"""Write units a second of one partition, and so of one key. Not to be raised."""
FUNCTION_CONCURRENCY: Final = 1_000
"""Of an account and region; also the most that one event source mapping takes."""
IN_FLIGHT: Final = 120_000
"""Messages of a queue that were received and are not deleted. Not to be raised."""
FIFO_MESSAGES: Final = 70_000
"""A second, high throughput, batches of ten, in the largest regions; one message group: 300 (3,000 in batches)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is to be handled. `peak` is the busiest second over the average one."""

    jobs_a_day: int
    peak: float = 3
    duplicates: float = 0.05
    operation_seconds: float = 0.2
    batch: int = 10
    threads: int = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What it takes."""

    jobs_a_second: float
    writes_a_second: float
    partitions: int
    tables: int
    concurrency: int
    mappings: int
    retried_minute_in_flight: int
    stored_gb: float
    dollars_a_day: float


def need(load: Load) -> Need:
    """At the peak, but for storage and dollars."""
    peak = load.jobs_a_day / DAY * load.peak
    writes = peak * (len(cost.NEW.writes) + load.duplicates * len(cost.DUPLICATE.writes))
    rounds = ceil(load.batch / load.threads)
    concurrency = ceil(peak * (1 + load.duplicates) / load.batch * (rounds * load.operation_seconds + 0.03))
    million = load.jobs_a_day / cost.MILLION
    worker = cost.Worker(batch=load.batch, batch_seconds=rounds * load.operation_seconds + 0.03)
    spent = sum(cost.dollars(cost.NEW, worker).values()) + load.duplicates * sum(
        cost.dollars(cost.DUPLICATE, worker).values()
    )
    return Need(
        jobs_a_second=peak,
        writes_a_second=writes,
        partitions=ceil(writes / PARTITION_WRITES),
        tables=ceil(writes / TABLE_WRITES),
        concurrency=concurrency,
        mappings=ceil(concurrency / FUNCTION_CONCURRENCY),
        retried_minute_in_flight=ceil(peak * 60),
        stored_gb=load.jobs_a_day * cost.NEW.writes[-1] * 28 / 1e6,
        dollars_a_day=million * spent,
    )


def table(loads: list[Load]) -> str:
    """Markdown, a row a load."""
    lines = [
        "| jobs a day | a second, peak | write units a second | partitions | tables | concurrency |"
        " in flight in an outage of a minute | stored, GB | dollars a day |",
        f"|{'---:|' * 9}",
    ]
    for load in loads:
        told = need(load)
        outage = f"{told.retried_minute_in_flight:,}" + (" (!)" if told.retried_minute_in_flight > IN_FLIGHT else "")
        lines.append(
            f"| {load.jobs_a_day:,} | {told.jobs_a_second:,.0f} | {told.writes_a_second:,.0f} | {told.partitions} |"
            f" {told.tables} | {told.concurrency:,} | {outage} | {told.stored_gb:,.0f} | {told.dollars_a_day:,.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[10**power for power in range(5, 10)], help="a day")
    parser.add_argument("--peak", type=float, default=3, help="the busiest second over the average one")
    parser.add_argument("--duplicates", type=float, default=0.05, help="deliveries a job beyond the first")
    parser.add_argument("--operation-seconds", type=float, default=0.2)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--threads", type=int, default=10)
    told = parser.parse_args()
    loads = [
        Load(
            jobs_a_day=jobs,
            peak=told.peak,
            duplicates=told.duplicates,
            operation_seconds=told.operation_seconds,
            batch=told.batch,
            threads=told.threads,
        )
        for jobs in told.jobs
    ]
    print(table(loads))


if __name__ == "__main__":
    main()
