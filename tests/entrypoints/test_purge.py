"""Purging by hand and by schedule: bounded, resumable, and never a record that came alive."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import batched
from pathlib import Path
from typing import Any

import boto3
import pytest
from dependency_injector.providers import Object

from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.system import SystemClock
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.ports.store import IdempotencyStore
from domain.ports.store_admin import Purged
from domain.record import Acquired
from entrypoints import cleanup
from entrypoints.container import Container
from entrypoints.purging import TRIES, Purge
from entrypoints.settings import Backend, Settings
from tests.support.aws import TABLE, dynamodb_store, in_process
from tests.support.aws_faults import aws_requests
from tests.support.cli import objects, onejob
from tests.support.clock import FakeClock
from tests.support.jobs import job

ROOT = Path(__file__).parents[2]
RETENTION = timedelta(seconds=60)
OVER = timedelta(seconds=-5)
"""Of a store that completes with this retention, every record is over at once."""


def complete(store: IdempotencyStore, *job_ids: str) -> None:
    for job_id in job_ids:
        held = store.claim(job(job_id), owner="a", lease=timedelta(microseconds=1))
        assert isinstance(held, Acquired)
        store.complete(held.claim, Answer("1"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Five records that are over, and two that are not."""
    path = tmp_path / "records.sqlite"
    with closing(SQLiteIdempotencyStore(path, SystemClock(), OVER)) as store:
        complete(store, *(f"old-{number}" for number in range(5)))
    with closing(SQLiteIdempotencyStore(path, SystemClock(), RETENTION)) as store:
        complete(store, "new-1", "new-2")
    monkeypatch.setenv("IDEMPOTENCY_DB", str(path))
    monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
    return path


def left() -> set[str]:
    return {one["job_id"] for one in objects(onejob("list", "--json"))}


@pytest.mark.usefixtures("file")
def test_what_is_over_is_deleted_and_the_rest_stays() -> None:
    assert onejob("purge", "--dry-run").stdout == "7 records seen, 5 would be deleted\n"
    assert len(left()) == 7
    result = onejob("purge")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "7 records seen, 5 deleted\n", "")
    assert left() == {"new-1", "new-2"}


@pytest.mark.usefixtures("file")
def test_it_stops_where_it_is_told_and_goes_on_from_there() -> None:
    first = onejob("purge", "--limit", "3", "--json")
    (told,) = objects(first)
    assert (told["seen"], told["complete"]) == (3, False)
    assert f"with --after '{told['after']}'" in first.stderr
    (rest,) = objects(onejob("purge", "--json", "--after", told["after"]))
    assert (rest["seen"], rest["complete"]) == (4, True)
    assert told["deleted"] + rest["deleted"] == 5
    assert left() == {"new-1", "new-2"}


@pytest.mark.usefixtures("file")
def test_no_page_begins_after_its_time() -> None:
    result = onejob("purge", "--max-seconds", "0")
    assert (result.exit_code, result.stdout) == (0, "0 records seen, 0 deleted\n")
    assert result.stderr == "to go on: the same command\n"


@pytest.mark.usefixtures("file")
@pytest.mark.parametrize("seconds", ["1e15", "inf"])
def test_a_time_that_no_calendar_holds_is_refused(seconds: str) -> None:
    result = onejob("purge", "--max-seconds", seconds)
    assert result.exit_code == 2
    assert "max-seconds" in result.stderr


@pytest.mark.usefixtures("file")
def test_ctrl_c_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entrypoints.cli.commands.purge.purge.PAGE", 2)
    original, calls = Purge._page, []

    def interrupted(self: Purge, limit: int) -> Purged:
        calls.append(limit)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, limit)

    monkeypatch.setattr(Purge, "_page", interrupted)
    result = onejob("purge", "--json")
    (told,) = objects(result)
    assert (result.exit_code, told["seen"]) == (130, 4)
    assert "with --after" in result.stderr
    monkeypatch.undo()


