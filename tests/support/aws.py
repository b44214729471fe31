"""AWS for tests: moto in process, or the guarded emulator over HTTP; and what is made there."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import botocore.session
from moto import mock_aws

from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from domain.ports.clock import Clock
from entrypoints.client_config import sdk_config
from entrypoints.emulator.launcher import Emulator, emulator, only_environment
from entrypoints.settings import Backend, Settings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

botocore.session.create_loader = cache(botocore.session.create_loader)
"""Each test has an SDK session of its own; what it reads of the SDK's own files is read once."""

TABLE = "records"
_running: list[Emulator] = []
_stack: list[Any] = []


@contextmanager
def in_process() -> Iterator[None]:
    """moto: no sockets, one thread at a time."""
    keys = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_DEFAULT_REGION": "us-east-1"}
    with only_environment(keys), mock_aws():
        create_table()
        yield


@contextmanager
def emulated() -> Iterator[Emulator]:
    """The emulator, shared by the whole run and emptied for each use, with the table made."""
    running = shared_emulator()
    running.reset()
    with only_environment(running.environment()):
        create_table()
        yield running


@cache
def shared_emulator() -> Emulator:
    context = emulator()
    running = context.__enter__()
    _stack.append(context)
    return running


def stop_shared_emulator() -> None:
    while _stack:
        _stack.pop().__exit__(None, None, None)
    shared_emulator.cache_clear()


def create_table(name: str = TABLE) -> None:
    boto3.client("dynamodb").create_table(
        TableName=name,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def dynamodb_client(concurrency: int = 64) -> "DynamoDBClient":
    settings = Settings(backend=Backend.DYNAMODB, table=TABLE, concurrency=concurrency)
    return boto3.client("dynamodb", config=sdk_config(settings))


def layer(client: "DynamoDBClient | None" = None, **options: Any) -> FencedDynamoDBPersistenceLayer:
    return FencedDynamoDBPersistenceLayer(TABLE, boto3_client=client or dynamodb_client(), **options)


def dynamodb_store(
    clock: Clock, retention: timedelta, client: "DynamoDBClient | None" = None
) -> DynamoDBIdempotencyStore:
    return DynamoDBIdempotencyStore(layer(client), clock, retention)


def dynamodb_admin(clock: Clock, retention: timedelta) -> DynamoDBStoreAdmin:
    return DynamoDBStoreAdmin(layer(), clock, retention)


def item(key: object) -> dict[str, Any]:
    """The stored item, deserialised; empty if there is none."""
    table: Any = boto3.resource("dynamodb").Table(TABLE)
    stored: dict[str, Any] = table.get_item(Key={"id": str(key)}, ConsistentRead=True).get("Item", {})
    return stored
