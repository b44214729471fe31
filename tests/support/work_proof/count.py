"""What came of the jobs of the proof: read from the operation's notes, and judged by what was done to the workers."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.support.work_proof.faults import Fault, Kind

CUT_FROM_STORE: frozenset[Kind] = frozenset({"store cut", "both cut"})


@dataclass
class Run:
    """One attempt, on the monotonic clock. It `asked` right before its effect whether its lease is lost."""

    job: str
    attempt: int
    epoch: int
    worker: int
    begun: float
    asked: float | None = None
    effect: float | None = None
    ended: float | None = None


def read_runs(folder: Path) -> list[Run]:
    runs: dict[tuple[str, int, int], Run] = {}
    for file in folder.glob("effects.*"):
        for line in map(json.loads, file.read_text().splitlines()):
            key = (line["job"], line["attempt"], line["worker"])
            if line["step"] == "begun":
                assert key not in runs, f"job {line['job']}: attempt {line['attempt']} began twice"
                runs[key] = Run(line["job"], line["attempt"], line["epoch"], line["worker"], line["at"])
            else:
                setattr(runs[key], line["step"], line["at"])
                runs[key].asked = line.get("asked", runs[key].asked)
    return list(runs.values())


def by_job(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """In the order of their attempts."""
    found: defaultdict[str, list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: run.attempt):
        found[run.job].append(run)
    return found


def in_flight(runs: Iterable[Run], faults: Sequence[Fault]) -> Counter[Kind]:
    """How many jobs a worker was running when each kind of fault began."""
    found: Counter[Kind] = Counter({fault.kind: 0 for fault in faults})
    of_worker: defaultdict[int, list[Run]] = defaultdict(list)
    for run in runs:
        of_worker[run.worker].append(run)
    for fault in faults:
        for run in of_worker[fault.worker]:
            found[fault.kind] += run.begun <= fault.start and (run.ended is None or run.ended > fault.start)
    return found


def explanations(
    first: Run, second: Run, faults: Iterable[Fault], lease: float, between: Sequence[Run] = ()
) -> set[str]:
    """Which sentences of the window allow that both attempts had an effect; none is a broken promise.

    What befell the first one's worker must lie between its last look at its lease and the other attempt's begin, or its
    own effect, if that came later. A clock that is off counts where it dated the first claim, or one of those that took
    the job over from it: `between` are attempts that had no effect. An attempt that never began may be any worker's.
    """
    assert first.asked is not None
    assert first.effect is not None
    start, end = first.asked, max(second.begun, first.effect)
    takers = [*between, second]
    some_never_began = second.attempt - first.attempt > len(takers)
    found: set[str] = set()
    for fault in faults:
        is_long = fault.end - fault.start > lease
        if fault.worker == first.worker and fault.overlaps(start, end):
            if fault.kind == "killed" or (fault.kind == "suspended" and is_long):
                found.add(fault.kind)
            if fault.kind in CUT_FROM_STORE and is_long:
                found.add("cut off from the store")
        if fault.kind == "clock back" and fault.worker == first.worker:
            found |= {"clock"} if fault.overlaps(first.begun - lease, second.begun) else set()
        if fault.kind == "clock forward":
            dated = any(run.worker == fault.worker and fault.overlaps(run.begun - lease, run.begun) for run in takers)
            found |= {"clock"} if dated or (some_never_began and fault.overlaps(start, second.begun)) else set()
    return found


def repeats(runs: Iterable[Run]) -> list[tuple[Run, Run, list[Run]]]:
    """Each effect of a job that had one before: the attempt whose effect it repeats, its own, and those between."""
    found = []
    for attempts in by_job(runs).values():
        for first, second in pairwise(run for run in attempts if run.effect is not None):
            found.append((first, second, [run for run in attempts if first.attempt < run.attempt < second.attempt]))
    return found
