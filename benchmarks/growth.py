"""What grows with jobs, threads and the batch: time a job, and memory, each in a new process."""

import resource
import time
from collections.abc import Callable
from typing import Final

from benchmarks import sides
from benchmarks.handling import LATENCY_MS, wall_of
from benchmarks.pairs import Comparison, Section, in_turn
from benchmarks.sides import Handle, all_done, events, messages
from benchmarks.stand_in import stand_in

JOBS: Final = (1, 10, 100, 10_000)
MANY: Final = 10_000
PAIRS_OF_MANY: Final = 3
THREADS: Final = (1, 2, 4, 8, 16)
LARGEST_BATCH: Final = 16
BATCHES: Final = tuple(range(1, 11))


def growth(pairs: int, most_jobs: int) -> Section:
    """Pairs are taken in turn, as everywhere."""
    comparisons: list[Comparison] = []
    with stand_in(0) as url:
        for jobs in filter(lambda number: number <= most_jobs, JOBS):
            number = min(pairs, PAIRS_OF_MANY) if jobs >= MANY else pairs
            rounds = [[sides.fresh(_many, url, name, jobs) for name in ("onejob", "bare")] for _ in range(number)]
            for index, (what, unit) in enumerate((("time a job", "ms"), ("memory", "MB"))):
                onejob, bare = ([measured[index] for measured in side] for side in zip(*rounds, strict=True))
                comparisons.append(_compared(f"{jobs} jobs, {what}", unit, onejob, bare))
    with stand_in(LATENCY_MS / 1000) as url:
        for threads, (onejob, bare) in zip(THREADS, sides.fresh(_threads, url, pairs), strict=True):
            comparisons.append(_compared(f"{threads} threads, batch of {LARGEST_BATCH}", "ms", onejob, bare))
        for batch, (onejob, bare) in zip(BATCHES, sides.fresh(_batches, url, pairs), strict=True):
            comparisons.append(_compared(f"batch of {batch}, 10 threads", "ms", onejob, bare))
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


def _threads(url: str, pairs: int) -> list[tuple[list[float], list[float]]]:
    """Milliseconds for a large batch of jobs of 50 ms, by the number of threads; the bare handler has one."""
    handles = []
    for threads in THREADS:
        sides.enter(url, threads)
        handles.append(sides.onejob())
    *onejob, bare = in_turn(pairs, *(_timed(handle, LARGEST_BATCH) for handle in (*handles, sides.bare())))
    return [(times, bare) for times in onejob]


def _batches(url: str, pairs: int) -> list[tuple[list[float], list[float]]]:
    """Milliseconds for a batch of jobs of 50 ms, by its size."""
    sides.enter(url)
    onejob, bare = sides.onejob(), sides.bare()
    measured = []
    for batch in BATCHES:
        ours, theirs = in_turn(pairs, _timed(onejob, batch), _timed(bare, batch))
        measured.append((ours, theirs))
    return measured


def _timed(handle: Handle, batch: int) -> Callable[[], float]:
    all_done(handle, events(messages(batch, ms=1), batch))
    return wall_of(handle, batch)
