"""A message of a batch while it is worked on: what its body holds, and how it ended."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from adapters.sqs.message import Message
from domain.job import Job
from domain.outcome import Rejected


@dataclass(frozen=True, slots=True)
class Ack:
    """The message may be deleted."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The message stays in the queue, and is visible again at that moment."""

    visible_at: datetime


@dataclass(frozen=True, slots=True)
class Invalid:
    """The body holds no job, or one that is too old."""

    rejected: Rejected
    job: Job | None = None


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """A service's test or confirmation message, as S3's test event."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What nobody foresaw broke while it was read."""

    error: Exception


type Content = Job | Invalid | NothingToDo | Unreadable


@dataclass(slots=True)
class BatchEntry:
    """A message of the batch. Either its lane starts it or the deadline returns it: `try_start` tells who was first."""

    message: Message
    content: Content | None
    """None until it is read: a FIFO queue's message at its turn."""
    end: Ack | Retry | None = None
    settled: bool = False
    _ticket: deque[None] = field(default_factory=lambda: deque([None]))

    def try_start(self) -> bool:
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def undo_start(self) -> None:
        """Make `try_start` possible again: nothing was run."""
        self._ticket.append(None)

    @property
    def operation(self) -> str | None:
        """The job's; None where there is none to be read."""
        job = self.content.job if isinstance(self.content, Invalid) else self.content
        return job.operation if isinstance(job, Job) else None

    @property
    def lane(self) -> object:
        if self.message.is_fifo:
            return self.message.group_id
        return self.content.key if isinstance(self.content, Job) else self.message.message_id


def in_lanes(entries: Iterable[BatchEntry]) -> list[list[BatchEntry]]:
    """Group the entries by lane. Lanes and their entries keep the order of the batch."""
    lanes: dict[object, list[BatchEntry]] = {}
    for entry in entries:
        lanes.setdefault(entry.lane, []).append(entry)
    return list(lanes.values())
