"""The seam to the interpreter's threads: locks, conditions, new threads. The simulator passes in its own."""

from collections.abc import Callable
from threading import Condition as SystemCondition
from threading import Lock as SystemLock
from threading import Thread as SystemThread
from types import TracebackType
from typing import Protocol


class ThreadRefusedError(Exception):
    """The system has no thread to spare ("can't start new thread"). Nothing was started."""


class Lock(Protocol):
    """Mutual exclusion, as a context."""

    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class Condition(Lock, Protocol):
    """A lock that can be waited on. Time-outs are in seconds; None waits until notified."""

    def wait(self, timeout: float | None = None) -> bool: ...
    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool: ...
    def notify(self, n: int = 1) -> None: ...
    def notify_all(self) -> None: ...


class Running(Protocol):
    """A thread that was started."""

    def is_alive(self) -> bool: ...


class Threads(Protocol):
    """Where locks and threads come from."""

    def lock(self) -> Lock: ...

    def condition(self) -> Condition: ...

    def start(self, run: Callable[[], None], name: str) -> Running:
        """Run it in a new daemon thread. Raises `ThreadRefusedError`; then `run` is never called."""
        ...


class SystemThreads:
    """`Threads` of this interpreter."""

    def lock(self) -> Lock:
        return SystemLock()

    def condition(self) -> Condition:
        return SystemCondition()

    def start(self, run: Callable[[], None], name: str) -> Running:
        thread = SystemThread(target=run, name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise ThreadRefusedError(str(error)) from error
        return thread


SYSTEM_THREADS = SystemThreads()
