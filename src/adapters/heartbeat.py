"""Keeps leases alive while their operations run: one thread renews them all, at a third of their length."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Condition, Lock, Thread
from typing import Final, Protocol

from domain.errors import LeaseLostError
from domain.lease import Lease
from domain.ports.clock import Clock, Moment
from domain.record import Claim

BEATS_PER_LEASE: Final = 3
"""Two renewals may fail before a lease lapses."""


class Renew(Protocol):
    """`IdempotencyStore.renew`."""

    def __call__(self, claim: Claim, lease: timedelta) -> None: ...


@dataclass(slots=True, eq=False)
class _Beat:
    lease: Lease
    length: timedelta
    due: datetime
    renewal: Lock = field(default_factory=Lock)
    ended: bool = False


class ThreadHeartbeat:
    """A `Heartbeat` in a thread of its own, started at first use. It wakes for what is due, not for each operation."""

    def __init__(self, renew: Renew, clock: Clock) -> None:
        self._renew = renew
        self._clock = clock
        self._beats: set[_Beat] = set()
        self._changed = Condition()
        self._wakes_at: datetime | None = None
        self._thread: Thread | None = None

    @contextmanager
    def __call__(self, lease: Lease, length: timedelta, /) -> Iterator[None]:
        # from its end, since a claim that was tried several times has used up some of it
        beat = _Beat(lease, length, lease.until - length + length / BEATS_PER_LEASE)
        with self._changed:
            self._beats.add(beat)
            self._wake_for(beat)
        try:
            yield
        finally:
            with self._changed:
                self._beats.discard(beat)
            with beat.renewal:  # waits for a renewal that is under way: none comes later
                beat.ended = True

    def _wake_for(self, beat: _Beat) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="onejob-heartbeat", daemon=True)
            self._thread.start()
        elif self._wakes_at is None or beat.due < self._wakes_at:
            self._changed.notify()

    def _run(self) -> None:
        while True:
            self.beat()
            with self._changed:
                self._wakes_at = min((beat.due for beat in self._beats), default=None)
                wait = None if self._wakes_at is None else (self._wakes_at - self._clock.now()).total_seconds()
                self._changed.wait(wait)

    def beat(self) -> None:
        """Renew what is due. A refused lease is renewed no more; a store that cannot answer is asked again soon."""
        with self._changed:
            due = [beat for beat in self._beats if beat.due <= self._clock.now()]
        for beat in due:  # outside the lock: a store that is slow holds up other renewals, but no other operation
            asked = Moment.of(self._clock)
            with beat.renewal:
                if not beat.ended and beat.due <= asked.wall:
                    self._renew_one(beat, asked)

    def _renew_one(self, beat: _Beat, asked: Moment) -> None:
        try:
            self._renew(beat.lease.claim, beat.length)
        except LeaseLostError:
            beat.lease.refuse()
            beat.ended = True
            with self._changed:
                self._beats.discard(beat)
        except Exception:  # the store cannot answer, or what nobody foresaw: the thread serves other leases too
            beat.due = asked.wall + beat.length / (2 * BEATS_PER_LEASE)
        else:
            beat.lease.extend(asked, beat.length)
            beat.due = asked.wall + beat.length / BEATS_PER_LEASE
