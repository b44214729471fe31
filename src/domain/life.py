"""How often a job was run: what the limit on runs is judged by, and what begins that count anew."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Self


@dataclass(frozen=True, slots=True)
class Life:
    """The count of a job's runs. A life begins with the record, when its retention is over, and when an operator has
    the job forgotten or its message sent back.

    - `number` tells lives apart: what an attempt counts is written to the life in which it was claimed, or not at all.
    - `runs` is how many runs of this life are counted. The limit on runs is on it.
    - `unended` is how many attempts of this life nobody ended, with the one under way: their workers died in them, or
      never learned of their claims.
    - `rejected_at` is when a message of the job was rejected in this life. A message that was sent later begins to
      count anew; one that was sent before goes on counting.
    """

    number: int = 1
    runs: int = 0
    unended: int = 0
    rejected_at: datetime | None = None

    def claimed(self) -> Self:
        """One more attempt is under way."""
        return replace(self, unended=self.unended + 1)

    def counted(self) -> Self:
        """The attempt under way is a run."""
        return replace(self, runs=self.runs + 1)

    def ended(self) -> Self:
        """The attempt under way is over."""
        return replace(self, unended=max(0, self.unended - 1))

    def rejected(self, at: datetime) -> Self:
        """A message was rejected. The first time counts: what is sent after it is sent anew."""
        return replace(self, rejected_at=self.rejected_at or at)

    def anew(self) -> Self:
        """The attempt under way is the first for a message that was sent after a rejection."""
        return replace(self, runs=0, unended=1, rejected_at=None)

    def following(self) -> Self:
        """The next life, in which nothing has been claimed."""
        return type(self)(self.number + 1)


NEW: Final = Life()
"""Of a record that counts nothing yet."""

FIRST_CLAIM: Final = NEW.claimed()
