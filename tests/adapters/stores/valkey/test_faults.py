"""Valkey on a bad day: fail closed in bounded time, land once, and recognise what landed."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Busy, Claim, Completed
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.tcp_proxy import Fault, TcpProxy, proxied
from tests.support.valkey import PATIENT, RETENTION, Server, started, valkey_admin, valkey_store

JOB = job("job-001", secret="payload-value")
LEASE = timedelta(seconds=60)
HELD = Claim(JOB.key, "a", 1)
ANSWER = Answer('"answer-value"')
IMPATIENT = timedelta(milliseconds=200)

type Call = Callable[[ValkeyIdempotencyStore], object]

CALLS: dict[str, Call] = {
    "claim": lambda store: store.claim(JOB, owner="a", lease=LEASE),
    "complete": lambda store: store.complete(HELD, ANSWER),
    "release": lambda store: store.release(HELD, "Error"),
    "renew": lambda store: store.renew(HELD, LEASE * 2),
    "find": lambda store: store.find(JOB.key),
}
FAULTS: dict[str, Fault] = {
    "cut": "cut",
    "silent": "silent",
    "lost": "lost",
    "loading": b"-LOADING Valkey is loading the dataset in memory\r\n",
    "disk": b"-MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk\r\n",
    "busy": b"-BUSY Valkey is busy running a script\r\n",
    "moved": b"-MOVED 3999 127.0.0.1:6381\r\n",
    "down": b"-CLUSTERDOWN Hash slot not served\r\n",
    "refused": b"-NOAUTH Authentication required.\r\n",
    "quoting": b"-ERR unknown command 'X', with args beginning with: 'payload-value' 'answer-value'\r\n",
    "no Valkey": b"HTTP/1.1 400 Bad Request payload-value\r\n\r\n",
    "nonsense": b":payload-value\r\n",
}


@pytest.fixture
def line(server: Server) -> Iterator[tuple[TcpProxy, ValkeyIdempotencyStore]]:
    """A store, and the line between it and the server; the server knows the scripts."""
    direct = valkey_store(server.port, FakeClock(), RETENTION)
    direct.claim(job("warm"), owner="a", lease=LEASE)
    for end in ("complete", "release", "renew"):
        with pytest.raises(Exception, match="holds no claim"):
            CALLS[end](direct)
    direct.close()
    with proxied(server.port) as proxy:
        store = valkey_store(proxy.port, FakeClock(), RETENTION)
        yield proxy, store
        store.close()


@pytest.mark.parametrize("fault", list(FAULTS))
@pytest.mark.parametrize("name", list(CALLS))
def test_a_fault_is_store_unavailable_shows_no_value_and_asking_again_is_safe(
    line: tuple[TcpProxy, ValkeyIdempotencyStore], name: str, fault: str
) -> None:
    proxy, store = line
    call = CALLS[name]
    if name != "claim":
        CALLS["claim"](store)
    before = store.find(JOB.key)
    impatient = valkey_store(proxy.port, FakeClock(), RETENTION, read_timeout=IMPATIENT)
    proxy.requests.clear()
    proxy.plan = [FAULTS[fault]]
    with pytest.raises(StoreUnavailableError) as refused:
        call(impatient if fault == "silent" else store)
    impatient.close()
    assert sum(proxy.requests.values()) == 1, "the client does not try again by itself"
    assert "value" not in str(refused.value)
    after = store.find(JOB.key)
    if fault != "lost":
        assert after == before
    elif name != "find":
        assert after != before
    told = call(store)
    if name == "claim":
        assert told == Acquired(HELD)
    elif fault == "lost":
        assert store.find(JOB.key) == after, "it had landed: nothing changes"


def refusing(server: Server, name: str) -> Callable[[], object]:
    """Make it refuse; and how to undo that."""
    ask: Any = server.client
    match name:
        case "out of memory":
            ask.config_set("maxmemory", 1)
            return lambda: ask.config_set("maxmemory", 0)
        case "no replicas":
            ask.config_set("min-replicas-to-write", 1)
            return lambda: ask.config_set("min-replicas-to-write", 0)
        case "read only":
            ask.replicaof("127.0.0.1", 1)
            return lambda: ask.replicaof("NO", "ONE")
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [("out of memory", "OutOfMemoryError"), ("no replicas", "NOREPLICAS"), ("read only", "ReadOnlyError")],
)
def test_a_server_that_refuses_writes_is_unavailable_and_changes_nothing(server: Server, name: str, told: str) -> None:
    store = valkey_store(server.port, FakeClock(), RETENTION)
    store.claim(job("warm"), owner="a", lease=LEASE)
    undo = refusing(server, name)
    try:
        with pytest.raises(StoreUnavailableError, match=f"^Valkey: {told}$"):
            store.claim(JOB, owner="a", lease=LEASE)
        assert store.find(JOB.key) is None
    finally:
        undo()
    assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(HELD)
    store.close()


def test_out_of_memory_nothing_begins_and_what_runs_is_kept_and_ended(server: Server) -> None:
    clock = FakeClock()
    store = valkey_store(server.port, clock, RETENTION)
    for owner in ("a", "b"):
        store.claim(job(owner), owner=owner, lease=LEASE)
    undo = refusing(server, "out of memory")
    try:
        store.renew(Claim(job("a").key, "a", 1), LEASE * 2)
        store.complete(Claim(job("a").key, "a", 1), ANSWER)
        store.release(Claim(job("b").key, "b", 1), "Error")
    finally:
        undo()
    assert store.claim(job("a"), owner="c", lease=LEASE) == Completed(ANSWER)
    assert store.claim(job("b"), owner="c", lease=LEASE) == Acquired(Claim(job("b").key, "c", 2), "Error")
    store.close()


def test_out_of_memory_a_purge_makes_room(server: Server) -> None:
    clock = FakeClock()
    with (
        closing(valkey_store(server.port, clock, RETENTION)) as store,
        closing(valkey_admin(server.port, clock, RETENTION)) as admin,
    ):
        store.claim(job("a"), owner="a", lease=LEASE)
        store.complete(Claim(job("a").key, "a", 1), ANSWER)
        clock.advance(days=30)
        undo = refusing(server, "out of memory")
        try:
            with pytest.raises(StoreUnavailableError):
                store.claim(job("b"), owner="b", lease=LEASE)
            assert admin.purge().deleted == 1
        finally:
            undo()


def test_a_paused_server_is_unavailable_in_bounded_time_and_what_it_did_then_is_recognised() -> None:
    with started() as server:
        clock = FakeClock()
        store = valkey_store(server.port, clock, RETENTION)
        store.claim(job("warm"), owner="a", lease=LEASE)
        impatient = valkey_store(server.port, clock, RETENTION, read_timeout=IMPATIENT)
        began = time.monotonic()
        with server.paused():
            for call in (CALLS["claim"], CALLS["find"]):
                with pytest.raises(StoreUnavailableError, match="TimeoutError"):
                    call(impatient)
        assert time.monotonic() - began < 2
        impatient.close()
        assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(HELD)
        store.close()


def test_a_server_that_is_gone_is_unavailable_at_once() -> None:
    with started() as server:
        store = valkey_store(server.port, FakeClock(), RETENTION)
        CALLS["claim"](store)
        server.kill()
        for call in CALLS.values():
            with pytest.raises(StoreUnavailableError, match="ConnectionError"):
                call(store)
        store.close()


def test_after_kill_9_a_server_that_flushes_each_write_knows_all_that_was_told() -> None:
    clock = FakeClock()
    with started("--appendonly", "yes", "--appendfsync", "always") as server:
        store = valkey_store(server.port, clock, RETENTION)
        for number in range(20):
            held = store.claim(job(str(number)), owner="a", lease=LEASE)
            assert isinstance(held, Acquired)
            if number % 2:
                store.complete(held.claim, ANSWER)
        server.kill()
        with pytest.raises(StoreUnavailableError):
            store.complete(Claim(job("0").key, "a", 1), ANSWER)
        server.start()
        for number in range(20):
            seen = store.claim(job(str(number)), owner="b", lease=LEASE)
            assert isinstance(seen, Completed if number % 2 else Busy)
        store.complete(Claim(job("0").key, "a", 1), ANSWER)
        clock.time += LEASE + timedelta(milliseconds=1)
        assert store.claim(job("2"), owner="b", lease=LEASE) == Acquired(Claim(job("2").key, "b", 2))
        store.close()


@pytest.fixture
def replicated() -> Iterator[tuple[Server, Server]]:
    """A server and its replica."""
    with (
        started("--repl-diskless-sync-delay", "0") as server,
        started("--replicaof", f"127.0.0.1 {server.port}") as replica,
    ):
        server.client.set("anything", "")
        assert server.client.wait(1, 10_000) == 1, "it follows"
        yield server, replica


def test_a_write_counts_only_when_the_replicas_have_it_however_often_it_is_asked_for(
    replicated: tuple[Server, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "adapters.stores.valkey.commands.WAIT", PATIENT - IMPATIENT
    )  # of a machine that has other things to do
    server, replica = replicated
    clock = FakeClock()
    store = replicated_store(server, clock)
    held = [Claim(job(number).key, "a", 1) for number in ("1", "2")]
    for number in ("1", "2"):
        store.claim(job(number), owner="a", lease=LEASE)
    writes: list[Call] = [
        CALLS["claim"],
        lambda store: store.renew(held[0], LEASE * 2),
        lambda store: store.complete(held[0], ANSWER),
        lambda store: store.release(held[1], "Error"),
    ]
    with replica.paused(), monkeypatch.context() as patch:
        patch.setattr("adapters.stores.valkey.commands.WAIT", timedelta(milliseconds=50))
        for write in writes:
            for _ in range(2):  # the second time it finds what had landed, on a connection that has written nothing
                fresh = replicated_store(server, clock)
                with pytest.raises(StoreUnavailableError, match="written to 0 of 1 replicas"):
                    write(fresh)
                fresh.close()
        assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Busy), "a refusal needs no replica"
        admin = valkey_admin(server.port, clock, RETENTION, replicas=1)
        seen = admin.look(held[1].key)
        assert seen is not None
        with pytest.raises(StoreUnavailableError, match="written to 0 of 1 replicas"):
            admin.forget(seen)
        admin.close()
    assert CALLS["claim"](store) == Acquired(HELD)
    store.complete(held[0], ANSWER)
    assert replica.client.hget(f"onejob:{held[0].key}", "status") == "COMPLETED"
    store.close()


def replicated_store(server: Server, clock: FakeClock) -> ValkeyIdempotencyStore:
    return valkey_store(server.port, clock, RETENTION, replicas=1)
