"""What is peculiar to Valkey: one round trip each, and keys of somebody else."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseLostError
from domain.record import Acquired, Busy, Claim
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.tcp_proxy import proxied
from tests.support.valkey import RETENTION, Server, valkey_store

JOB = job("job-001", amount=10)
KEY = f"onejob:{JOB.key}"
LEASE = timedelta(seconds=60)
HELD = Claim(JOB.key, "a", 1)


def test_every_operation_is_one_request_and_a_server_that_forgot_the_script_costs_one_more(server: Server) -> None:
    server.client.script_flush()
    with proxied(server.port) as proxy:
        store = valkey_store(proxy.port, FakeClock(), RETENTION)
        for expected in ({"EVALSHA": 4, "EVAL": 4, "HGETALL": 1}, {"EVALSHA": 4, "HGETALL": 1}):
            proxy.requests.clear()
            store.claim(JOB, owner="a", lease=LEASE)
            store.renew(HELD, LEASE * 2)
            store.release(HELD, "Error")
            assert store.find(JOB.key) is not None
            with pytest.raises(LeaseLostError):
                store.complete(HELD, Answer("1"))
            assert proxy.requests == expected
            server.client.flushdb()
        store.close()


FOREIGN: dict[str, tuple[str, ...]] = {
    "another type": ("SET", KEY, "x"),
    "another's hash": ("HSET", KEY, "colour", "red"),
    "another job_id": ("HSET", KEY, "job_id", "job-002"),
    "no job_id": ("HDEL", KEY, "job_id"),
    "a status that nobody knows": ("HSET", KEY, "status", "PAUSED"),
    "no status": ("HDEL", KEY, "status"),
    "attempts that are no number": ("HSET", KEY, "attempts", "many"),
    "attempts beyond counting": ("HSET", KEY, "attempts", "9" * 17),
    "a lease that is no number": ("HSET", KEY, "lease_until", "1e3"),
    "a retention that is no number": ("HSET", KEY, "expires_at", "-5"),
    "no retention": ("HDEL", KEY, "expires_at"),
    "bytes that are no text": ("HSET", KEY, "fingerprint", b"\xff"),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("over", [False, True], ids=["its time running", "its time over"])
@pytest.mark.parametrize("name", list(FOREIGN))
def test_what_nobody_of_ours_wrote_is_neither_taken_nor_changed(server: Server, name: str, over: bool) -> None:
    clock = FakeClock()
    store = valkey_store(server.port, clock, RETENTION)
    if not name.startswith("another"):
        store.claim(JOB, owner="a", lease=LEASE)
    if name == "another job_id":
        store.claim(JOB, owner="a", lease=LEASE)
    server.client.execute_command(*FOREIGN[name])
    if over and name != "bytes that are no text":
        clock.advance(days=1)
    before = server.client.dump(KEY)
    with pytest.raises(ForeignRecordError):
        store.claim(JOB, owner="b", lease=LEASE)
    assert server.client.dump(KEY) == before
    store.close()


@pytest.mark.parametrize("name", ["another type", "another's hash", "no status", "a lease that is no number"])
def test_what_nobody_of_ours_wrote_is_not_read(server: Server, name: str) -> None:
    store = valkey_store(server.port, FakeClock(), RETENTION)
    if not name.startswith("another"):
        store.claim(JOB, owner="a", lease=LEASE)
    server.client.execute_command(*FOREIGN[name])
    with pytest.raises(ForeignRecordError):
        store.find(JOB.key)
    store.close()


def test_no_write_lands_on_another_type(server: Server) -> None:
    store = valkey_store(server.port, FakeClock(), RETENTION)
    server.client.set(KEY, "x")
    writes: list[Callable[[], None]] = [
        lambda: store.complete(HELD, Answer("1")),
        lambda: store.release(HELD, "Error"),
        lambda: store.renew(HELD, LEASE),
    ]
    for write in writes:
        with pytest.raises(ForeignRecordError, match="holds something else"):
            write()
    assert server.client.get(KEY) == "x"
    store.close()


def test_an_interrupted_question_leaves_no_answer_for_the_next_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server answers it only when the next one was asked."""
    store = valkey_store(server.port, FakeClock(), RETENTION)
    store.claim(JOB, owner="a", lease=LEASE)
    client, asked = store._commands.client, Event()
    parse = client.parse_response

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def told(*arguments: Any, **options: Any) -> Any:
        asked.set()
        return parse(*arguments, **options)

    with ThreadPoolExecutor(1) as pool:
        with server.paused():
            monkeypatch.setattr(client, "parse_response", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.find(JOB.key)
            monkeypatch.setattr(client, "parse_response", told)
            found = pool.submit(store.find, job("2").key)
            assert asked.wait(10)
        assert found.result(10) is None
    store.close()


def test_a_store_that_is_closed_has_no_connection(server: Server) -> None:
    store = valkey_store(server.port, FakeClock(), RETENTION)
    store.claim(JOB, owner="a", lease=LEASE)
    connections = store._commands.client.connection_pool._connections
    assert any(one._sock for one in connections)
    store.close()
    assert not any(one._sock for one in connections)


@pytest.mark.parametrize("left", [timedelta(0), timedelta(microseconds=-1)], ids=["live", "over"])
def test_a_live_lease_outlasts_a_retention_that_is_over(server: Server, left: timedelta) -> None:
    """No record of ours is so; one that somebody mended by hand may be."""
    clock = FakeClock()
    store = valkey_store(server.port, clock, RETENTION)
    store.claim(JOB, owner="a", lease=LEASE)
    server.client.hset(KEY, "expires_at", 1)
    clock.time += LEASE - left
    answer = store.claim(JOB, owner="b", lease=LEASE)
    assert isinstance(answer, Acquired if left else Busy)
    store.close()


def test_an_error_of_any_length_and_alphabet_is_kept_short(server: Server) -> None:
    store = valkey_store(server.port, FakeClock(), RETENTION)
    store.claim(JOB, owner="a", lease=LEASE)
    store.release(HELD, "Fehlerö\ud800" + "x" * 1000)
    assert store.claim(JOB, owner="b", lease=LEASE) == Acquired(Claim(JOB.key, "b", 2), "Fehler??" + "x" * 92)
    store.close()


def test_jobs_are_kept_apart_by_the_database(server: Server) -> None:
    clock = FakeClock()
    store, other = valkey_store(server.port, clock, RETENTION), valkey_store(server.port, clock, RETENTION, database=1)
    store.claim(JOB, owner="a", lease=LEASE)
    assert other.find(JOB.key) is None
    assert isinstance(store.claim(JOB, owner="b", lease=LEASE), Busy)
    store.close()
    other.close()
