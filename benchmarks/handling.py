"""A batch from event to answer: its wall time with a store 5 ms away, and its CPU time with one at hand."""

import time
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks import sides
from benchmarks.pairs import Comparison, Section, in_turn
from benchmarks.sides import Handle, all_done, events, messages
from benchmarks.stand_in import stand_in

OPERATION_MS: Final = 50
LATENCY_MS: Final = 5
FLOOR_MS: Final = OPERATION_MS + 2 * LATENCY_MS
BATCH: Final = 10
NAMES: Final = ("onejob", "bare", "bare_logged")


def wall(pairs: int) -> Section:
    """Ten jobs of 50 ms each."""
    with stand_in(LATENCY_MS / 1000) as url:
        onejob, bare = sides.fresh(_walls, url, pairs)
    return Section(
        "wall time of a batch of 10, operation 50 ms, store 5 ms away",
        [
            Comparison(name="batch", unit="ms", ours=onejob, theirs=bare, against="bare Powertools", goal=0.14),
            Comparison(
                name="batch", unit="ms", ours=onejob, theirs=[FLOOR_MS] * pairs, against="floor", goal=1.25,
                note="operation and two round trips",
            ),
        ],
    )  # fmt: skip


def _walls(url: str, pairs: int) -> list[list[float]]:
    sides.enter(url)
    handles = [sides.side(name) for name in NAMES[:2]]
    for handle in handles:
        all_done(handle, events(messages(2 * BATCH, ms=1), BATCH))
    return in_turn(pairs, *(wall_of(handle, BATCH) for handle in handles))


def wall_of(handle: Handle, batch: int) -> Callable[[], float]:
    """Measures the milliseconds for a batch of so many new jobs."""

    def measure() -> float:
        event = events(messages(batch, ms=OPERATION_MS), batch)
        began = time.perf_counter()
        all_done(handle, event)
        return (time.perf_counter() - began) * 1000

    return measure


def cpu(pairs: int, jobs: int) -> Section:
    """For each new job and for each duplicate that was sent again, SDK included, in batches of ten and of one."""
    comparisons = []
    with stand_in(0) as url:
        for batch in (BATCH, 1):
            new, again = sides.fresh(_cpu, url, pairs, batch, jobs)
            for what, (onejob, bare, logged) in (("new job", new), ("duplicate", again)):
                name = f"{what}, batch of {batch}"
                comparisons += [
                    Comparison(name=name, unit="ms", ours=onejob, theirs=bare, against="bare Powertools", goal=1.05),
                    Comparison(name=name, unit="ms", ours=onejob, theirs=logged, against="bare with Logger"),
                ]
    return Section("CPU time a job, store at hand", comparisons)


def _cpu(url: str, pairs: int, batch: int, jobs: int) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
    sides.enter(url)
    handles = [sides.side(name) for name in NAMES]
    for handle in handles:
        _cpu_of(handle, messages(10 * BATCH), batch)
    rounds: list[list[list[float]]] = [[], []]
    for _ in range(pairs):
        records = [messages(jobs) for _ in handles]
        for kind in rounds:  # first new, then the same again
            kind.append([_cpu_of(handle, mine, batch) for handle, mine in zip(handles, records, strict=True)])
    new, again = (list(zip(*kind, strict=True)) for kind in rounds)
    return new, again


def _cpu_of(handle: Handle, records: list[dict[str, object]], batch: int) -> float:
    began = time.process_time()
    all_done(handle, events(records, batch))
    return (time.process_time() - began) * 1000 / len(records)