def test_a_table_is_purged_too_whatever_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process():
        complete(dynamodb_store(SystemClock(), OVER), "1", "2")
        complete(dynamodb_store(SystemClock(), RETENTION), "3")
        assert onejob("purge", "--table", TABLE).stdout == "3 records seen, 2 deleted\n"
        with aws_requests(Scan=["denied"] * TRIES):
            monkeypatch.setattr("entrypoints.purging.FIRST_PAUSE", timedelta(0))
            refused = onejob("purge", "--table", TABLE)
    assert (refused.exit_code, f"Scan on {TABLE} is denied" in refused.stderr) == (1, True), refused.stderr


# The loop.


class Flaky(MemoryIdempotencyStore):
    """Fails so many times."""

    failures = 0

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("told to")
        return super().purge(after=after, limit=limit)


def test_a_page_that_fails_is_tried_again_with_backoff_and_then_told() -> None:
    clock = FakeClock()
    store = Flaky(clock, RETENTION)
    complete(store, "1", "2", "3")
    clock.advance(seconds=61)
    store.failures = TRIES - 1
    purge = Purge(admin=store, clock=clock, jitter=lambda: 0.0, page=2)
    purge.run()
    assert (purge.seen, purge.deleted, purge.is_complete) == (3, 3, True)
    assert [pause.total_seconds() for pause in clock.slept] == [0.1, 0.2, 0.4, 0.8]
    store.failures = TRIES
    purge = Purge(admin=store, clock=clock, jitter=lambda: 0.0, page=2, after="here")
    with pytest.raises(StoreUnavailableError):
        purge.run()
    assert (purge.after, purge.is_complete) == ("here", False)


def test_a_record_that_is_claimed_between_the_look_and_the_deletion_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    original, held = FencedDynamoDBPersistenceLayer.scan_items, []

    def scan(self: FencedDynamoDBPersistenceLayer, *arguments: Any) -> Any:
        page = original(self, *arguments)
        alive = dynamodb_store(SystemClock(), RETENTION)
        held.append(alive.claim(job("1"), owner="b", lease=timedelta(minutes=5)))
        return page

    with in_process():
        complete(dynamodb_store(SystemClock(), OVER), "1")
        monkeypatch.setattr(FencedDynamoDBPersistenceLayer, "scan_items", scan)
        assert onejob("purge", "--table", TABLE).stdout == "1 records seen, 0 deleted\n"
        assert isinstance(held[0], Acquired)
        found = dynamodb_store(SystemClock(), RETENTION).find(job("1").key)
    assert found is not None
    assert found.owner == "b"


# By schedule.


