"""Operators among keys of other tools: theirs are neither told nor deleted, and no page is longer than asked for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.errors import ForeignRecordError, RecordChangedError, StoreUnavailableError
from domain.identity import JobKey
from domain.record import Claim, Status
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.tcp_proxy import proxied
from tests.support.valkey import RETENTION, Server, valkey_admin

LEASE = timedelta(seconds=60)


def name(job_id: str) -> str:
    return f"onejob:{job(job_id).key}"


def keys_of_others(server: Server) -> list[str]:
    server.client.set(name("text"), "x")
    server.client.hset(name("hash"), "colour", "red")
    server.client.hset("onejob:something", "status", "COMPLETED")
    server.client.set(b"onejob:\xff", "x")
    server.client.hset("other", "status", "COMPLETED")
    server.client.hset(str(job("bare").key), "status", "COMPLETED")
    server.client.hset(f"other:onejob:{job('bare').key}", "status", "COMPLETED")
    return sorted(server.client.execute_command("KEYS", "*", NEVER_DECODE=True))


def test_keys_of_others_are_neither_told_nor_purged(
    server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin, clock: FakeClock
) -> None:
    before = keys_of_others(server)
    store.claim(job("1"), owner="a", lease=LEASE)
    assert [record.job_id for record in admin.records()] == ["1"]
    for foreign in ("text", "hash"):
        with pytest.raises(ForeignRecordError):
            admin.look(job(foreign).key)
    clock.advance(days=1)
    purged = admin.purge()
    assert (purged.seen, purged.deleted) == (1, 1)
    assert sorted(server.client.execute_command("KEYS", "*", NEVER_DECODE=True)) == before


def test_a_purge_sees_each_record_once_and_no_more_at_a_time_than_asked_for(
    server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin, clock: FakeClock
) -> None:
    for number in range(300):
        store.claim(job(str(number)), owner="a", lease=LEASE)
    clock.advance(days=1)
    seen, after = [], None
    while True:
        page = admin.purge(after=after, limit=7)
        assert page.seen == page.deleted <= 7
        seen.append(page.seen)
        after = page.after
        if after is None:
            break
    assert sum(seen) == 300
    assert server.client.dbsize() == 0


def test_a_record_that_is_claimed_while_it_is_purged_stays(
    server: Server,
    store: ValkeyIdempotencyStore,
    admin: ValkeyStoreAdmin,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store.claim(job("1"), owner="a", lease=LEASE)
    clock.advance(days=1)
    page = admin._page

    def meanwhile(cursor: int, size: int) -> tuple[int, list[JobKey]]:
        told = page(cursor, size)
        store.claim(job("1"), owner="b", lease=LEASE)
        return told

    monkeypatch.setattr(admin, "_page", meanwhile)
    assert admin.purge().deleted == 0
    store.complete(Claim(job("1").key, "b", 2), Answer("1"))


def test_a_foreign_record_is_not_forgotten(
    server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin
) -> None:
    store.claim(job("1"), owner="a", lease=LEASE)
    seen = admin.look(job("1").key)
    assert seen is not None
    server.client.hset(name("1"), "epoch", "x")
    before = server.client.hgetall(name("1"))
    with pytest.raises(ForeignRecordError):
        admin.forget(seen, force=True)
    assert server.client.hgetall(name("1")) == before
    server.client.delete(name("1"))
    with pytest.raises(RecordChangedError):
        admin.forget(seen, force=True)


@pytest.mark.parametrize(
    "change", [{"status": Status.COMPLETED}, {"owner": "b"}, {"attempts": 2}, {"epoch": 2}], ids=str
)
def test_one_difference_is_enough_to_forget_nothing(
    server: Server, store: ValkeyIdempotencyStore, admin: ValkeyStoreAdmin, change: dict[str, Any]
) -> None:
    store.claim(job("1"), owner="a", lease=LEASE)
    seen = admin.look(job("1").key)
    assert seen is not None
    with pytest.raises(RecordChangedError):
        admin.forget(replace(seen, **change), force=True)
    assert admin.look(job("1").key) == seen


def test_a_server_that_does_not_answer_is_unavailable(server: Server, clock: FakeClock) -> None:
    with proxied(server.port) as proxy:
        cut_off = valkey_admin(proxy.port, clock, RETENTION)
        proxy.refuses = True
        for call in (lambda: list(cut_off.records()), cut_off.purge, lambda: cut_off.look(job("1").key)):
            with pytest.raises(StoreUnavailableError):
                call()
        cut_off.close()
