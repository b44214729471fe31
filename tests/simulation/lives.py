"""The promise: a job is buried as exhausted only if it began so many runs in this life, and each failed or died.

Stated from what happened, not from what the records count. A life of a job begins with its record, when the record's
retention is over or it is deleted, when an operator has the job forgotten or its message sent back, and, for every
other message, when a message of the job is rejected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.simulation.attempts import AttemptSeen
from tests.simulation.plan import MAX_ATTEMPTS


@dataclass(slots=True)
class Lives:
    """The lives of one job. `attempts` are all that were claimed; a life begins at a number of them."""

    attempts: Sequence[AttemptSeen]
    _begins: list[tuple[int, str | None]] = field(default_factory=list)

    def begins(self, at: int, after_rejection_of: str | None = None) -> None:
        """With the attempt of that index; for all messages but the one that was rejected."""
        self._begins.append((at, after_rejection_of))

    def _of(self, message: str | None) -> Sequence[AttemptSeen]:
        return self.attempts[max((at for at, whose in self._begins if whose is None or whose != message), default=0) :]

    def may_be_exhausted(self, message: str | None) -> bool:
        """Whether it began its runs, none of which was done."""
        began = [seen for seen in self._of(message) if (seen.started or seen.counted) and not seen.completed]
        return len(began) >= MAX_ATTEMPTS

    def must_be_exhausted(self, message: str | None, mine: AttemptSeen) -> bool:
        """Whether so many runs are known to the record that a redelivered message must not run once more."""
        begins = [begin for begin in self._begins if begin[0] <= mine.number_in_all]  # what it was claimed after
        latest = max((at for at, _ in begins), default=0)
        if any(seen.claim.runs < 0 for seen in self.attempts[latest:]):
            return False  # sent back while a run was counted that then did not begin: it has one more
        if self._counted(self.attempts[latest:], mine) >= MAX_ATTEMPTS:
            return True
        is_back = (latest, message) in begins  # rejected, and nobody ran since
        is_untouched = self._counted(self.attempts[latest:], mine) == 0
        before = max((at for at, _ in begins if at < latest), default=0)  # others may have begun anew since then
        return is_back and is_untouched and self._counted(self.attempts[before:], mine) >= MAX_ATTEMPTS

    def _counted(self, attempts: Sequence[AttemptSeen], mine: AttemptSeen) -> int:
        """Before that one: it was claimed by what stood there then."""
        return sum(seen.counted for seen in attempts if seen.number_in_all < mine.number_in_all)
