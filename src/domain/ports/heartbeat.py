"""The port that keeps a lease alive while an operation runs longer than it."""

from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Protocol

from domain.lease import Lease


class Heartbeat(Protocol):
    """A context around the running operation."""

    def __call__(self, lease: Lease, length: timedelta, /) -> AbstractContextManager[None]:
        """Renew the lease by `length` in good time: `extend` it when that landed, `refuse` it when it was refused.

        Never raises, and nothing renews after the context has ended. Lambda needs none: there a lease outlasts
        the invocation.
        """
        ...
