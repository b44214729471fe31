"""`onejob doctor`: each thing that can be wrong is found, named, and given its fix."""

import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from adapters.stores.sqlite.database import MIGRATIONS, open_database
from adapters.system import SystemClock
from entrypoints.cli.commands.doctor.finding import Finding, Level
from entrypoints.cli.commands.doctor.table import table_findings
from tests.support.aws import TABLE, emulated
from tests.support.aws_faults import aws_requests
from tests.support.cli import objects, onejob
from tests.support.jobs import job
from tests.support.sqs_aws import Queues, make_queues

type Found = dict[str, Any]
DAY = 86_400
FIFO = {"FifoQueue": "true"}


@pytest.fixture
def queues() -> Iterator[Queues]:
    """As the stack makes them."""
    with emulated():
        made = make_queues(visibility=360)
        _set(made.dead_letter_url, MessageRetentionPeriod=str(14 * DAY))
        _set(made.url, MessageRetentionPeriod=str(7 * DAY), RedrivePolicy=_policy(made))
        boto3.client("dynamodb").update_time_to_live(
            TableName=TABLE, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expiration"}
        )
        yield made


def _set(url: str, **attributes: str) -> None:
    boto3.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=attributes)  # type: ignore[arg-type]


def _policy(queues: Queues, receives: int = 100) -> str:
    arn = queues.arn.rpartition(":")[0] + ":dead"
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})


def examined(queues: Queues, *more: str) -> tuple[int, list[Found]]:
    result = onejob(
        "doctor", "--json", "--table", TABLE, "--queue-url", queues.url,
        "--dead-letter-url", queues.dead_letter_url, *more,
    )  # fmt: skip
    return result.exit_code, objects(result)


def failing(found: list[Found]) -> list[tuple[str, str]]:
    return [(one["subject"], one["text"]) for one in found if one["level"] == "fail"]


def only_failure(queues: Queues, *more: str) -> Found:
    status, found = examined(queues, *more)
    (failure,) = [one for one in found if one["level"] == "fail"]
    assert status == 1
    assert failure["fix"]
    return failure


def test_what_is_as_it_should_be_fails_nothing(queues: Queues) -> None:
    status, found = examined(queues)
    assert (status, failing(found)) == (0, [])
    texts = {one["subject"]: one["text"] for one in found if one["level"] == "ok"}
    assert texts["region"].startswith("us-east-1, http://127.0.0.1")
    assert "account 000000000000" in texts["caller"]
    assert texts["TTL of records"] == "is ENABLED on expiration"
    assert texts["retention of records"] == "28 d, a message lives up to 21 d in both queues"


def test_for_people_a_line_each_and_a_sum(queues: Queues) -> None:
    _set(queues.url, RedrivePolicy=_policy(queues, 5))
    result = onejob("doctor", "--table", TABLE, "--queue-url", queues.url, "--dead-letter-url", queues.dead_letter_url)
    assert result.exit_code == 1
    *lines, summary = result.stdout.splitlines()
    assert "fail  queue jobs: maxReceiveCount 5. Mend: set maxReceiveCount to at least 20" in result.stdout
    assert {line.split()[0] for line in lines} == {"ok", "warn", "fail"}
    assert summary.startswith("1 failed, ")


def test_a_table_that_forgets_nothing_is_named(queues: Queues) -> None:
    boto3.client("dynamodb").update_time_to_live(
        TableName=TABLE, TimeToLiveSpecification={"Enabled": False, "AttributeName": "expiration"}
    )
    failure = only_failure(queues)
    assert (failure["subject"], "grows for ever" in failure["text"] or "DISABLED" in failure["text"]) == (
        "TTL of records",
        True,
    )
    assert "update-time-to-live --table-name records" in failure["fix"]


def test_a_ttl_on_another_attribute_forgets_nothing(queues: Queues) -> None:
    for enabled, attribute in ((False, "expiration"), (True, "ttl")):
        boto3.client("dynamodb").update_time_to_live(
            TableName=TABLE, TimeToLiveSpecification={"Enabled": enabled, "AttributeName": attribute}
        )
    assert only_failure(queues)["text"] == "is ENABLED on ttl"


def test_a_queue_that_gives_up_after_a_few_receives(queues: Queues) -> None:
    _set(queues.url, RedrivePolicy=_policy(queues, 19))
    assert only_failure(queues)["text"] == "maxReceiveCount 19"


