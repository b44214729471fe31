"""What grows with jobs, threads and the batch: time a job, and memory, each in a new process."""

import resource
import time
from functools import partial
from typing import Final

from benchmarks import sides
from benchmarks.handling import LATENCY_MS, OPERATION_MS
from benchmarks.pairs import Comparison, Section, in_turn
from benchmarks.sides import all_done, events, messages
from benchmarks.stand_in import stand_in

JOBS: Final = (1, 10, 100, 10_000)
THREADS: Final = (1, 2, 4, 8, 16)
BATCHES: Final = tuple(range(1, 11))
LARGEST_BATCH: Final = 16
REPEATS: Final = 3


def growth(pairs: int, most_jobs: int) -> Section:
    """Pairs are taken in turn, as everywhere."""
    comparisons: list[Comparison] = []
    with stand_in(0) as url:
        for jobs in filter(lambda number: number <= most_jobs, JOBS):
            rounds = [[sides.fresh(_many, url, name, jobs) for name in ("onejob", "bare")] for _ in range(pairs)]
            for index, (what, unit) in enumerate((("time a job", "ms"), ("memory", "MB"))):
                onejob, bare = ([measured[index] for measured in side] for side in zip(*rounds, strict=True))
                comparisons.append(_compared(f"{jobs} jobs, {what}", unit, onejob, bare))
    with stand_in(LATENCY_MS / 1000) as url:
        for threads in THREADS:
            onejob, bare = in_turn(
                pairs, *(partial(sides.fresh, _batch, url, name, threads, LARGEST_BATCH) for name in ("onejob", "bare"))
            )
            comparisons.append(_compared(f"{threads} threads, batch of {LARGEST_BATCH}", "ms", onejob, bare))
        for batch in BATCHES:
            onejob, bare = in_turn(
                pairs, *(partial(sides.fresh, _batch, url, name, batch, batch) for name in ("onejob", "bare"))
            )
            comparisons.append(_compared(f"batch of {batch}", "ms", onejob, bare))
    return Section("growth", comparisons)


def _compared(name: str, unit: str, onejob: list[float], bare: list[float]) -> Comparison:
    return Comparison(name=name, unit=unit, ours=onejob, theirs=bare, against="bare Powertools")


def _many(url: str, side: str, jobs: int) -> tuple[float, float]:
    """Milliseconds a job in batches of ten, from a first event that already ran; the largest memory in MB."""
    sides.enter(url)
    handle = sides.side(side)
    all_done(handle, events(messages(1), 1))
    batches = events(messages(jobs), 10)
    began = time.perf_counter()
    all_done(handle, batches)
    took = time.perf_counter() - began
    return took * 1000 / jobs, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _batch(url: str, side: str, threads: int, batch: int) -> float:
    """Milliseconds for a batch of jobs of 50 ms, the best of three: what a noisy machine adds is not the question."""
    sides.enter(url, threads)
    handle = sides.side(side)
    all_done(handle, events(messages(batch, ms=1), batch))
    times = []
    for _ in range(REPEATS):
        event = events(messages(batch, ms=OPERATION_MS), batch)
        began = time.perf_counter()
        all_done(handle, event)
        times.append((time.perf_counter() - began) * 1000)
    return min(times)
