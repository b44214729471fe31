"""One secret a namespace: made once however many ask, kept for ever, and nobody's job."""

from datetime import timedelta

import pytest

from adapters.stores.memory import MemoryIdempotencyStore
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.record import Busy, Record
from domain.shared_secret import NAMESPACE, SharedSecret
from tests.support.clock import FakeClock
from tests.support.jobs import counting_ids

RETENTION = timedelta(days=28)


def store() -> MemoryIdempotencyStore:
    return MemoryIdempotencyStore(FakeClock(), RETENTION)


def secret(shared: MemoryIdempotencyStore, offered: str, namespace: str = "test") -> SharedSecret:
    return SharedSecret(shared.find, shared.claim, namespace, lambda: offered)


def test_nobody_has_made_one_until_it_is_asked_for() -> None:
    shared = store()
    assert secret(shared, "a").find() is None
    assert secret(shared, "a").get() == "a"
    assert secret(shared, "b").find() == "a"
    assert secret(shared, "b").get() == "a"


def test_each_namespace_has_its_own() -> None:
    shared = store()
    assert secret(shared, "a", "one").get() != secret(shared, "b", "two").get()


def test_it_outlasts_every_retention_and_no_purge_deletes_it() -> None:
    clock = FakeClock()
    shared = MemoryIdempotencyStore(clock, RETENTION)
    secret(shared, "a").get()
    clock.advance(seconds=20 * 365 * 86_400)
    (record,) = shared.records()
    assert not record.retention_is_over(clock.now())
    assert record.key.namespace == NAMESPACE
    assert secret(shared, "b").get() == "a"


def test_once_known_the_store_is_not_asked_again() -> None:
    shared = store()
    known = secret(shared, "a")
    known.get()
    known._find = lambda key: pytest.fail("asked")
    assert (known.get(), known.find()) == ("a", "a")


def test_two_that_make_one_at_once_have_the_same() -> None:
    shared = store()
    first, second = secret(shared, "a"), secret(shared, "b")
    looks = iter([None])

    def late(key: JobKey) -> Record | None:
        return next(looks, shared.find(key))  # the first look is from before the other's claim

    second._find = late
    assert first.get() == second.get() == "a"


def test_all_threads_of_a_process_offer_the_same() -> None:
    shared, ids = store(), counting_ids()
    made = SharedSecret(lambda key: None, shared.claim, "test", ids)
    assert made.get() == "run-1"
    again = SharedSecret(lambda key: None, shared.claim, "test", lambda: "run-1")
    assert again.get() == "run-1"


def test_one_that_cannot_be_read_is_no_secret() -> None:
    shared = store()
    secret(shared, "a").get()
    blind = SharedSecret(lambda key: None, shared.claim, "test", lambda: "b")
    with pytest.raises(StoreUnavailableError):
        blind.get()
    assert isinstance(shared.claim(blind._job, owner="b", lease=RETENTION), Busy)
