"""A worker's own view of the lease that it holds."""

from datetime import datetime

from domain.ports.clock import Clock
from domain.record import Claim


class Lease:
    """Until when a claim is exclusive, and whether that is still so. Written by a heartbeat, read by the operation;
    each field is replaced whole, so that no lock is needed.
    """

    def __init__(self, claim: Claim, until: datetime, clock: Clock) -> None:
        self.claim = claim
        self._until = until
        self._clock = clock
        self._refused = False

    def extend(self, until: datetime) -> None:
        self._until = until

    def refuse(self) -> None:
        self._refused = True

    @property
    def until(self) -> datetime:
        """Until when it is held, by this worker's clock."""
        return self._until

    @property
    def refused(self) -> bool:
        """The store has said that the record is another's, or nobody's."""
        return self._refused

    def lost(self) -> bool:
        """Refused, or over by this worker's clock; at its very end, to be safe, it counts as lost."""
        return self._refused or self._clock.now() >= self._until