def test_a_table_that_is_not_there_or_keyed_otherwise(queues: Queues) -> None:
    status, found = examined(queues, "--table", "elsewhere")
    assert status == 1
    assert any(
        subject == "table elsewhere" and "there is no table elsewhere" in text for subject, text in failing(found)
    )
    boto3.client("dynamodb").create_table(
        TableName="other",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    _, found = examined(queues, "--table", "other")
    assert ("table other", "key pk (S)") in failing(found)


@pytest.mark.parametrize(
    ("attributes", "text", "fix"),
    [
        ({"RedrivePolicy": ""}, "has no redrive policy", "RedrivePolicy"),
        ({"MessageRetentionPeriod": str(14 * DAY)}, "keeps letters 14 d, its source messages 14 d", "above"),
    ],
    ids=["no policy", "retention"],
)
def test_the_queue(queues: Queues, attributes: dict[str, str], text: str, fix: str) -> None:
    _set(queues.url, **attributes)
    failure = only_failure(queues)
    assert text in failure["text"]
    assert fix in failure["fix"]


def test_records_that_messages_outlive(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEMPOTENCY_EXPIRES_AFTER_SECONDS", str(20 * DAY))
    failure = only_failure(queues)
    assert failure["subject"] == "retention of records"
    assert str(21 * DAY) in failure["fix"]


def test_letters_that_wait_and_a_policy_of_their_own_are_warned_of(queues: Queues) -> None:
    queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody="{}")
    _set(queues.dead_letter_url, RedrivePolicy=json.dumps({"deadLetterTargetArn": queues.arn, "maxReceiveCount": 3}))
    status, found = examined(queues)
    warned = {one["text"]: one["fix"] for one in found if one["level"] == "warn"}
    assert status == 0
    assert "onejob dlq list" in warned["about 1 letters wait"]
    assert "has a redrive policy of its own: each look counts as a receive" in warned


def test_letters_that_somebody_holds_are_no_empty_queue(queues: Queues) -> None:
    queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody="{}")
    queues.receive(1, url=queues.dead_letter_url)
    _, found = examined(queues)
    assert "about 1 letters wait, all held by somebody" in [one["text"] for one in found]


def test_a_dead_letter_queue_that_is_not_said_or_another_one(queues: Queues) -> None:
    result = onejob("doctor", "--json", "--table", TABLE, "--queue-url", queues.url)
    assert [text for _, text in failing(objects(result))] == [
        "DEAD_LETTER_QUEUE_URL is not set: what is rejected comes back until SQS moves it, without its reason"
    ]
    other = queues.sqs.create_queue(QueueName="other", Attributes={"MessageRetentionPeriod": str(14 * DAY)})
    failure = only_failure(queues, "--dead-letter-url", other["QueueUrl"])
    assert failure["text"].startswith("the redrive policy names another one: arn:aws:sqs:")


def test_a_fifo_queue_with_a_standard_one_for_its_dead_letters(queues: Queues) -> None:
    fifo = queues.sqs.create_queue(
        QueueName="jobs.fifo",
        Attributes={"FifoQueue": "true", "MessageRetentionPeriod": str(7 * DAY), "RedrivePolicy": _policy(queues)},
    )
    failure = only_failure(queues, "--queue-url", fifo["QueueUrl"])
    assert failure["text"] == "is standard, its source is FIFO"


def test_a_missing_queue_is_named(queues: Queues) -> None:
    failure = only_failure(queues, "--queue-url", f"{queues.url}-2")
    assert failure["subject"] == "queue jobs-2"
    assert "there is no queue" in failure["text"]


def test_settings_that_cannot_be_used_are_told_first(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAX_ATTEMPTS", "many")
    failure = only_failure(queues)
    assert failure["subject"] == "settings"
    assert "MAX_ATTEMPTS='many'" in failure["text"]


def test_a_permission_that_is_missing_is_told(queues: Queues) -> None:
    with aws_requests(GetItem=["denied"], GetQueueAttributes=["denied"]):
        status, found = examined(queues)
    assert status == 1
    assert [subject for subject, _ in failing(found)] == ["reads of records", "queue jobs"]
    assert all("denied" in text for _, text in failing(found))


# The function.


@pytest.fixture
def function(queues: Queues) -> Queues:
    """A worker's function with its settings, and a mapping from the queue."""
    _function(queues)
    _mapping(queues, FunctionResponseTypes=["ReportBatchItemFailures"], ScalingConfig={"MaximumConcurrency": 10})
    return queues


def _function(queues: Queues, timeout: int = 60) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", "def handler(event, context): return None")
    boto3.client("lambda").create_function(
        FunctionName="worker",
        Runtime="python3.13",
        Role="arn:aws:iam::000000000000:role/worker",
        Handler="index.handler",
        Code={"ZipFile": code.getvalue()},
        Timeout=timeout,
        Environment={
            "Variables": {
                "IDEMPOTENCY_TABLE": TABLE,
                "IDEMPOTENCY_NAMESPACE": "billing",
                "DEAD_LETTER_QUEUE_URL": queues.dead_letter_url,
            }
        },
    )


def _mapping(queues: Queues, **options: Any) -> None:
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=queues.arn, FunctionName="worker", Enabled=False, **options
    )


