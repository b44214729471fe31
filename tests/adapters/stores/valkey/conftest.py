"""One server for these tests, emptied for each; and on it a store and its admin, with one clock."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from tests.support.clock import FakeClock
from tests.support.valkey import RETENTION, Server, emptied, valkey_admin, valkey_store


@pytest.fixture
def server() -> Iterator[Server]:
    with emptied() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(server: Server, clock: FakeClock) -> Iterator[ValkeyIdempotencyStore]:
    with closing(valkey_store(server.port, clock, RETENTION)) as made:
        yield made


@pytest.fixture
def admin(server: Server, clock: FakeClock) -> Iterator[ValkeyStoreAdmin]:
    with closing(valkey_admin(server.port, clock, RETENTION)) as made:
        yield made
