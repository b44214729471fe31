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


def explanations(first: Run, second: Run, faults: Iterable[Fault], lease: float) -> set[str]:
    """Which sentences of the window allow that both attempts had an effect; none is a broken promise.

    What befell the first one's worker must lie between its last look at its lease and the other attempt's begin, or its
    own effect, if that came later. A clock that is off counts where one of the two claims was made by it.
    """
    assert first.asked is not None
    assert first.effect is not None
    start, end = first.asked, max(second.begun, first.effect)
    found: set[str] = set()
    for fault in faults:
        overlaps = fault.start <= end and fault.end >= start
        is_long = fault.end - fault.start > lease
        if fault.worker == first.worker and overlaps:
            if fault.kind == "killed" or (fault.kind == "suspended" and is_long):
                found.add(fault.kind)
            if fault.kind in CUT_FROM_STORE and is_long:
                found.add("cut off from the store")
        off_back = fault.kind == "clock back" and fault.worker == first.worker
        if off_back and fault.start <= second.begun and fault.end >= first.begun - lease:
            found.add("clock")
        off_forward = fault.kind == "clock forward" and fault.worker == second.worker
        if off_forward and fault.start <= second.begun and fault.end >= second.begun - lease:
            found.add("clock")
    return found


def repeats(runs: Iterable[Run]) -> list[tuple[Run, Run]]:
    """Each effect of a job that had one before, with the attempt whose effect it repeats."""
    with_effect = by_job(run for run in runs if run.effect is not None)
    return [pair for attempts in with_effect.values() for pair in pairwise(attempts)]
