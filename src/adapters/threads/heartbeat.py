"""Keeps leases alive while their operations run: each is renewed at a third of its length, by a few threads for all."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from adapters.threads.due import DueHeap
from adapters.threads.periodic import Periodic
from adapters.threads.seam import SYSTEM_THREADS, Lock, Threads
from domain.errors import HeartbeatUnavailableError, LeaseLostError
from domain.lease import Lease
from domain.ports.clock import Clock, Moment
from domain.record import Claim

BEATS_PER_LEASE: Final = 3
"""Two renewals may fail before a lease lapses."""

RENEWERS: Final = 16
"""Threads at most. A store that takes 20 ms then renews 800 leases a second, and one that hangs holds up one lease."""


class Renew(Protocol):
    """`IdempotencyStore.renew`."""

    def __call__(self, claim: Claim, lease: timedelta) -> None: ...


@dataclass(slots=True, eq=False)
class _Beat:
    lease: Lease
    length: timedelta
    end: timedelta | None
    """On the monotonic clock: nothing is renewed beyond it."""
    overdue: Callable[[], None]
    renewal: Lock
    has_ended: bool = False


class ThreadHeartbeat:
    """A `Heartbeat`, and a `Helper`. Its first thread is started at first use; more while renewals are slow."""

    name = "heartbeat"

    def __init__(self, renew: Renew, clock: Clock, threads: Threads = SYSTEM_THREADS, most: int = RENEWERS) -> None:
        self._renew = renew
        self._clock = clock
        self._threads = threads
        self._beats: DueHeap[_Beat] = DueHeap()
        self._periodic: Periodic[_Beat] = Periodic(
            self.name,
            due=self._beats.first_due,
            take=lambda: self._beats.pop(clock.monotonic()),
            work=self._beat,
            clock=clock,
            threads=threads,
            most=most,
        )

    @contextmanager
    def __call__(
        self, lease: Lease, length: timedelta, until: datetime | None, overdue: Callable[[], None], /
    ) -> Iterator[None]:
        end = None if until is None else self._clock.monotonic() + (until - self._clock.now())
        beat = _Beat(lease, length, end, overdue, self._threads.lock())
        # from its end, since a claim that was tried several times has used up some of it
        if not self._expect(beat, lease.end.monotonic - length + length / BEATS_PER_LEASE):
            raise HeartbeatUnavailableError
        try:
            yield
        finally:
            with self._periodic.changed:
                beat.has_ended = True
                self._beats.discard(beat)
            with beat.renewal:  # waits for a renewal that is under way: none comes later
                pass

    def supervise(self) -> bool:
        return self._periodic.supervise()

    def is_healthy(self) -> bool:
        return self._periodic.is_healthy()

    def beat(self) -> None:
        """Renew what is due, in the caller's thread."""
        self._periodic.work_off()

    def _expect(self, beat: _Beat, due: timedelta) -> bool:
        due = due if beat.end is None else min(due, beat.end)
        with self._periodic.changed:
            self._beats.push(beat, due)
            is_served = self._periodic.expect(due)
            if not is_served:
                self._beats.discard(beat)
        return is_served

    def _beat(self, beat: _Beat) -> None:
        """A refused lease is renewed no more; a store that cannot answer is asked again soon."""
        with beat.renewal:
            if beat.has_ended:
                return
            now = self._clock.monotonic()
            if beat.end is not None and now >= beat.end:
                beat.overdue()
                return
            due = now + self._renewed(beat)
            if beat.end is not None:
                due = beat.end if beat.lease.refused else min(due, beat.end)
            elif beat.lease.refused:
                return
            with self._periodic.changed:
                if not beat.has_ended:
                    self._beats.push(beat, due)

    def _renewed(self, beat: _Beat) -> timedelta:
        """Renew the lease once; how long to wait then."""
        asked = Moment.of(self._clock)
        length = beat.length if beat.end is None else min(beat.length, beat.end - asked.monotonic)
        try:
            self._renew(beat.lease.claim, length)
        except LeaseLostError:
            beat.lease.refuse()
            return beat.length
        except Exception:  # the store cannot answer, or what nobody foresaw: the thread serves other leases too
            return beat.length / (2 * BEATS_PER_LEASE)
        beat.lease.extend(asked, length)
        return beat.length / BEATS_PER_LEASE
