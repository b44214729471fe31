"""The stores under contract, each in the surroundings it needs. AWS is imported only when a store asks for it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from domain.ports.store import IdempotencyStore
from domain.ports.store_admin import StoreAdmin
from tests.contract.foreign import DynamoDBItems, ForeignItems, SQLiteRows, ValkeyHashes
from tests.support.clock import FakeClock

RETENTION = timedelta(hours=1)


@dataclass
class Harness:
    """A store on an empty ground, and the clock that it reads."""

    store: IdempotencyStore
    admin: StoreAdmin
    clock: FakeClock
    atomic_under_threads: bool = True
    foreign: ForeignItems | None = None


@contextmanager
def registered(name: str) -> Iterator[Harness]:
    """As the registry builds it: for a store that needs no surroundings and no setting of its own."""
    from entrypoints.settings import Settings

    clock = FakeClock()
    settings = Settings.from_environment({"IDEMPOTENCY_BACKEND": name})
    parts = settings.backend.build(replace(settings, retention=RETENTION), clock)
    store, admin = parts.store(), parts.admin()
    yield Harness(store, admin, clock)
    store.close()
    admin.close()


@contextmanager
def dynamodb_in_process() -> Iterator[Harness]:
    from tests.support.aws import dynamodb_admin, dynamodb_store, in_process

    with in_process():
        clock = FakeClock()
        store, admin = dynamodb_store(clock, RETENTION), dynamodb_admin(clock, RETENTION)
        yield Harness(store, admin, clock, atomic_under_threads=False)


@contextmanager
def dynamodb_emulated() -> Iterator[Harness]:
    from tests.support.aws import dynamodb_admin, dynamodb_store, emulated

    with emulated():
        clock = FakeClock()
        store, admin = dynamodb_store(clock, RETENTION), dynamodb_admin(clock, RETENTION)
        yield Harness(store, admin, clock, foreign=DynamoDBItems())


@contextmanager
def sqlite() -> Iterator[Harness]:
    from adapters.stores.sqlite.admin import SQLiteStoreAdmin
    from adapters.stores.sqlite.store import SQLiteIdempotencyStore

    clock = FakeClock()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "records.sqlite"
        store, admin = SQLiteIdempotencyStore(path, clock, RETENTION), SQLiteStoreAdmin(path, clock, RETENTION)
        yield Harness(store, admin, clock, foreign=SQLiteRows(path))
        store.close()
        admin.close()


@contextmanager
def valkey() -> Iterator[Harness]:
    from tests.support.valkey import emptied, valkey_admin, valkey_store

    with emptied() as server:
        clock = FakeClock()
        store, admin = valkey_store(server.port, clock, RETENTION), valkey_admin(server.port, clock, RETENTION)
        yield Harness(store, admin, clock, foreign=ValkeyHashes(server.port))
        store.close()
        admin.close()


STORES: dict[str, Callable[[], AbstractContextManager[Harness]]] = {
    "memory": partial(registered, "memory"),
    "sqlite": sqlite,
    "valkey": valkey,
    "dynamodb (moto)": dynamodb_in_process,
    "dynamodb (ministack)": dynamodb_emulated,
}
