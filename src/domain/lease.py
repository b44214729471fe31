"""A worker's own view of the lease that it holds."""

from datetime import datetime, timedelta

from domain.ports.clock import Clock, Moment
from domain.record import Claim


class Lease:
    """Until when a claim is exclusive, and whether that is still so. Written by a heartbeat, read by the operation;
    each field is replaced whole, so that no lock is needed.

    A lease starts when it was asked for, not when the answer came: the store counted from the request.
    """

    def __init__(self, claim: Claim, asked: Moment, length: timedelta, clock: Clock) -> None:
        self.claim = claim
        self._clock = clock
        self._end = _end(asked, length)
        self._refused = False

    def extend(self, asked: Moment, length: timedelta) -> None:
        """A renewal by `length`, asked for at that moment, has landed."""
        self._end = _end(asked, length)

    def refuse(self) -> None:
        """The store has said that the record is another's, or nobody's."""
        self._refused = True

    @property
    def end(self) -> Moment:
        """Until when it is held, by this worker's clocks."""
        return self._end

    @property
    def until(self) -> datetime:
        """Until when it is held, as other workers read it."""
        return self._end.wall

    @property
    def refused(self) -> bool:
        """Whether a renewal was refused."""
        return self._refused

    def lost(self) -> bool:
        """Refused, or over by either clock of this worker; at its very end, to be safe, it counts as lost.

        A wall clock that is set back does not prolong it, and a machine that slept has not stopped its wall clock.
        """
        end = self._end
        return self._refused or self._clock.now() >= end.wall or self._clock.monotonic() >= end.monotonic


def _end(asked: Moment, length: timedelta) -> Moment:
    return Moment(asked.wall + length, asked.monotonic + length)
