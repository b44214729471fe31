"""What the batch code asks of the world."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.message import Message
from domain.job import Job
from domain.outcome import Rejected


class QueueUnavailableError(Exception):
    """SQS could not be reached or refused. The message is where it was."""


class Queue(Protocol):
    """The source queue and its dead-letter queue. Thread-safe."""

    def dead_letter(self, letter: DeadLetter) -> None:
        """Send to the dead-letter queue. It may arrive twice. Raises `QueueUnavailableError`, also if there is none."""
        ...

    def delete(self, messages: Sequence[Message]) -> list[str]:
        """Delete from the source queue; answers the error's name for each that was not deleted."""
        ...

    def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        """Set visibility timeouts in seconds from now; answers the error's name for each that was not set."""
        ...


class Running(Protocol):
    """Tasks under way."""

    def wait(self, until: datetime) -> bool:
        """Come back when all have ended (True), or at `until` (False)."""
        ...

    def wait_for_next(self) -> bool:
        """Come back when one more has ended; whether all have."""
        ...

    def error(self) -> BaseException | None:
        """What a task raised, if one did."""
        ...


class Crew(Protocol):
    """Runs tasks side by side."""

    def start(self, tasks: Sequence[Callable[[], None]]) -> Running: ...


class BatchEvents(Protocol):
    """What operators hear of a batch beside the jobs in it. Same rules as `JobEvents`."""

    def rejected_unread(self, message: Message, job: Job | None, rejected: Rejected) -> None:
        """Rejected before anything was looked up: unreadable, or too old."""
        ...

    def test_event(self, message: Message) -> None:
        """A service's test or confirmation message, as S3's test event, was taken off the queue."""
        ...

    def dead_letter_failed(self, message: Message, error: QueueUnavailableError) -> None:
        """A rejected message could not be sent to the dead-letter queue; it stays and is tried again."""
        ...

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        """Messages could not be deleted or given a visibility, for these errors, one each; they come back by the
        queue's own timeout.
        """
        ...

    def crashed(self, message: Message, error: Exception) -> None:
        """Something that is not foreseen broke while this message was handled; it is tried again."""
        ...

    def no_time_to_start(self, message_count: int) -> None:
        """The invocation began within its deadline margin, so that nothing of it was started."""
        ...

    def threads_refused(self, purpose: str, had: int) -> None:
        """The system has no more threads to spare for that purpose (`jobs`, `heartbeat`, ...); so many there are."""
        ...

    def flush(self) -> None:
        """Emit what is held back. Called from the thread that called the handler."""
        ...
