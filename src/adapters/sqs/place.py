"""A message's place in its batch and its lane, and how it may end there."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from adapters.sqs.message import Message
from domain.job import Job
from domain.outcome import Rejected


@dataclass(frozen=True, slots=True)
class Done:
    """May leave the queue."""


@dataclass(frozen=True, slots=True)
class Back:
    """Stays in the queue, visible again at that moment."""

    visible_at: datetime


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Rejected as it was read: no job, or one that is too old."""

    rejected: Rejected
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """A service's test or confirmation message, as S3's test event."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What nobody foresaw broke while it was read."""

    error: Exception


type Content = Job | TurnedAway | NothingToDo | Unreadable


@dataclass(slots=True)
class Place:
    """A message's place in the batch. Who takes it decides: a lane to start it, or the deadline to return it."""

    message: Message
    content: Content | None
    """None until it is read: a FIFO queue's message at its turn."""
    end: Done | Back | None = None
    settled: bool = False
    _ticket: deque[None] = field(default_factory=lambda: deque([None]))

    def take(self) -> bool:
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def put_back(self) -> None:
        """Undo `take`: nothing was run."""
        self._ticket.append(None)

    @property
    def operation(self) -> str | None:
        """The job's; None where there is none to be read."""
        job = self.content.job if isinstance(self.content, TurnedAway) else self.content
        return job.operation if isinstance(job, Job) else None

    @property
    def lane(self) -> object:
        if self.message.is_fifo:
            return self.message.group_id
        return self.content.key if isinstance(self.content, Job) else self.message.message_id


def in_lanes(places: Iterable[Place]) -> list[list[Place]]:
    """The places of each lane, both in order."""
    lanes: dict[object, list[Place]] = {}
    for place in places:
        lanes.setdefault(place.lane, []).append(place)
    return list(lanes.values())