def test_everything_is_read_from_the_function(function: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEMPOTENCY_TABLE", "of-another-shell")
    monkeypatch.setenv("IDEMPOTENCY_BACKEND", "sqlite")
    result = onejob("doctor", "--json", "--function", "worker")
    found = objects(result)
    assert (result.exit_code, failing(found)) == (0, [])
    texts = [one["text"] for one in found]
    assert "backend dynamodb, namespace billing" in texts
    assert "visibility timeout 360 s, worker takes up to 60 s" in texts
    assert "maximum concurrency 10" in texts
    (stopped,) = [one for one in found if "nothing is received" in one["text"]]
    assert (stopped["level"], stopped["fix"].endswith("--enabled")) == ("warn", True)


def test_a_visibility_shorter_than_six_time_outs(function: Queues) -> None:
    _set(function.url, VisibilityTimeout="359")
    found = objects(onejob("doctor", "--json", "--function", "worker"))
    assert failing(found) == [("queue jobs", "visibility timeout 359 s, worker takes up to 60 s")]
    assert "at least 360" in next(one["fix"] for one in found if one["level"] == "fail")


def test_a_mapping_that_deletes_what_failed(queues: Queues) -> None:
    _function(queues)
    _mapping(queues)
    found = objects(onejob("doctor", "--json", "--function", "worker"))
    (failure,) = [one for one in found if one["level"] == "fail"]
    assert failure["text"].startswith("answers nothing, batches of ")
    assert "--function-response-types ReportBatchItemFailures" in failure["fix"]
    assert any("no maximum concurrency" in one["text"] for one in found)


def test_a_function_that_nothing_feeds_or_that_is_not_there(queues: Queues) -> None:
    _function(queues)
    assert "no queue feeds it" in [
        text for _, text in failing(objects(onejob("doctor", "--json", "--function", "worker")))
    ]
    none = onejob("doctor", "--json", "--function", "none", "--table", TABLE)
    assert "function none" in [subject for subject, _ in failing(objects(none))]


def test_a_worker_that_was_stopped_by_reserved_concurrency_0(function: Queues) -> None:
    boto3.client("lambda").put_function_concurrency(FunctionName="worker", ReservedConcurrentExecutions=0)
    found = objects(onejob("doctor", "--json", "--function", "worker"))
    assert [text for _, text in failing(found)] == [
        "reserved concurrency is 0: each delivery is throttled and uses up a receive"
    ]


# A file.


def test_a_file_that_a_worker_would_refuse_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "records.sqlite"
    open_database(file).close()
    with monkeypatch.context() as patch:
        patch.setattr("entrypoints.cli.commands.doctor.file.remote_file_system", lambda path: "NFS")
        remote = objects(onejob("doctor", "--json", "--db", str(file)))
    assert "is on a network file system (NFS), which keeps no locks" in [one["text"] for one in remote]
    with monkeypatch.context() as patch:
        patch.setattr("os.geteuid", lambda: 12345)
        ((_, theirs),) = failing(objects(onejob("doctor", "--json", "--db", str(file))))
    assert theirs.startswith("belongs to another user")
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TRIGGER done AFTER INSERT ON record BEGIN DELETE FROM record; END")
    ((_, changed),) = failing(objects(onejob("doctor", "--json", "--db", str(file))))
    assert changed.startswith("has a schema that is not onejob's (trigger 'done')")


def test_a_file_is_sound_or_it_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    file = folder / "records.sqlite"
    missing = onejob("doctor", "--json", "--db", str(file))
    assert (missing.exit_code, objects(missing)[-1]["text"]) == (0, "is not there; the first run makes it")
    open_database(file).close()
    sound = onejob("doctor", "--json", "--db", str(file))
    assert (sound.exit_code, objects(sound)[-1]["text"]) == (0, "0 records")
    file.chmod(0o644)
    open_file = [one for one in objects(onejob("doctor", "--json", "--db", str(file))) if one["level"] == "warn"]
    assert [(one["text"], one["fix"]) for one in open_file] == [
        ("644: other users may look into it", f"chmod 600 {file}")
    ]
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")
    newer = onejob("doctor", "--json", "--db", str(file))
    assert newer.exit_code == 1
    assert failing(objects(newer)) == [(f"file {file}", f"schema 99, known are up to {len(MIGRATIONS)}")]
    file.write_bytes(b"no database" * 1000)
    broken = onejob("doctor", "--json", "--db", str(file))
    assert (broken.exit_code, failing(objects(broken))) == (1, [(f"file {file}", "file is not a database")])


# A server.


def test_a_server_answers_or_its_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.valkey import emptied  # which skips where there is no server

    with emptied() as server:
        monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", server.url)
        well = onejob("doctor", "--json", "--backend", "valkey")
    assert well.exit_code == 0
    assert [(one["level"], one["text"].partition(",")[0]) for one in objects(well)[-2:]] == [
        ("ok", "answers"),
        ("ok", "0 of 0 records looked at are over"),
    ]
    monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", "redis://:hunter2@127.0.0.1:1")
    gone = onejob("doctor", "--json", "--backend", "valkey")
    ((subject, text),) = failing(objects(gone))
    assert (gone.exit_code, subject) == (1, "store valkey")
    assert "IDEMPOTENCY_VALKEY_URL: ConnectionError" in text
    assert "hunter2" not in gone.output
    assert onejob("show", "1", "--backend", "valkey").exit_code == 2


@pytest.mark.parametrize(
    ("over", "kept", "level"),
    [(99, 0, "ok"), (100, 300, "ok"), (101, 300, "warn"), (100, 0, "warn")],
    ids=["few", "a quarter", "more than a quarter", "all"],
)
def test_a_server_that_nobody_purges_is_told(monkeypatch: pytest.MonkeyPatch, over: int, kept: int, level: str) -> None:
    from tests.support.valkey import emptied, valkey_store

    with emptied() as server:
        monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", server.url)
        for count, retention in ((over, timedelta(seconds=-5)), (kept, timedelta(days=1))):
            with closing(valkey_store(server.port, SystemClock(), retention)) as store:
                for number in range(count):
                    store.claim(job(f"{retention.days}-{number}"), owner="a", lease=timedelta(microseconds=1))
        finding = objects(onejob("doctor", "--json", "--backend", "valkey"))[-1]
        assert (finding["level"], finding["subject"]) == (level, "purge of valkey")
        assert finding["text"].startswith(f"{over} of {over + kept} records looked at are over")
        assert "onejob purge --backend valkey" in (finding["fix"] or finding["text"])
        assert server.client.dbsize() == over + kept, "nothing is changed"


def test_a_server_that_may_not_be_looked_through_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support.valkey import emptied

    with emptied() as server:
        server.client.acl_setuser(
            "worker", enabled=True, nopass=True, keys=["onejob:*"], commands=["+hgetall", "+info"]
        )
        monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", f"redis://worker:x@127.0.0.1:{server.port}")
        try:
            result = onejob("doctor", "--json", "--backend", "valkey")
        finally:
            server.client.acl_deluser("worker")
    finding = objects(result)[-1]
    assert (result.exit_code, finding["level"], finding["subject"]) == (0, "warn", "purge of valkey")
    assert "+scan" in finding["fix"]


def described(**more: Any) -> list[Finding]:
    """What is said of a table that DescribeTable answers so."""
    table = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "TableStatus": "ACTIVE",
        "DeletionProtectionEnabled": True,
        **more,
    }
    client = boto3.client("dynamodb", region_name="us-east-1", aws_access_key_id="t", aws_secret_access_key="t")
    with Stubber(client) as stub:
        stub.add_response("describe_table", {"Table": table})
        stub.add_response("describe_time_to_live", {"TimeToLiveDescription": {}})
        stub.add_response(
            "describe_continuous_backups", {"ContinuousBackupsDescription": {"ContinuousBackupsStatus": "ENABLED"}}
        )
        stub.add_response("get_item", {})
        stub.add_response("scan", {})
        return [one for one in table_findings(client, "records") if "global table" in one.text]


REPLICAS = [{"RegionName": "us-west-2", "ReplicaStatus": "ACTIVE"}, {"RegionName": "eu-west-1"}]


@pytest.mark.parametrize(
    "table",
    [
        {"Replicas": REPLICAS, "GlobalTableVersion": "2019.11.21"},
        {"Replicas": REPLICAS, "MultiRegionConsistency": "EVENTUAL"},
        {"GlobalTableVersion": "2017.11.29"},
    ],
)
def test_a_global_table_on_which_two_regions_can_both_claim_is_told(table: dict[str, Any]) -> None:
    (finding,) = described(**table)
    assert finding.level is Level.WARN
    assert "two regions can both claim a job" in finding.text
    assert ("eu-west-1, us-west-2" in finding.text) == ("Replicas" in table)
    assert "active-region" in finding.fix


def test_a_strongly_consistent_global_table_is_told_without_a_warning() -> None:
    (finding,) = described(Replicas=REPLICAS, MultiRegionConsistency="STRONG")
    assert (finding.level, "strongly consistent" in finding.text) == (Level.OK, True)


def test_of_a_table_in_one_region_nothing_is_said() -> None:
    assert described() == described(Replicas=[]) == []
