"""The promise: a job is rejected as exhausted only if it began its runs in this life, and each failed or died.

Stated from what happened, not from what the records count. A life of a job begins with its record, when the record's
retention is over or it is deleted, when an operator has the job forgotten or its message sent back, and, for a message
that was sent after another one had been rejected, with that rejection.

And the bound in the other direction: a job has as many runs as it may, one more for a worker that died in the first,
one for the first receive of each of its messages, and one for each worker that died where its run could not be counted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from tests.simulation.attempts import AttemptSeen
from tests.simulation.plan import MAX_ATTEMPTS


@dataclass(slots=True)
class Lives:
    """The lives of one job. `attempts` are all that were claimed; a life begins at a number of them."""

    attempts: Sequence[AttemptSeen]
    _begins: list[int] = field(default_factory=list)
    _rejections: list[tuple[int, datetime]] = field(default_factory=list)
    _counts_anew: list[int] = field(default_factory=list)

    def begins(self, at: int) -> None:
        """With the attempt of that index, for every message."""
        self._begins.append(at)

    def begins_with(self, at: int) -> None:
        """The attempt of that index, claimed before the last life began, runs in it."""
        self._begins.append(at)
        self._begins = [begin for begin in self._begins if begin <= at]

    def rejected(self, at: int, when: datetime) -> None:
        """Messages that are sent after `when` begin with the attempt of that index."""
        self._rejections.append((at, when))

    def counts_anew(self, at: int) -> None:
        """With the attempt of that index the count began at 1, since its message was sent after a rejection."""
        self._counts_anew.append(at)

    def of(self, mine: AttemptSeen) -> Sequence[AttemptSeen]:
        """The attempts before `mine` that are certainly of its life."""
        begins = [at for at in (*self._begins, *self._counts_anew) if at <= mine.number_in_all]
        return self.attempts[max(begins, default=0) : mine.number_in_all]

    def may_be_exhausted(self, mine: AttemptSeen, sent_at: datetime | None) -> bool:
        """Whether it began its runs, none of which was done: they ran, or died on the way, or were counted for good.

        By what stood there when `mine` was claimed: another life that begins after that is another message's.
        """
        since = [at for at, when in self._rejections if sent_at is not None and sent_at > when]
        begins = [at for at in (*self._begins, *since) if at <= mine.number_in_all]
        lived = self.attempts[max(begins, default=0) : mine.number_in_all]
        began = [
            seen for seen in lived if (seen.started or (seen.counted and not seen.released)) and not seen.completed
        ]
        return len(began) >= MAX_ATTEMPTS

    def ran_too_often(self, messages: Callable[[], int]) -> bool:
        """More often than that many messages explain."""
        if len(self.attempts) <= MAX_ATTEMPTS:
            return False
        lived = [
            seen for seen in self.attempts[max([0, *self._begins, *self._counts_anew]) :] if seen.process.counts_runs
        ]
        started = sum(seen.started for seen in lived)
        uncounted = sum(seen.started and seen.asked_to_count and not seen.counted for seen in lived)
        most = MAX_ATTEMPTS + 1 + uncounted
        return started > most and started > most + messages()
