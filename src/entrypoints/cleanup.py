"""The clean-up Lambda: `handler` is what a schedule calls. It purges until the records or its time are at an end."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from domain.errors import StoreUnavailableError
from entrypoints.container import Container
from entrypoints.edge import by_type_and_place
from entrypoints.purging import Purge
from entrypoints.startup import handler_on_demand

PAGE: Final = 1000
"""Records a step: so few that a step fits the deadline margin of 30 s even if all of them are deleted."""


class Context(Protocol):
    """What is used of Lambda's context."""

    def get_remaining_time_in_millis(self) -> int: ...


type Handler = Callable[[Any, Context], dict[str, Any]]


def make_handler(container: Container | None = None) -> Handler:
    """A handler, everything behind it built now. Raises `SettingError`."""
    parts = container or Container()
    settings, admin, clock, jitter = parts.settings(), parts.admin(), parts.clock(), parts.jitter()
    events = parts.events()

    def handle(event: Any, context: Context) -> dict[str, Any]:
        """Answers `{"purged": ..., "seen": ..., "after": ...}`; hand it `{"after": ...}` to go on where another ended.

        Raises `StoreUnavailableError`.
        """
        end = clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
        purge = Purge(admin=admin, clock=clock, jitter=jitter, page=PAGE, after=_after(event))
        try:
            purge.run(until=end - settings.deadline_margin)
        finally:
            # unfinished: out of time, or by an error, which Lambda logs
            events.purged(purge.deleted, purge.seen, purge.after, is_complete=purge.is_complete)
        return {"purged": purge.deleted, "seen": purge.seen, "after": purge.after}

    return by_type_and_place(handle, known=(StoreUnavailableError,), texts=settings.log_error_messages)


def _after(event: object) -> str | None:
    after = event.get("after") if isinstance(event, dict) else None
    return after if isinstance(after, str) and after else None


def __getattr__(name: str) -> Handler:
    return handler_on_demand(globals(), name, make_handler)
