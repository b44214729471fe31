"""An answer counts only in the shape that was asked for, and whatever else a call raises is that nobody answered."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.server import UnusableServerError, open_server
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.life import Life
from domain.record import Acquired, Claim
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.tcp_proxy import proxied
from tests.support.valkey import RETENTION, Server, valkey_admin, valkey_store

JOB = job("job-001", secret="payload-value")
LEASE = timedelta(seconds=60)
HELD = Claim(JOB.key, "a", 1)
SECOND = timedelta(seconds=1)

STORE: dict[str, Callable[[ValkeyIdempotencyStore], object]] = {
    "claim": lambda store: store.claim(JOB, owner="b", lease=LEASE),
    "begin": lambda store: store.begin(HELD, Life()),
    "complete": lambda store: store.complete(HELD, Answer("1")),
    "release": lambda store: store.release(HELD, "Error"),
    "renew": lambda store: store.renew(HELD, LEASE * 2),
    "find": lambda store: store.find(JOB.key),
}
ADMIN: dict[str, Callable[[ValkeyStoreAdmin, Any], object]] = {
    "look": lambda admin, seen: admin.look(JOB.key),
    "forget": lambda admin, seen: admin.forget(seen, force=True),
    "restart": lambda admin, seen: admin.restart(seen),
}
NO_EVIDENCE: dict[str, bytes] = {
    "OK": b"+OK\r\n",
    "nothing": b"$-1\r\n",
    "no list": b"*-1\r\n",
    "text": b"$4\r\ntrue\r\n",
    "empty text": b"$0\r\n\r\n",
    "another number": b":2\r\n",
    "a list of one": b"*1\r\n:1\r\n",
    "numbers": b"*2\r\n:1\r\n:1\r\n",
    "taken without a count": b"*5\r\n:1\r\n$1\r\n1\r\n$1\r\n1\r\n:1\r\n$0\r\n\r\n",
    "refused by nothing": b"*2\r\n:0\r\n$-1\r\n",
    "refused by half a record": b"*2\r\n:0\r\n*1\r\n$6\r\nstatus\r\n",
    "an answer of the web": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "an attempt that is none": (
        b"*9\r\n:1\r\n$1\r\n0\r\n$1\r\n1\r\n:1\r\n$0\r\n\r\n$1\r\n1\r\n$1\r\n0\r\n$1\r\n1\r\n$0\r\n\r\n"
    ),
}


@pytest.mark.parametrize("answer", NO_EVIDENCE.values(), ids=NO_EVIDENCE.keys())
@pytest.mark.parametrize("call", STORE.values(), ids=STORE.keys())
def test_an_answer_of_another_shape_is_none(
    server: Server,
    store: ValkeyIdempotencyStore,
    clock: FakeClock,
    call: Callable[[ValkeyIdempotencyStore], object],
    answer: bytes,
) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    before = store.find(JOB.key)
    with proxied(server.port) as proxy:
        cut_off = valkey_store(proxy.port, clock, RETENTION)
        cut_off.find(JOB.key)
        proxy.plan = [answer]
        with pytest.raises(StoreUnavailableError):
            call(cut_off)
        assert proxy.plan == []
        assert cut_off.find(JOB.key) == before, "the next one is asked on a connection without left-overs"
        cut_off.close()


@pytest.mark.parametrize("answer", NO_EVIDENCE.values(), ids=NO_EVIDENCE.keys())
@pytest.mark.parametrize("call", ADMIN.values(), ids=ADMIN.keys())
def test_an_operator_is_told_nothing_on_an_answer_of_another_shape(
    server: Server,
    store: ValkeyIdempotencyStore,
    clock: FakeClock,
    call: Callable[[ValkeyStoreAdmin, Any], object],
    answer: bytes,
) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    with proxied(server.port) as proxy:
        admin = valkey_admin(proxy.port, clock, RETENTION)
        seen = admin.look(JOB.key)
        server.client.script_flush()
        proxy.plan = [answer]
        with pytest.raises(StoreUnavailableError):
            call(admin, seen)
        assert admin.look(JOB.key) == seen
        admin.close()


@pytest.mark.parametrize("answer", [b"+OK\r\n", b"$-1\r\n", b"*0\r\n", b"*2\r\n:0\r\n*0\r\n", b"*1\r\n$1\r\n0\r\n"])
def test_a_page_of_another_shape_is_none(
    server: Server, admin: ValkeyStoreAdmin, monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    with proxied(server.port) as proxy:
        cut_off = valkey_admin(proxy.port, FakeClock(), RETENTION)
        for call in (lambda: list(cut_off.records()), cut_off.purge, cut_off.sample):
            proxy.answers["SCAN"] = answer
            with pytest.raises(StoreUnavailableError):
                call()
        cut_off.close()


@pytest.mark.parametrize("error", [RuntimeError, OSError, LookupError, ArithmeticError, MemoryError, RecursionError])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("call", STORE.values(), ids=STORE.keys())
def test_whatever_a_call_raises_is_that_nobody_answered(
    store: ValkeyIdempotencyStore,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[ValkeyIdempotencyStore], object],
    when: str,
    error: type[Exception],
) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    client = store._commands.client
    name = "execute_command" if when == "before" else "parse_response"

    def raising(*_: object, **__: object) -> object:
        raise error("payload-value")

    with monkeypatch.context() as patch:
        patch.setattr(client, name, raising)
        with pytest.raises(StoreUnavailableError) as refused:
            call(store)
    assert "value" not in str(refused.value)
    assert store.find(job("another").key) is None, "no answer of the one is taken for the other's"


class _CredentialsError(Exception):
    """Of a provider that nobody here knows."""


@pytest.mark.parametrize("error", [RuntimeError, LookupError, _CredentialsError, ValueError, TypeError])
def test_at_the_start_whatever_a_call_raises_is_a_clear_message(
    server: Server, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def raising(*_: object) -> None:
        raise error("hunter2")

    monkeypatch.setattr("valkey.Valkey.info", raising)
    with pytest.raises(UnusableServerError, match=f"^IDEMPOTENCY_VALKEY_URL: {error.__name__}$"):
        open_server(server.url, connections=3, connect_timeout=SECOND, read_timeout=SECOND)


@pytest.mark.parametrize(
    "answer", [b"+OK\r\n", b"$-1\r\n", b"$2\r\nhi\r\n", b":1\r\n", b"$19\r\nredis_version:seven\r\n"]
)
def test_at_the_start_a_server_that_does_not_say_what_it_is_is_refused(server: Server, answer: bytes) -> None:
    with proxied(server.port) as proxy:
        proxy.answers["INFO"] = answer
        with pytest.raises(UnusableServerError, match=r"^IDEMPOTENCY_VALKEY_URL: "):
            open_server(f"redis://127.0.0.1:{proxy.port}", connections=3, connect_timeout=SECOND, read_timeout=SECOND)


def test_a_landed_claim_is_recognised_after_an_answer_that_is_none(server: Server, clock: FakeClock) -> None:
    with proxied(server.port) as proxy:
        store = valkey_store(proxy.port, clock, RETENTION)
        direct = valkey_store(server.port, clock, RETENTION)
        direct.claim(JOB, owner="a", lease=LEASE)
        proxy.plan = [b"+OK\r\n"]
        with pytest.raises(StoreUnavailableError):
            store.claim(JOB, owner="a", lease=LEASE)
        assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(HELD)
        direct.close()
        store.close()
