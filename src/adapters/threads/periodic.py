"""Does what is due, when it is due, in threads that are supervised: the one helper behind every heartbeat.

a thread                then
---------------------------------------------------------------------------------------------------------
takes work              hands the watch for the next due time to another one, started if there is none
cannot be had           the others go on; it is asked for again at the next use, and by `supervise`
dies                    is replaced at the next use, and by `supervise`
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Protocol

from adapters.threads.seam import SYSTEM_THREADS, Running, ThreadRefusedError, Threads
from domain.ports.clock import Clock

LATE: Final = timedelta(seconds=30)
"""Work that waits so long although a thread is idle shows that the threads do not serve."""


class Helper(Protocol):
    """What a worker needs beside the threads of its jobs."""

    @property
    def name(self) -> str: ...

    def supervise(self) -> bool:
        """Start what is missing; whether it can do its work."""
        ...

    def is_healthy(self) -> bool:
        """Whether it can do its work, or has none yet. Starts nothing."""
        ...


@dataclass(slots=True, eq=False)
class _Server:
    is_busy: bool = False
    running: Running | None = None

    @property
    def is_alive(self) -> bool:
        return self.running is not None and self.running.is_alive()


class Periodic[T]:
    """A `Helper` that does work at its due times, which are of the monotonic clock.

    `due` answers when the next work is due (None: there is none), `take` takes work that is due now (None: none is);
    both are called with `changed` held, and what is taken is out of both. `work` does it, without the lock. At most
    `most` threads work at a time; one of them watches for the next due time while the others work.
    """

    def __init__(
        self,
        name: str,
        *,
        due: Callable[[], timedelta | None],
        take: Callable[[], T | None],
        work: Callable[[T], None],
        clock: Clock,
        threads: Threads = SYSTEM_THREADS,
        most: int = 1,
    ) -> None:
        self.name = name
        self.changed = threads.condition()
        """The lock of what `due` and `take` look at. Only these threads wait for it."""
        self._due = due
        self._take = take
        self._work = work
        self._clock = clock
        self._threads = threads
        self._most = most
        self._servers: list[_Server] = []
        self._was_wanted = False
        self._wakes_at: timedelta | None = None
        """When an idle thread wakes by itself; None: not known."""

    def expect(self, due: timedelta) -> bool:
        """There is new work, due then. To be called with `changed` held. False: no thread serves it, and none can be
        had now; the work may stay and waits for `supervise`.
        """
        self._remove_dead()
        if not self._an_idle_one():
            self._start_one()
        elif self._wakes_at is None or due < self._wakes_at:
            self.changed.notify()
        return bool(self._servers)

    def supervise(self) -> bool:
        with self.changed:
            self._remove_dead()
            if not self._servers or (self._is_due() and not self._an_idle_one()):
                self._start_one()
            return bool(self._servers)

    def is_healthy(self) -> bool:
        with self.changed:
            if not any(server.is_alive for server in self._servers):
                return not self._was_wanted
            return not (self._an_idle_one() and self._is_due(LATE))

    def work_off(self) -> None:
        """Do what is due now, in the caller's thread."""
        while True:
            with self.changed:
                taken = self._take()
            if taken is None:
                return
            self._work(taken)

    def _is_due(self, since: timedelta = timedelta(0)) -> bool:
        due = self._due()
        return due is not None and self._clock.monotonic() - due >= since

    def _an_idle_one(self) -> bool:
        return any(not server.is_busy for server in self._servers)

    def _remove_dead(self) -> None:
        self._servers = [server for server in self._servers if server.is_alive]

    def _start_one(self) -> None:
        self._was_wanted = True
        if len(self._servers) >= self._most:
            return
        server = _Server()
        try:
            server.running = self._threads.start(lambda: self._serve(server), f"onejob-{self.name}")
        except ThreadRefusedError:
            return
        self._servers.append(server)

    def _serve(self, server: _Server) -> None:
        while True:
            with self.changed:
                server.is_busy = False
                taken = self._wait_for_work()
                server.is_busy = True
                self._hand_over()
            self._work(taken)

    def _wait_for_work(self) -> T:
        while True:
            taken = self._take()
            if taken is not None:
                return taken
            self._wakes_at = due = self._due()
            self.changed.wait(None if due is None else max(0.0, (due - self._clock.monotonic()).total_seconds()))

    def _hand_over(self) -> None:
        """Whatever the work of this thread lasts, somebody watches for what is due next."""
        self._wakes_at = None
        if self._due() is None:
            return
        if self._an_idle_one():
            self.changed.notify()
        else:
            self._start_one()
