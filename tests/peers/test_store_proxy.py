"""The faults of the comparison are what they say, as an SDK sees them."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

from benchmarks.peers.store_proxy import StoreProxy
from tests.support.aws import TABLE, emulated

ITEM = {"id": {"S": "1"}}


@pytest.fixture
def proxy() -> Iterator[StoreProxy]:
    with emulated() as aws, closing(StoreProxy(aws.port)) as made:
        yield made


def through(proxy: StoreProxy) -> Any:
    return boto3.client("dynamodb", endpoint_url=proxy.url, config=Config(retries={"total_max_attempts": 1}))


def put(proxy: StoreProxy) -> None:
    with closing(through(proxy)) as client:
        client.put_item(TableName=TABLE, Item=ITEM)


def items() -> int:
    return len(boto3.client("dynamodb").scan(TableName=TABLE)["Items"])


def test_without_a_fault_it_passes_everything_on(proxy: StoreProxy) -> None:
    put(proxy)
    with closing(through(proxy)) as client:
        assert client.get_item(TableName=TABLE, Key=ITEM)["Item"] == ITEM
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.get_item(TableName="none", Key=ITEM)


def test_cut_off_nothing_lands(proxy: StoreProxy) -> None:
    proxy.start("cut", 60)
    with pytest.raises(ConnectionClosedError):
        put(proxy)
    assert items() == 0


def test_throttled_nothing_lands(proxy: StoreProxy) -> None:
    proxy.start("throttle", 60)
    with pytest.raises(ClientError, match="ProvisionedThroughputExceededException"):
        put(proxy)
    assert items() == 0


def test_a_lost_answer_is_that_of_a_write_that_landed(proxy: StoreProxy) -> None:
    proxy.start("lose", 1)
    with closing(through(proxy)) as client:
        assert "Item" not in client.get_item(TableName=TABLE, Key=ITEM), "reads are answered"
    with pytest.raises(ConnectionClosedError):
        put(proxy)
    assert items() == 1
    put(proxy)


def test_a_sandbox_starts_outside_the_fault(proxy: StoreProxy) -> None:
    proxy.start("cut", 60)
    with proxy.without_faults():
        put(proxy)
    with pytest.raises(ConnectionClosedError):
        put(proxy)