class Lambda:
    """A context, of which so much time is left at each question."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


class Passing(FakeClock):
    """Each look at it takes a second."""

    def now(self) -> Any:
        self.advance(seconds=1)
        return super().now()


@pytest.fixture
def clock() -> Passing:
    return Passing()


@pytest.fixture
def handle(clock: Passing) -> Iterator[cleanup.Handler]:
    """Over a table of 250 records, of which every other one is over."""
    with in_process():
        for numbers in batched(range(250), 25, strict=True):
            written: Any = [{"PutRequest": {"Item": _item(number)}} for number in numbers]
            boto3.client("dynamodb").batch_write_item(RequestItems={TABLE: written})
        container = Container()
        container.settings.override(Object(Settings(backend=Backend.DYNAMODB, table=TABLE)))
        container.clock.override(Object(clock))
        yield cleanup.make_handler(container)


def _item(number: int) -> Any:
    return {
        "id": {"S": str(job(str(number)).key)},
        "status": {"S": "COMPLETED"},
        "expiration": {"N": "9999999999" if number % 2 else "1"},
        "data": {"S": "1"},
    }


def logged(caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    (record,) = caplog.records
    return vars(record)


def test_the_clean_up_goes_to_the_end_and_says_what_it_did(
    handle: cleanup.Handler, caplog: pytest.LogCaptureFixture
) -> None:
    told = {"purged": 125, "seen": 250, "after": None}
    assert handle({"source": "aws.events"}, Lambda(900)) == told
    line = logged(caplog)
    assert {name: line.get(name) for name in told} == told
    assert (line["event"], line["levelname"]) == ("records_purged", "INFO")
    assert handle({}, Lambda(900)) == {"purged": 0, "seen": 125, "after": None}


ODD: list[Any] = [
    {"S": "2020-01-01T00:00:00Z"},
    {"B": b"1"},
    {"N": "1E120"},
    {"N": "-1"},
    {"NULL": True},
    {"BOOL": False},
    {"L": []},
    {"M": {}},
    {"NS": ["1"]},
]


@pytest.mark.parametrize("name", ["expiration", "in_progress_expiration"])
def test_items_of_others_stop_no_clean_up_and_stay(handle: cleanup.Handler, name: str) -> None:
    table = boto3.client("dynamodb")
    for number, odd in enumerate(ODD):
        for key in (f"order-{number}", str(job(f"order-{number}").key)):
            table.put_item(TableName=TABLE, Item=_item(0) | {"id": {"S": key}} | {name: odd})
    table.put_item(TableName=TABLE, Item={"id": {"S": "without anything"}})
    assert handle({}, Lambda(900)) == {
        "purged": 125 + NULL_LEASES[name],
        "seen": 250 + NULL_LEASES[name],
        "after": None,
    }
    assert table.scan(TableName=TABLE)["Count"] == 125 + 2 * len(ODD) + 1 - NULL_LEASES[name]


NULL_LEASES = {"expiration": 0, "in_progress_expiration": 2}
"""A completed record without a lease is one of Powertools."""


def test_the_clean_up_stops_before_its_margin_and_the_next_one_goes_on(
    handle: cleanup.Handler, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup, "PAGE", 100)
    first = handle({}, Lambda(7.5))
    assert 0 < first["purged"] < 125
    assert first["after"]
    line = logged(caplog)
    assert (line["event"], line["levelname"], line["after"]) == ("purge_unfinished", "WARNING", first["after"])
    rest = handle({"after": first["after"]}, Lambda(900))
    assert first["purged"] + rest["purged"] == 125
    assert (first["seen"] + rest["seen"], rest["after"]) == (250, None)


def test_a_clean_up_without_time_does_nothing(handle: cleanup.Handler) -> None:
    assert handle({}, Lambda(5)) == {"purged": 0, "seen": 0, "after": None}


def test_a_table_that_does_not_answer_is_an_error_that_alarms(handle: cleanup.Handler) -> None:
    with aws_requests(Scan=["throttled"] * TRIES), pytest.raises(StoreUnavailableError):
        handle({}, Lambda(900))


def test_the_handler_is_built_when_lambda_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    with in_process():
        monkeypatch.setenv("IDEMPOTENCY_BACKEND", "dynamodb")
        monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
        assert cleanup.handler({}, Lambda(900)) == {"purged": 0, "seen": 0, "after": None}
        vars(cleanup).pop("handler")
    with pytest.raises(AttributeError):
        cleanup.other  # noqa: B018


def test_the_scheduled_line_of_the_page_on_stores_purges_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.valkey import emptied, valkey_store

    with emptied() as server:
        monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", server.url)
        for name, retention in (("old", timedelta(seconds=-5)), ("new", timedelta(days=1))):
            with closing(valkey_store(server.port, SystemClock(), retention)) as store:
                store.claim(job(name), owner="a", lease=timedelta(microseconds=1))
        command = re.search(r"uv run onejob (purge .*)", (ROOT / "docs" / "stores.md").read_text())
        assert command is not None
        result = onejob(*command[1].split())
        assert (result.exit_code, result.stdout) == (0, "2 records seen, 1 deleted\n")
        assert server.client.keys("*") == [f"onejob:{job('new').key}"]
