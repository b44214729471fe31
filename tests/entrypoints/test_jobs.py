"""`onejob show`, `list` and `forget`, over a file and over DynamoDB: what is told, and what is changed."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.system import SystemClock
from domain.answer import Answer
from domain.job import Job
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Claim
from entrypoints.cli.commands.jobs.jobs import moment
from entrypoints.cli.errors import UnusableOptionError
from tests.support.aws import TABLE, dynamodb_store, emulated
from tests.support.aws_faults import aws_requests
from tests.support.cli import objects, onejob
from tests.support.clock import FakeClock
from tests.support.jobs import job as job_of_test

RETENTION = timedelta(days=28)
LEASE = timedelta(minutes=5)


@pytest.fixture(params=["sqlite"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[IdempotencyStore]:
    """A store, and the environment that names it. What both can do stands in the contract of `StoreAdmin`."""
    if request.param == "sqlite":
        file = tmp_path / "records.sqlite"
        with closing(SQLiteIdempotencyStore(file, SystemClock(), RETENTION)) as made:
            monkeypatch.setenv("IDEMPOTENCY_DB", str(file))
            monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
            yield made
    elif request.param == "valkey":
        from tests.support.valkey import emptied, valkey_store  # which skips where there is no server

        with emptied() as server:
            monkeypatch.setenv("IDEMPOTENCY_BACKEND", "valkey")
            monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", server.url)
            monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
            yield valkey_store(server.port, SystemClock(), RETENTION)
    else:
        with emulated():
            monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
            monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
            yield dynamodb_store(SystemClock(), RETENTION)


def claimed(store: IdempotencyStore, job: Job, lease: timedelta = LEASE, owner: str = "worker-1") -> Claim:
    answer = store.claim(job, owner=owner, lease=lease)
    assert isinstance(answer, Acquired)
    return answer.claim


def completed(store: IdempotencyStore, job: Job) -> None:
    store.complete(claimed(store, job), Answer('{"card":"secret"}'))


def failed(store: IdempotencyStore, job: Job) -> None:
    store.release(claimed(store, job, owner="worker-2"), "ConnectionError")


def job(job_id: str = "1", tenant: str | None = None) -> Job:
    return job_of_test(job_id, **({} if tenant is None else {"tenant": tenant}))


def shown(*arguments: str) -> dict[str, object]:
    (found,) = objects(onejob("show", "--json", *arguments))
    return found


def test_a_completed_job_is_shown_and_its_answer_only_if_asked_for(store: IdempotencyStore) -> None:
    completed(store, job())
    result = onejob("show", "1")
    assert result.exit_code == 0
    assert "secret" not in result.output
    facts = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    assert facts["status"].strip() == "completed: a delivery is answered from here"
    assert (facts["job"].strip(), facts["attempts"].strip(), facts["epoch"].strip()) == ("1", "1", "1")
    assert facts["key"].strip() == str(job().key)
    assert facts["last seen"].strip().endswith(" s ago)")
    assert "secret" in onejob("show", "1", "--show-payload").stdout
    assert "answer" not in shown("1")
    assert shown("1", "--show-payload")["answer"] == '{"card":"secret"}'


@pytest.mark.parametrize("store", ["sqlite", "dynamodb", "valkey"], indirect=True)
def test_each_state_has_its_word(store: IdempotencyStore) -> None:
    claimed(store, job("running"))
    claimed(store, job("lapsed"), timedelta(milliseconds=-10))
    failed(store, job("released"))
    assert [shown(name)["status"] for name in ("running", "lapsed", "released")] == ["running", "lapsed", "released"]
    running = shown("running")
    assert datetime.fromisoformat(str(running["lease_until"])) > datetime.now(UTC)
    assert running["owner"] == "worker-1"
    assert shown("released")["last_error"] == "ConnectionError"
    assert shown("released")["lease_until"] is None


def test_a_tenant_and_an_operation_are_part_of_who_it_is(store: IdempotencyStore) -> None:
    completed(store, job("1", tenant="acme"))
    assert onejob("show", "1").exit_code == 1
    assert shown("1", "--tenant", "acme")["key"] == str(job("1", tenant="acme").key)
    missing = onejob("show", "1", "--tenant", "acme", "--operation", "charge")
    assert missing.exit_code == 1
    assert "no record of that job" in missing.stderr
    assert "test.charge#" in missing.stderr


@pytest.mark.parametrize("store", ["sqlite", "dynamodb", "valkey"], indirect=True)
def test_a_list_of_some_states_and_times(store: IdempotencyStore) -> None:
    completed(store, job("done"))
    failed(store, job("failed"))
    claimed(store, job("running"))
    assert {one["job_id"] for one in objects(onejob("list", "--json"))} == {"done", "failed", "running"}
    picked = objects(onejob("list", "--json", "--status", "released", "--status", "running"))
    assert {one["job_id"] for one in picked} == {"failed", "running"}
    assert len(objects(onejob("list", "--json", "--since", "1h"))) == 3
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert objects(onejob("list", "--json", "--since", later)) == []
    assert len(objects(onejob("list", "--json", "--limit", "2"))) == 2
    assert objects(onejob("list", "--json", "--namespace", "other")) == []
    header, *lines = onejob("list", "--status", "completed").stdout.splitlines()
    assert header.split() == ["STATUS", "ATTEMPTS", "EPOCH", "LAST", "SEEN", "OPERATION", "JOB"]
    assert [line.split()[0] for line in lines] == ["completed"]
    assert lines[0].endswith(" done")


# Forgetting.


@pytest.mark.parametrize("store", ["sqlite", "dynamodb", "valkey"], indirect=True)
def test_a_forgotten_job_runs_again_under_another_epoch_and_the_audit_says_who(store: IdempotencyStore) -> None:
    completed(store, job())
    result = onejob("forget", "1", "--yes")
    assert result.exit_code == 0, result.output
    assert "epoch 2" in result.stdout.splitlines()[-1]
    (line,) = result.stderr.splitlines()
    audited = json.loads(line)
    assert (audited["event"], audited["job_id"], audited["key"]) == ("job_forgotten", "1", str(job().key))
    assert (audited["before"]["status"], audited["before"]["epoch"]) == ("completed", 1)
    assert audited["after"] | {"last_seen": ""} == {"status": "released", "epoch": 2, "attempts": 1, "last_seen": ""}
    assert ("arn:aws:" in audited["who"]) is isinstance(store, DynamoDBIdempotencyStore)
    again = claimed(store, job())
    assert (again.attempt, again.epoch) == (2, 2)


def test_it_asks_first_and_no_answer_is_no(store: IdempotencyStore) -> None:
    completed(store, job())
    for given in ("n\n", ""):
        refused = onejob("forget", "1", given=given)
        assert refused.exit_code == 1
        assert "nothing is done" in refused.stderr
    assert shown("1")["epoch"] == 1
    assert onejob("forget", "1", given="y\n").exit_code == 0
    assert shown("1")["epoch"] == 2


def test_a_live_lease_is_refused_unless_forced(store: IdempotencyStore) -> None:
    held = claimed(store, job())
    refused = onejob("forget", "1", "--yes")
    assert refused.exit_code == 1
    assert "it is running: a worker holds it until" in refused.stderr
    store.renew(held, LEASE)
    assert onejob("forget", "1", "--yes", "--force").exit_code == 0
    assert claimed(store, job()).attempt == 2


@pytest.mark.parametrize("force", [[], ["--force"]], ids=["", "force"])
def test_what_changed_since_it_was_shown_is_not_forgotten(
    store: IdempotencyStore, monkeypatch: pytest.MonkeyPatch, force: list[str]
) -> None:
    failed(store, job())

    def agree(*_: object, **__: object) -> bool:
        completed(store, job())
        return True

    monkeypatch.setattr("typer.confirm", agree)
    result = onejob("forget", "1", *force)
    assert result.exit_code == 1
    assert "somebody changed it since it was shown" in result.stderr
    assert "job_forgotten" not in result.stderr
    assert shown("1")["status"] == "completed"


def test_a_job_of_nobody_and_an_impossible_one(store: IdempotencyStore) -> None:
    assert onejob("forget", "none", "--yes").exit_code == 1
    impossible = onejob("show", " 1")
    assert (impossible.exit_code, "invalid_job_id" in impossible.stderr) == (2, True)


def test_where_the_answer_was_lost_it_is_not_said_that_nothing_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    with emulated():
        monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
        monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
        completed(dynamodb_store(SystemClock(), RETENTION), job())
        with aws_requests(UpdateItem=["lost"]):
            result = onejob("forget", "1", "--yes")
        assert result.exit_code == 1
        audited, told = result.stderr.splitlines()
        assert json.loads(audited)["event"] == "job_forget_uncertain"
        assert "perhaps it is done all the same" in told
        assert shown("1")["epoch"] == 2


# Settings.


def test_a_store_that_is_not_said_or_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unsaid = onejob("show", "1")
    assert (unsaid.exit_code, "IDEMPOTENCY_BACKEND is not set" in unsaid.stderr) == (2, True)
    memory = onejob("show", "1", "--backend", "memory")
    assert (memory.exit_code, "--table NAME or --db FILE" in memory.stderr) == (2, True)
    missing = onejob("list", "--db", "none.sqlite")
    assert (missing.exit_code, "none.sqlite: there is no such file" in missing.stderr) == (2, True)
    assert not Path("none.sqlite").exists()


def test_a_table_that_is_not_there_is_named() -> None:
    with emulated():
        result = onejob("show", "1", "--table", "elsewhere")
    assert (result.exit_code, "there is no elsewhere" in result.stderr) == (1, True), result.stderr


def test_times_are_read_as_typed() -> None:
    now = FakeClock().now()
    assert moment("90m", now) == now - timedelta(minutes=90)
    assert moment("2026-01-31T08:00Z", now) == moment("2026-01-31T08:00", now) == datetime(2026, 1, 31, 8, tzinfo=UTC)
    with pytest.raises(UnusableOptionError, match="--since yesterday"):
        moment("yesterday", now)
