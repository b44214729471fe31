"""A switch-over that cuts no connection: what answers on the old ones is refused, and the next try has new ones."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.delivery import Delivery
from domain.errors import StoreUnavailableError
from domain.outcome import Executed
from domain.record import Acquired, Claim
from domain.service import JobService
from tests.support.clock import FakeClock
from tests.support.jobs import RecordedEvents, counting_ids, job, operations
from tests.support.tcp_proxy import Fault, TcpProxy, proxied
from tests.support.valkey import RETENTION, Server, started, valkey_admin, valkey_store

LEASE = timedelta(seconds=60)
THREADS = 8
REFUSALS: dict[str, bytes] = {
    "replica": b"-READONLY You can't write against a read only replica.\r\n",
    "cut off from its primary": b"-MASTERDOWN Link with MASTER is down\r\n",
    "loading": b"-LOADING Valkey is loading the dataset in memory\r\n",
    "cluster": b"-CLUSTERDOWN The cluster is down\r\n",
    "migrating": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "moved": b"-MOVED 3999 127.0.0.1:6381\r\n",
    "too few replicas": b"-NOREPLICAS Not enough good replicas to write.\r\n",
    "another's": b"-NOAUTH Authentication required.\r\n",
}


@pytest.fixture
def other() -> Iterator[Server]:
    """What a new connection finds after the switch-over."""
    with started() as running:
        yield running


@pytest.fixture
def line(server: Server) -> Iterator[TcpProxy]:
    with proxied(server.port) as proxy:
        yield proxy
    server.client.replicaof("NO", "ONE")


def warmed(line: TcpProxy) -> ValkeyIdempotencyStore:
    """A store with `THREADS` open connections."""
    store, together = valkey_store(line.port, FakeClock(), RETENTION), Barrier(THREADS)
    pool: Any = store._commands.client.connection_pool

    def hold() -> None:
        connection = pool.get_connection("PING")
        connection.send_command("PING")
        assert connection.read_response() == b"PONG"  # so that it goes to the old primary already
        together.wait(10)
        pool.release(connection)

    with ThreadPoolExecutor(THREADS) as threads:
        for held in [threads.submit(hold) for _ in range(THREADS)]:
            held.result(10)
    return store


def switch(line: TcpProxy, server: Server, other: Server) -> None:
    """The old primary follows, as Sentinel has it, and cuts nobody off; its address is the new one's."""
    server.client.replicaof("127.0.0.1", 1)
    line._server_port = other.port


def test_after_a_switch_over_the_second_try_lands_on_the_new_primary(
    server: Server, other: Server, line: TcpProxy
) -> None:
    store = warmed(line)
    switch(line, server, other)
    with pytest.raises(StoreUnavailableError, match=r"^Valkey: ReadOnlyError$"):
        store.claim(job("1"), owner="a", lease=LEASE)
    assert store.claim(job("1"), owner="a", lease=LEASE) == Acquired(Claim(job("1").key, "a", 1))
    assert other.client.exists(f"onejob:{job('1').key}")
    store.close()


def test_jobs_side_by_side_survive_a_switch_over_within_their_tries(
    server: Server, other: Server, line: TcpProxy
) -> None:
    store, clock = warmed(line), FakeClock()
    service = JobService(
        store=store,
        operations=operations(),
        events=RecordedEvents(),
        clock=clock,
        new_id=counting_ids(),
        jitter=lambda: 0.0,
        max_attempts=5,
        margin=timedelta(seconds=5),
    )
    switch(line, server, other)
    with ThreadPoolExecutor(THREADS) as threads:
        asked = [
            threads.submit(
                service.process,
                job(str(number)),
                lease=LEASE,
                deadline=None,
                delivery=Delivery(receives=1),
            )
            for number in range(THREADS * 2)
        ]
        outcomes = [each.result(20) for each in asked]
    assert all(isinstance(each, Executed) for each in outcomes), outcomes
    store.close()


