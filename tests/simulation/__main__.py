"""The simulator's command: many seeds in as many processes as there are cores, and one failing seed made small."""

import argparse
import gc
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.simulation.backends import MakeBackend, memory_backend
from tests.simulation.dynamodb import dynamodb_backend
from tests.simulation.plan import Plan, plan
from tests.simulation.run import Result, simulate
from tests.simulation.shrink import shrink
from tests.simulation.sqlite import sqlite_backend, still_backend
from tests.simulation.stretches import OtherCommitError, Stretches, commit_of

CHUNK: Final = 500
BACKENDS: Final[dict[str, MakeBackend]] = {
    "memory": memory_backend,
    "dynamodb": dynamodb_backend,
    "sqlite": sqlite_backend,
}
COMPARED: Final[dict[str, tuple[MakeBackend, ...]]] = {
    "both": (dynamodb_backend,),
    "all": (dynamodb_backend, still_backend),
}
"""Beside memory. Their traces must be equal, since none of them has a switch within a request."""
KINDS: Final = ("outcomes", "faults", "windows", "reasons")
EXPECTED: Final = {
    "outcomes": (
        *("Executed", "Skipped", "Deferred", "Failed operation_raised", "Failed unknown_operation"),
        *("Failed store_unavailable", "Failed lease_lost", "Failed completion_lost", "Failed not_started"),
        *("Rejected payload_mismatch", "Rejected account_closed", "Rejected attempts_exhausted"),
        *("Rejected unknown_operation", "Rejected not_json", "Rejected stale", "test event"),
    ),
    "faults": (
        "of unknown class",
        *(
            "throttled",
            "lost",
            "late",
            "down",
            "killed",
            "killed late",
            "killed by its job",
            "timed out",
            "suspended",
            "redelivered",
        ),
        *("queue", "burial failed", "settling failed", "release failed", "renewed", "renewal refused"),
        *("exited", "interrupted", "stale read", "deleted by the table", "purged", "job_forgotten"),
        *(
            "thread refused",
            "threads refused",
            "extended",
            "receive failed",
            "overdue",
            "stopped",
            "killed while parsing",
            "put off to run alone",
            "waited to run alone",
            "killed beside others",
            "answered by a stranger",
        ),
        *("cut off from the store", "cut off from the queue", "clock set"),
        *("redriven", "redriven by force", "forgotten", "forgotten by force"),
    ),
    "windows": (
        *("killed between effect and record", "record could not be written"),
        *("outlived its lease", "retention over"),
    ),
    "reasons": (
        *("not_json", "unknown_operation", "account_closed", "payload_mismatch", "attempts_exhausted", "stale"),
    ),
}
"""What a run must have met: a count of zero is a hole in the simulation."""
ENOUGH: Final = 5_000
"""Seeds, from which on nothing may be missing."""


@dataclass
class Tally:
    """What many seeds came to."""

    seeds: int = 0
    failing: dict[int, str] = field(default_factory=dict)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {kind: Counter() for kind in KINDS})

    def add(self, other: "Tally") -> None:
        self.seeds += other.seeds
        self.failing |= other.failing
        for kind in KINDS:
            self.counts[kind].update(other.counts[kind])

    def never_met(self) -> list[str]:
        return [f"{kind}: {name}" for kind in KINDS for name in EXPECTED[kind] if not self.counts[kind][name]]


def chunk(first: int, last: int, backend: str) -> Tally:
    """Seeds from `first` up to, not including, `last`. `both`, `all`: the traces over these stores must be equal."""
    tally = Tally(last - first)
    for seed in range(first, last):
        told = plan(seed)
        result = simulate(told, BACKENDS.get(backend, memory_backend))
        violation = result.violation
        for other in COMPARED.get(backend, ()):
            violation = _difference(told, result, other) or violation
        if violation:
            tally.failing[seed] = violation
        for kind in KINDS:
            tally.counts[kind].update(getattr(result, kind))
    return tally


def _difference(told: Plan, one: Result, backend: MakeBackend) -> str | None:
    if backend is still_backend and told.probes:
        told = replace(told, stock_records=False)
        one = simulate(told)
    other = simulate(told, backend)
    if (one.trace, one.violation) == (other.trace, other.violation):
        return None
    return f"the stores differ ({backend.__name__}): {_first_difference(one.trace, other.trace)}"


def _first_difference(one: Iterable[str], other: Iterable[str]) -> str:
    return next((f"{left} | {right}" for left, right in zip(one, other, strict=False) if left != right), "at the end")


