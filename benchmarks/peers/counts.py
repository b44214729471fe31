"""What is counted from outside: the lines of effects, what is left in the queue, and the dead letters."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

type Job = Mapping[str, Any]
"""A message's body. Two bodies that differ are two jobs, even under one id."""


def name_of(job: Job) -> str:
    return json.dumps(job, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """One scenario with one peer."""

    effects: int
    double_effects: int
    """Effects of a job beyond its first."""
    lost_jobs: int
    """Neither done, nor buried, nor in the queue."""
    wrong_dead_letters: int
    """Letters of jobs that nothing was wrong with."""
    not_buried: int
    """Jobs that no retry mends and that have no dead letter, but had an effect or are lost."""
    other_answers: int
    """Replays whose answer is not the first one's."""
    still_queued: int
    receives: int
    """The largest receive count seen."""
    timeouts: int
    """Invocations that were killed at the time-out."""
    seconds: float

    @property
    def faults(self) -> tuple[int, int, int]:
        return self.double_effects, self.lost_jobs, self.wrong_dead_letters


def count(
    *,
    healthy: Iterable[Job],
    bad: Iterable[Job],
    ledger: Sequence[Any],
    letters: Iterable[Job],
    queued: int,
    receives: int,
    timeouts: int = 0,
    seconds: float = 0,
) -> Counts:
    """`ledger` holds the lines that operations and answers left, in order."""
    well, ill = {name_of(job) for job in healthy}, {name_of(job) for job in bad}
    effects = Counter(name_of(line["job"]) for line in ledger if line["kind"] == "effect")
    buried = Counter(name_of(letter) for letter in letters)
    gone = [job for job in well | ill if not effects[job] and not buried[job]]
    return Counts(
        effects=effects.total(),
        double_effects=sum(times - 1 for times in effects.values()),
        lost_jobs=max(0, len(gone) - queued),
        wrong_dead_letters=sum(buried[job] for job in well),
        not_buried=sum(1 for job in ill if not buried[job]),
        other_answers=_other_answers(ledger),
        still_queued=queued,
        receives=receives,
        timeouts=timeouts,
        seconds=round(seconds, 1),
    )


def _other_answers(ledger: Iterable[Any]) -> int:
    first: dict[str, str] = {}
    others = 0
    for line in ledger:
        if line["kind"] == "answer":
            answer = json.dumps(line["answer"])
            others += first.setdefault(name_of(line["job"]), answer) != answer
    return others
