"""The port that keeps a lease alive while an operation runs longer than it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Protocol

from domain.lease import Lease


class Heartbeat(Protocol):
    """A context around the running operation."""

    def __call__(
        self, lease: Lease, length: timedelta, until: datetime | None, overdue: Callable[[], None], /
    ) -> AbstractContextManager[None]:
        """Renew the lease by `length` in good time: `extend` it when that landed, `refuse` it when it was refused.

        No renewal reaches beyond `until` (None: no limit). If the context lasts until then, `overdue` is called once,
        from any thread: another worker may take the job over. Nothing renews after the context has ended.

        Entering raises `HeartbeatUnavailableError` where nothing would renew; otherwise nothing is raised. Lambda needs
        no heartbeat: there a lease outlasts the invocation.
        """
        ...
