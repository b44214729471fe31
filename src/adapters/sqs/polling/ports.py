"""What a worker that polls asks of the world, beside what the batch code does."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from adapters.sqs.message import Message
from adapters.sqs.ports import BatchEvents, QueueUnavailableError


class QueueUnusableError(QueueUnavailableError):
    """SQS refused what no waiting mends: there is no such queue, or this worker may not use it."""


class Received(Protocol):
    """What one request brought."""

    @property
    def messages(self) -> Sequence[Message]: ...
    @property
    def request_id(self) -> str: ...


class Receive(Protocol):
    """Long polling."""

    def __call__(self, number: int, /) -> Received:
        """Up to so many messages (1 to 10), or none after a while. Raises `QueueUnavailableError`."""
        ...


class TryToDelete(Protocol):
    """Which of these were not deleted, and the error's name for each."""

    def __call__(self, messages: Sequence[Message], /) -> list[tuple[Message, str]]: ...


class TryToHide(Protocol):
    """Set visibility timeouts in seconds from now: for which it failed, and the error's name for each."""

    def __call__(self, timeouts: Sequence[tuple[Message, int]], /) -> list[tuple[Message, str]]: ...


class PollEvents(BatchEvents, Protocol):
    """What operators hear of a worker that polls. Same rules as `JobEvents`."""

    def receive_failed(self, error: QueueUnavailableError, again_in: timedelta) -> None:
        """Nothing could be received; it is tried again then."""
        ...

    def visibility_limit_reached(self, message: Message, since: datetime) -> None:
        """SQS's 12 hours are over: others may receive the message, though it still is in work here. While the lease
        is renewed they are deferred; when the operation ends, its answer is theirs.
        """
        ...

    def waits_to_run_alone(self, message: Message, longest: timedelta) -> None:
        """A worker died with this job: nothing is received until it has run with nothing beside it, or until that
        time is over.
        """
        ...

    def put_off(self, message: Message) -> None:
        """That time is over, or an attempt beside it does not end: the message comes back after its backoff."""
        ...

    def worker_error(self, messages: Sequence[Message], error: BaseException) -> None:
        """What is no `Exception` came out of an operation, or something that is not foreseen out of the worker:
        what was not settled comes back when its visibility ends.
        """
        ...
