"""The real store behind a simulated worker's port, and what the simulator does to it past the port."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from adapters.stores.memory import MemoryIdempotencyStore
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store import IdempotencyStore
from domain.ports.store_admin import StoreAdmin
from domain.record import Record
from tests.simulation.plan import Plan
from tests.simulation.world import Process, World, moment

type Do = Callable[[IdempotencyStore], Any]
type Seen = Callable[[Record | None, Record | None, Any], None]
"""Called at the instant at which a request landed: what stood there, what stands there now, and what was answered."""


class RequestClock:
    """What the store takes for now: the time at which the request was made, on the clock of who made it."""

    def __init__(self) -> None:
        self.asked_at = moment(0)

    def now(self) -> datetime:
        return self.asked_at

    def monotonic(self) -> timedelta:
        raise NotImplementedError("a store writes what others read")

    def sleep(self, duration: timedelta) -> None:
        raise NotImplementedError("a store does not sleep")


@dataclass(slots=True)
class Backend:
    """One store that serves all workers, each request at one instant, with its asker's time."""

    store: IdempotencyStore
    clock: RequestClock
    retention: timedelta
    put: Callable[[Record], None]
    """Write a record as another tool may have written it, past the port."""

    delete: Callable[[JobKey], None]
    """Delete a record past the port, as a table does when its time is over."""

    make_admin: Callable[[Clock], StoreAdmin]
    divert: Callable[[bool], None] | None = field(default=None, kw_only=True)
    """Where a client is below the store: whether its requests come to a stranger, who answers all and does nothing."""

    def ask_stranger(self, name: str, do: Do) -> Any:
        """What the store makes of a stranger's answer; where it has no client, what any store should. An empty answer
        to `find` is none: by it nothing is decided.
        """
        if self.divert is None:
            return None if name == "find" else StoreUnavailableError("no evidence")
        self.divert(True)
        try:
            return do(self.store)
        except Exception as error:
            return error
        finally:
            self.divert(False)

    def land(self, process: Process, key: JobKey, asked_at: datetime, do: Do, seen: Seen) -> Any:
        """What the request of this process came to; an error is a result like any other."""
        store = self.store
        self.clock.asked_at = asked_at
        before = store.find(key)
        try:
            result = do(store)
        except StoreUnavailableError as error:
            return error
        except Exception as error:
            result = error
        seen(before, store.find(key), result)
        return result

    @property
    def switches(self) -> bool:
        """Whether a request may have to wait, so that it needs a task of its own."""
        return False

    def peek(self, key: JobKey) -> Record | None:
        """What stands there now."""
        return self.store.find(key)

    def admin(self, clock: Clock) -> StoreAdmin:
        """An operator's, with that clock if it can have one of its own."""
        return self.make_admin(clock)

    def close(self) -> None:
        """Give back what it holds."""


type MakeBackend = Callable[[World, Plan], Backend]


def memory_backend(world: World, plan: Plan) -> Backend:
    clock, retention = RequestClock(), timedelta(seconds=plan.retention)
    store = MemoryIdempotencyStore(clock, retention)

    def put(record: Record) -> None:
        store._records[record.key] = record

    def delete(key: JobKey) -> None:
        store._records.pop(key, None)

    return Backend(store, clock, retention, put, delete, lambda _: store)
