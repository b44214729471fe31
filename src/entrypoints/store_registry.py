"""Every store that onejob knows, an entry each: its name, who sees its records, and how it is built.

A builder imports its technology when it is called, so that a worker loads only what its settings ask for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum, auto
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from domain.ports.clock import Clock
from domain.ports.store import IdempotencyStore
from domain.ports.store_admin import StoreAdmin

if TYPE_CHECKING:
    from valkey import Valkey

    from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
    from entrypoints.settings import Settings  # which knows the names of stores, and so imports this module

VALKEY_ANSWERS: Final = 4
"""So many are waited for in one request at most: AUTH and SELECT on a new connection, the script's own, WAIT's."""


@dataclass(frozen=True, slots=True)
class StoreParts:
    """How to make a store and its admin over the same settings. What was made is given back by its own `close`.

    Each builder is called once at most. Both raise `SettingError` and `UnusableStoreError`.
    """

    store: Callable[[], IdempotencyStore]
    admin: Callable[[], StoreAdmin]


class Reach(Enum):
    """Who sees the records of a store."""

    PROCESS = auto()
    """One process; they are gone with it."""

    MACHINE = auto()
    """The processes of one machine."""

    NETWORK = auto()
    """Every machine that can connect."""


type BuildStore = Callable[["Settings", Clock], StoreParts]


def _dynamodb(settings: "Settings", clock: Clock) -> StoreParts:
    from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
    from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore

    layer = dynamodb_layer(settings)
    return StoreParts(
        partial(DynamoDBIdempotencyStore, layer, clock, settings.retention),
        partial(DynamoDBStoreAdmin, layer, clock, settings.retention),
    )


def dynamodb_layer(settings: "Settings") -> "FencedDynamoDBPersistenceLayer":
    """Powertools' layer over one client, made now. Store and admin share it."""
    from adapters.aws import client
    from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
    from entrypoints.client_config import sdk_config

    made = client("dynamodb", region_name=settings.table_region, config=sdk_config(settings))
    return FencedDynamoDBPersistenceLayer(settings.table or "", boto3_client=made)


def _sqlite(settings: "Settings", clock: Clock) -> StoreParts:
    from adapters.stores.sqlite.admin import SQLiteStoreAdmin
    from adapters.stores.sqlite.store import SQLiteIdempotencyStore

    path, retention, allow_network = settings.db, settings.retention, settings.db_allow_network
    return StoreParts(
        partial(SQLiteIdempotencyStore, path, clock, retention, allow_network=allow_network),
        partial(SQLiteStoreAdmin, path, clock, retention, allow_network=allow_network),
    )


def _memory(settings: "Settings", clock: Clock) -> StoreParts:
    from adapters.stores.memory import MemoryIdempotencyStore

    both = MemoryIdempotencyStore(clock, settings.retention)
    return StoreParts(lambda: both, lambda: both)


def _valkey(settings: "Settings", clock: Clock) -> StoreParts:
    """Raises `SettingError` without the client's library."""
    connect = _valkey_connector(settings)  # first: it says what to install
    from adapters.stores.valkey.admin import ValkeyStoreAdmin
    from adapters.stores.valkey.store import ValkeyIdempotencyStore

    retention, replicas = settings.retention, settings.valkey_replicas
    return StoreParts(
        lambda: ValkeyIdempotencyStore(connect(), clock, retention, replicas=replicas),
        lambda: ValkeyStoreAdmin(connect(), clock, retention, replicas=replicas),
    )


def _valkey_connector(settings: "Settings") -> Callable[[], "Valkey"]:
    """Each call opens one pool of connections to a server that was found fit, for its owner to close."""
    from entrypoints.client_config import connections
    from entrypoints.settings import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, SettingError

    try:
        from adapters.stores.valkey.server import open_server
    except ModuleNotFoundError as error:
        raise SettingError("IDEMPOTENCY_BACKEND=valkey: no client is installed: `uv sync --group valkey`") from error

    return partial(
        open_server,
        settings.valkey_url or "",
        connections=connections(settings),
        connect_timeout=timedelta(seconds=CONNECT_TIMEOUT_SECONDS),
        read_timeout=timedelta(seconds=READ_TIMEOUT_SECONDS / VALKEY_ANSWERS),
    )


class Backend(StrEnum):
    """The registry: to add a store, add its entry. The name is the value of IDEMPOTENCY_BACKEND and of `--store`."""

    reach: Reach
    build: BuildStore

    def __new__(cls, name: str, reach: Reach, build: BuildStore) -> Self:
        """A member is its name as a text."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.reach = reach
        member.build = build
        return member

    DYNAMODB = "dynamodb", Reach.NETWORK, _dynamodb
    SQLITE = "sqlite", Reach.MACHINE, _sqlite
    MEMORY = "memory", Reach.PROCESS, _memory
    VALKEY = "valkey", Reach.NETWORK, _valkey
