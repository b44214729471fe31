"""The machine's own time, chance and threads: what is passed in wherever a test would want another."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from random import random
from time import sleep
from uuid import uuid4

from domain.ports.clock import Clock


class SystemClock:
    """The `Clock` of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, duration: timedelta) -> None:
        sleep(duration.total_seconds())


def new_id() -> str:
    """32 hexadecimal digits that nobody else has."""
    return uuid4().hex


type Jitter = Callable[[], float]


def jitter() -> float:
    """A number in [0, 1)."""
    return random()  # noqa: S311


class ThreadCrew:
    """Runs tasks in at most `size` threads, which are kept for the next batch."""

    def __init__(self, size: int, clock: Clock) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="onejob")
        self._clock = clock

    def start(self, tasks: Sequence[Callable[[], None]]) -> "RunningThreads":
        return RunningThreads([self._pool.submit(task) for task in tasks], self._clock)


class RunningThreads:
    """Tasks that a `ThreadCrew` has started."""

    def __init__(self, futures: Sequence[Future[None]], clock: Clock) -> None:
        self._futures = futures
        self._clock = clock
        self._seen: set[Future[None]] = set()

    def wait(self, until: datetime) -> bool:
        timeout = max(0.0, (until - self._clock.now()).total_seconds())
        return not wait(self._futures, timeout).not_done

    def wait_for_next(self) -> bool:
        running = [future for future in self._futures if future not in self._seen]
        ended = wait(running, return_when=FIRST_COMPLETED).done
        self._seen |= ended
        return len(running) == len(ended)

    def error(self) -> BaseException | None:
        """What a task raised. Only to be asked when all have ended."""
        return next((error for future in self._futures if (error := future.exception())), None)