def _prepared() -> None:
    """A run leaves little behind that only the collector finds: a tenth of the time went into looking for it. Who is
    interrupted is the process that waits for this one.
    """
    gc.set_threshold(20_000)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run(first: int, seeds: int, backend: str, processes: int, done: Tally | None = None) -> Iterator[Tally]:
    """The tally so far, after each chunk. `done` are the seeds before `first` that were done already."""
    total = done or Tally()
    starts = range(first + total.seeds, first + seeds, CHUNK)
    with ProcessPoolExecutor(processes, initializer=_prepared) as pool:
        ends = [min(start + CHUNK, first + seeds) for start in starts]
        try:
            for tally in pool.map(chunk, starts, ends, [backend] * len(ends)):
                total.add(tally)
                yield total
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def main() -> int:
    """0 if every rule held and, in a run of some length, everything was met; else 1."""
    options = _options()
    if options.shrink is not None:
        return _show(options.shrink, "memory" if options.backend in COMPARED else options.backend)
    try:
        kept = _kept(options)
    except OtherCommitError as error:
        print(error, file=sys.stderr)
        return 2
    began, told = time.monotonic(), 0.0
    total, before = (Tally(), 0.0) if kept is None else (_tally(kept), kept.seconds)
    failing: set[int] = set()
    try:
        done = total
        for total in run(options.start, options.seeds, options.backend, options.processes, done):
            _tell_failing(total, failing)
            if kept is not None:
                kept.next_seed = options.start + total.seeds
                kept.failing, kept.counts = total.failing, total.counts
                kept.seconds = before + time.monotonic() - began
                kept.keep()
            if not options.json and time.monotonic() - told > (1 if sys.stderr.isatty() else 30):
                told = time.monotonic()
                end = "\r" if sys.stderr.isatty() else "\n"
                print(f"{total.seeds} of {options.seeds} seeds, {len(total.failing)} fail", end=end, file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted; what was done:", file=sys.stderr)
    took = before + time.monotonic() - began
    if options.json:
        print(json.dumps({"seeds": total.seeds, "failing": total.failing, "seconds": round(took, 1)}))
        return 1 if total.failing else 0
    return _report(total, took, options.backend, options.seeds)


def _kept(options: argparse.Namespace) -> Stretches | None:
    """Raises `OtherCommitError`."""
    if options.resume is None:
        return None
    return Stretches.opened(options.resume, commit_of(), options.backend, options.start, KINDS)


def _tally(kept: Stretches) -> Tally:
    return Tally(kept.next_seed - kept.first, kept.failing, kept.counts)


def _tell_failing(total: Tally, told: set[int]) -> None:
    """At once: a long run may be looked into, and stopped."""
    for seed in total.failing.keys() - told:
        print(f"seed {seed}: {total.failing[seed]}", file=sys.stderr)
        told.add(seed)


def _report(total: Tally, took: float, backend: str, wanted: int) -> int:
    for kind in KINDS:
        print(f"{kind}: " + ", ".join(f"{name} {number}" for name, number in total.counts[kind].most_common()))
    print(f"{total.seeds} seeds over {backend} in {took:.0f} s ({total.seeds / max(took, 0.1):.0f} a second)")
    for seed, violation in sorted(total.failing.items())[:10]:
        print(f"seed {seed}: {violation}")
    if total.failing:
        print(f"{len(total.failing)} of {total.seeds} seeds break a rule; look at one: --shrink {min(total.failing)}")
        return 1
    missing = total.never_met()
    if missing:
        print(f"never met, so that nothing is shown of it: {', '.join(missing)}")
    if (missing and total.seeds >= ENOUGH) or total.seeds < wanted:
        return 1
    print("every rule held in every seed")
    return 0


def _show(seed: int, backend: str) -> int:
    result = simulate(plan(seed), BACKENDS[backend])
    if result.violation is None:
        print(*result.trace, f"seed {seed} breaks no rule", sep="\n")
        return 0
    small = shrink(plan(seed), BACKENDS[backend])
    print(f"seed {seed}: {result.violation}", f"shrunk: {small.plan}", *small.trace, small.violation, sep="\n")
    return 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20_000)
    parser.add_argument("--from", dest="start", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--backend", choices=[*BACKENDS, *COMPARED], default="memory", help="both, all: equal traces")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--shrink", type=int, metavar="SEED", help="replay a seed; make it small if it fails")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="keep what was done here, and go on where it ended")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
