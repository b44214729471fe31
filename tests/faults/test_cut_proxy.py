"""The cut line is what it says, as an SDK sees it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ConnectionClosedError, EndpointConnectionError, ReadTimeoutError

from tests.support.aws import TABLE, emulated
from tests.support.cut_proxy import CutProxy

ONE_TRY = Config(retries={"total_max_attempts": 1}, read_timeout=0.3)


@pytest.fixture
def proxy() -> Iterator[CutProxy]:
    with emulated() as aws, closing(CutProxy(aws.port)) as made:
        yield made


@pytest.fixture
def client(proxy: CutProxy) -> Iterator[Any]:
    """With a connection that is open already."""
    with closing(boto3.client("dynamodb", endpoint_url=proxy.url, config=ONE_TRY)) as made:
        put(made, "before")
        yield made


def put(client: Any, name: str) -> None:
    client.put_item(TableName=TABLE, Item={"id": {"S": name}})


def items() -> set[str]:
    return {item["id"]["S"] for item in boto3.client("dynamodb").scan(TableName=TABLE)["Items"]}


def test_closed_nothing_lands_until_it_is_mended(proxy: CutProxy, client: Any) -> None:
    proxy.cut("closed")
    for _ in range(2):
        with pytest.raises((ConnectionClosedError, EndpointConnectionError)):
            put(client, "cut")
    proxy.mend()
    put(client, "after")
    assert items() == {"before", "after"}


def test_silent_what_was_sent_never_lands(proxy: CutProxy, client: Any) -> None:
    proxy.cut("silent")
    for _ in range(2):
        with pytest.raises(ReadTimeoutError):
            put(client, "cut")
    proxy.mend()
    put(client, "after")
    assert items() == {"before", "after"}


def test_late_what_was_sent_lands_though_its_client_has_given_up(proxy: CutProxy, client: Any) -> None:
    proxy.cut("late")
    with pytest.raises(ReadTimeoutError):
        put(client, "cut")
    assert items() == {"before"}
    proxy.mend()
    put(client, "after")
    for _ in range(100):
        if "cut" in items():
            return
    pytest.fail("it never landed")


def test_late_who_waits_gets_the_answer(proxy: CutProxy, client: Any) -> None:
    proxy.cut("late")
    with closing(boto3.client("dynamodb", endpoint_url=proxy.url)) as patient, ThreadPoolExecutor() as threads:
        waiting = threads.submit(put, patient, "waited")
        with pytest.raises(ReadTimeoutError):
            put(client, "cut")
        proxy.mend()
        waiting.result()
    assert "waited" in items()