@pytest.mark.parametrize("end", ["complete", "release", "renew"])
def test_the_end_of_a_job_that_was_claimed_before_a_switch_over_lands(
    server: Server, other: Server, line: TcpProxy, end: str
) -> None:
    store = warmed(line)
    held = store.claim(job("1"), owner="a", lease=LEASE)
    assert isinstance(held, Acquired)
    name = f"onejob:{job('1').key}"
    other.client.hset(name, mapping=server.client.hgetall(name))  # as a replica has it
    switch(line, server, other)
    ends: dict[str, Callable[[], None]] = {
        "complete": lambda: store.complete(held.claim, Answer("1")),
        "release": lambda: store.release(held.claim, "Error"),
        "renew": lambda: store.renew(held.claim, LEASE * 2),
    }
    with pytest.raises(StoreUnavailableError):
        ends[end]()
    ends[end]()
    assert other.client.hgetall(name) != server.client.hgetall(name)
    store.close()


CALLS: dict[str, Callable[[ValkeyIdempotencyStore], object]] = {
    "claim": lambda store: store.claim(job("1"), owner="a", lease=LEASE),
    "find": lambda store: store.find(job("1").key),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_every_connection_is_new_after_a_refusal(
    server: Server, line: TcpProxy, call: Callable[[ValkeyIdempotencyStore], object], refusal: bytes
) -> None:
    store = warmed(line)
    call(store)
    before = connected(store)
    line.plan = [refusal]
    with pytest.raises(StoreUnavailableError):
        call(store)
    assert len(connected(store)) == THREADS
    assert not connected(store) & before
    store.close()


def connected(store: ValkeyIdempotencyStore) -> set[object]:
    """Our ends of its connections."""
    pool: Any = store._commands.client.connection_pool
    taken = [pool.get_connection("PING") for _ in range(THREADS)]
    for connection in taken:
        pool.release(connection)
    return {connection._sock.getsockname() for connection in taken}


def test_a_refusal_costs_no_other_thread_its_answer(server: Server, line: TcpProxy) -> None:
    """What is in use is closed when it is given back."""
    store = warmed(line)
    pool: Any = store._commands.client.connection_pool
    used = pool.get_connection("PING")
    used.send_command("PING")
    line.plan = [REFUSALS["replica"]]
    with pytest.raises(StoreUnavailableError):
        CALLS["claim"](store)
    assert used.read_response() == b"PONG"
    pool.release(used)
    assert used._sock is None
    store.close()


def test_a_record_of_another_tool_costs_no_connection(server: Server, line: TcpProxy) -> None:
    store = warmed(line)
    server.client.set(f"onejob:{job('1').key}", "x")
    before = connected(store)
    with pytest.raises(StoreUnavailableError, match="holds something else"):
        CALLS["claim"](store)
    assert connected(store) == before
    store.close()


def admin_calls(admin: ValkeyStoreAdmin) -> dict[str, Callable[[], object]]:
    seen = admin.look(job("1").key)
    assert seen is not None
    return {
        "look": lambda: admin.look(job("1").key),
        "records": lambda: list(admin.records()),
        "purge": admin.purge,
        "sample": admin.sample,
        "restart": lambda: admin.restart(seen),
        "forget": lambda: admin.forget(seen, force=True),
    }


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
@pytest.mark.parametrize("name", ["look", "records", "purge", "sample", "restart", "forget"])
def test_an_operator_who_is_refused_is_served_on_a_new_connection(
    server: Server, line: TcpProxy, store: ValkeyIdempotencyStore, clock: FakeClock, name: str, refusal: bytes
) -> None:
    store.claim(job("1"), owner="a", lease=LEASE)
    admin = valkey_admin(line.port, clock, RETENTION)
    call = admin_calls(admin)[name]
    line.plan = [refusal]
    call()
    again: list[Fault] = [refusal, refusal]
    line.plan = again
    with pytest.raises(StoreUnavailableError):
        admin.look(job("1").key)
    admin.close()
