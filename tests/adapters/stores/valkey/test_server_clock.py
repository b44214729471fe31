"""The server's clock decides nothing: no key expires by itself, whatever that clock shows and whoever wrote the key."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Busy, Claim, Completed
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.valkey import RETENTION, Server, valkey_admin, valkey_client, valkey_store, with_own_clock

JOB = job("job-001", amount=10)
KEY = f"onejob:{JOB.key}"
LEASE = timedelta(seconds=60)
HELD = Claim(JOB.key, "a", 1)
ANSWER = Answer("1")
KEEP_FOREVER = -1
"""What PTTL answers of a key that does not expire."""

OLDER_VERSIONS_MS = 7_200_000


def by_an_older_version(server: Server) -> None:
    assert server.client.pexpire(KEY, OLDER_VERSIONS_MS) == 1


def test_no_write_makes_a_key_expire(server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin) -> None:
    def expires() -> int:
        left: int = server.client.pttl(KEY)
        return left

    store.claim(JOB, owner="a", lease=LEASE)
    assert expires() == KEEP_FOREVER
    store.renew(HELD, LEASE * 2)
    assert expires() == KEEP_FOREVER
    store.release(HELD, "Error")
    assert expires() == KEEP_FOREVER
    store.claim(JOB, owner="b", lease=LEASE)
    store.complete(Claim(JOB.key, "b", 2), ANSWER)
    assert expires() == KEEP_FOREVER
    seen = admin.look(JOB.key)
    assert seen is not None
    admin.forget(seen)
    assert expires() == KEEP_FOREVER


def _claim_again(store: ValkeyIdempotencyStore) -> None:
    assert store.claim(JOB, owner="a", lease=LEASE) == Acquired(HELD)


WRITES: dict[str, tuple[Callable[[ValkeyIdempotencyStore], object], Callable[[ValkeyIdempotencyStore], object]]] = {
    "claim of a released job": (
        lambda store: store.release(HELD, "Error"),
        lambda store: store.claim(JOB, owner="b", lease=LEASE),
    ),
    "claim that had landed": (lambda store: None, _claim_again),
    "begin": (lambda store: None, lambda store: store.begin(HELD, HELD.life)),
    "renew": (lambda store: None, lambda store: store.renew(HELD, LEASE * 2)),
    "renew that had landed": (lambda store: None, lambda store: store.renew(HELD, LEASE)),
    "release": (lambda store: None, lambda store: store.release(HELD, "Error")),
    "release that had landed": (
        lambda store: store.release(HELD, "Error"),
        lambda store: store.release(HELD, "Error"),
    ),
    "complete": (lambda store: None, lambda store: store.complete(HELD, ANSWER)),
    "complete that had landed": (
        lambda store: store.complete(HELD, ANSWER),
        lambda store: store.complete(HELD, ANSWER),
    ),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_a_write_takes_off_the_expiry_that_an_older_version_set(
    server: Server, store: ValkeyIdempotencyStore, name: str
) -> None:
    before, write = WRITES[name]
    store.claim(JOB, owner="a", lease=LEASE)
    before(store)
    by_an_older_version(server)
    write(store)
    assert server.client.pttl(KEY) == KEEP_FOREVER


def test_a_claim_after_retention_takes_it_off(server: Server, store: ValkeyIdempotencyStore, clock: FakeClock) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    store.complete(HELD, ANSWER)
    by_an_older_version(server)
    clock.advance(days=1)
    assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Acquired)
    assert server.client.pttl(KEY) == KEEP_FOREVER


def test_a_forgotten_job_keeps_none(server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    by_an_older_version(server)
    seen = admin.look(JOB.key)
    assert seen is not None
    admin.forget(seen, force=True)
    assert server.client.pttl(KEY) == KEEP_FOREVER


def test_a_purge_takes_it_off_what_it_keeps(
    server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin
) -> None:
    """A finished job is written to by nobody any more: after an upgrade one purge makes the old ones safe."""
    store.claim(JOB, owner="a", lease=LEASE)
    store.complete(HELD, ANSWER)
    by_an_older_version(server)
    server.client.hset(f"onejob:{job('2').key}", "colour", "red")
    server.client.pexpire(f"onejob:{job('2').key}", OLDER_VERSIONS_MS)
    purged = admin.purge()
    assert (purged.seen, purged.deleted) == (1, 0)
    assert server.client.pttl(KEY) == KEEP_FOREVER
    assert server.client.pttl(f"onejob:{job('2').key}") > 0, "the key of somebody else"


def test_a_refused_write_leaves_the_key_as_it_is(server: Server, store: ValkeyIdempotencyStore) -> None:
    store.claim(JOB, owner="a", lease=LEASE)
    by_an_older_version(server)
    assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Busy)
    assert server.client.pttl(KEY) > 0


def test_a_worker_that_may_not_take_it_off_begins_nothing(server: Server, clock: FakeClock) -> None:
    """As one whose rights are those that an older version needed."""
    rights = ["+evalsha", "+eval", "+hgetall", "+hmget", "+hset", "+hdel", "+pexpire"]
    server.client.acl_setuser("worker", enabled=True, nopass=True, keys=["onejob:*"], commands=rights)
    client = valkey_client(server.port, user="worker")
    store = ValkeyIdempotencyStore(client, clock, RETENTION)
    try:
        with pytest.raises(StoreUnavailableError):
            store.claim(JOB, owner="a", lease=LEASE)
    finally:
        server.client.acl_deluser("worker")
        store.close()
    assert server.client.exists(KEY) == 0


@pytest.mark.parametrize("days", [30, -30])
def test_a_finished_job_stays_finished_when_the_clock_of_the_server_is_stepped(clock: FakeClock, days: int) -> None:
    with with_own_clock() as (server, set_off), closing(valkey_store(server.port, clock, RETENTION)) as store:
        store.claim(JOB, owner="a", lease=LEASE)
        store.complete(HELD, ANSWER)
        held = job("held")
        store.claim(held, owner="a", lease=LEASE)
        set_off(timedelta(days=days))
        assert store.claim(JOB, owner="b", lease=LEASE) == Completed(ANSWER)
        assert isinstance(store.claim(held, owner="b", lease=LEASE), Busy)
        store.complete(Claim(held.key, "a", 1), ANSWER)


def test_what_a_server_wrote_with_a_wrong_clock_is_kept_when_it_is_set_right(clock: FakeClock) -> None:
    with with_own_clock() as (server, set_off), closing(valkey_store(server.port, clock, RETENTION)) as store:
        set_off(timedelta(days=-3650))
        store.claim(JOB, owner="a", lease=LEASE)
        store.complete(HELD, ANSWER)
        set_off(timedelta(0))
        assert store.claim(JOB, owner="b", lease=LEASE) == Completed(ANSWER)


def test_a_purge_on_a_server_whose_clock_is_ahead_deletes_what_is_over_by_the_operators_clock(clock: FakeClock) -> None:
    with (
        with_own_clock() as (server, set_off),
        closing(valkey_store(server.port, clock, RETENTION)) as store,
        closing(valkey_admin(server.port, clock, RETENTION)) as admin,
    ):
        store.claim(JOB, owner="a", lease=LEASE)
        store.complete(HELD, ANSWER)
        set_off(timedelta(days=30))
        assert admin.purge().deleted == 0
        set_off(timedelta(days=-30))
        clock.advance(hours=2)
        assert admin.purge().deleted == 1
