"""`onejob dlq redrive`: what is on record decides, nothing is lost however it ends, and a job still runs once."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adapters.sqs.dead_letter_queue import DeadLetterQueue
from adapters.sqs.redrive import repeat_id, source_urls
from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
from adapters.system import SystemClock
from domain.attempt import Attempt
from domain.job import Job
from domain.operation import Operation, Operations
from domain.record import Record
from tests.support.aws import dynamodb_store, in_process
from tests.support.aws_faults import AwsFault, aws_requests
from tests.support.cli import objects, onejob
from tests.support.jobs import job
from tests.support.redriven import World, redriven_world
from tests.support.sqs_aws import make_queues
from tests.support.worker import handler

ROOT = Path(__file__).parents[2]
DAY = timedelta(days=1)


@pytest.fixture(params=[False], ids=["standard"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with redriven_world(fifo=request.param) as made:
        yield made


def test_a_failed_job_runs_again_and_its_age_is_kept(world: World) -> None:
    world.dead_letter('{"job_id":"1"}')
    (before,) = objects(onejob("dlq", "list", "--json"))
    status, (row,) = world.redrive("--all")
    assert (status, row["verdict"], row["sent"], row["forgotten"]) == (0, "runs", True, False)
    assert world.letters == (0, 0)
    (message,) = world.queues.receive(1)
    note = json.loads(message["MessageAttributes"]["onejob"]["StringValue"])
    assert datetime.fromtimestamp(note["first_sent"] // 1000, UTC) == datetime.fromisoformat(before["first_sent"])
    assert world.queues.invoke(world.handle, [message]) == []
    assert world.ran == [("#charge", 2)]


def test_what_sqs_moved_gets_its_age_with_it_and_keeps_its_attributes(world: World) -> None:
    trace: Any = {"trace": {"DataType": "String", "StringValue": "t-1"}}
    world.queues.sqs.send_message(
        QueueUrl=world.queues.dead_letter_url, MessageBody='{"job_id":"1"}', MessageAttributes=trace
    )
    (before,) = objects(onejob("dlq", "list", "--json"))
    assert world.redrive("--all")[0] == 0
    (message,) = world.queues.receive(1)
    note = json.loads(message["MessageAttributes"]["onejob"]["StringValue"])
    assert datetime.fromtimestamp(note["first_sent"] // 1000, UTC) == datetime.fromisoformat(before["first_sent"])
    assert message["MessageAttributes"]["trace"]["StringValue"] == "t-1"


def test_a_completed_job_is_answered_and_that_is_said(world: World) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    status, (row,) = world.redrive("--all")
    assert (status, row["verdict"], row["sent"]) == (0, "answered", True)
    assert "answered from the record" in row["explanation"]
    world.work()
    assert len(world.ran) == 1
    assert world.letters == (0, 0)


def test_with_force_a_completed_job_runs_in_another_epoch_and_it_is_audited(world: World) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["verdict"], row["forgotten"]) == (0, "runs", True)
    (line,) = world.stderr.splitlines()
    audited = json.loads(line)
    assert (audited["event"], audited["job_id"], audited["after"]["epoch"]) == ("job_forgotten", "1", 2)
    assert audited["message_id"] == row["message_id"]
    world.work()
    assert world.ran == [("#charge", 1), ("#2#charge", 2)]


def test_what_is_older_than_records_are_kept_is_left_unless_forced(world: World) -> None:
    world.broken = False
    world.letter('{"job_id":"1"}', datetime.now(UTC) - 29 * DAY)
    status, (row,) = world.redrive("--all")
    assert (status, row["verdict"], row["sent"]) == (1, "stale_redrive", False)
    assert world.letters == (1, 0)
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["sent"]) == (0, True)
    world.work()
    assert world.ran == [("#charge", 1)]
    assert world.letters == (0, 0)


def test_what_has_no_job_or_another_payload_is_left(world: World) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1","n":1}')
    world.letter('{"job_id":"1","n":2}')
    world.letter("nonsense")
    status, rows = world.redrive("--all")
    assert (status, {row["verdict"] for row in rows}) == (1, {"payload_mismatch", "no_job"})
    assert world.letters == (2, 0)
    assert world.queues.counts() == (0, 0)
    status, rows = world.redrive("--all", "--force")
    assert (status, {(row["verdict"], row["forgotten"]) for row in rows}) == (0, {("runs", True), ("no_job", False)})
    world.work(2)
    assert len(world.ran) == 2
    assert [row["reason"] for row in objects(onejob("dlq", "list", "--json"))] == ["not_json"]


def test_a_record_that_somebody_changed_meanwhile_is_not_forgotten_and_its_letter_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    original = DynamoDBStoreAdmin.forget

    def forget(self: DynamoDBStoreAdmin, seen: Record, *, force: bool = False) -> Record:
        original(self, seen)  # somebody else was quicker
        return original(self, seen, force=force)

    monkeypatch.setattr(DynamoDBStoreAdmin, "forget", forget)
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["sent"], row["forgotten"]) == (1, False, False)
    assert "changed since it was shown" in row["explanation"]
    assert world.letters == (1, 0)


def test_a_lease_that_runs_is_never_taken_by_force(world: World) -> None:
    dynamodb_store(SystemClock(), 28 * DAY).claim(job("1"), owner="other", lease=timedelta(minutes=5))
    world.letter('{"job_id":"1"}')
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["verdict"], row["forgotten"], row["sent"]) == (0, "waits", False, True)


def test_a_dry_run_tells_all_and_does_nothing(world: World) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    status, (row,) = world.redrive("--all", "--force", "--dry-run")
    assert (status, row["verdict"], row["sent"], row["forgotten"]) == (0, "runs", False, False)
    assert world.letters == (1, 0)
    assert world.queues.counts() == (0, 0)
    assert objects(onejob("show", "1", "--json"))[0]["epoch"] == 1


def test_letters_are_picked_by_job_and_reason_and_number(world: World) -> None:
    for number in range(4):
        world.letter(f'{{"job_id":"{number}"}}', reason="odd" if number % 2 else "even")
    assert [row["job_id"] for row in world.redrive("--job-id", "2")[1]] == ["2"]
    assert [row["job_id"] for row in world.redrive("--reason", "odd", "--job-id", "3")[1]] == ["3"]
    assert len(world.redrive("--all", "--max", "1")[1]) == 1
    assert world.letters == (1, 0)
    assert world.queues.counts() == (3, 0)
    nothing = onejob("dlq", "redrive", "--job-id", "none")
    assert (nothing.exit_code, nothing.stdout) == (1, "no such letters\n")


def test_for_people_a_table_and_a_sum(world: World) -> None:
    world.dead_letter('{"job_id":"1","card":"secret"}')
    result = onejob("dlq", "redrive", "--all")
    _, row, summary = result.stdout.splitlines()
    assert row.split() == ["1", "default", "broken", "runs", "again"]
    sent = f"1 message of 1 job sent to {world.queues.url}"
    assert summary == f"{sent}: 1 job redriven, 0 answered, 0 waiting; 0 messages left"
    assert "secret" not in result.output


def test_one_that_is_buried_again_meanwhile_is_not_sent_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.dead_letter('{"job_id":"1"}')
    world.broken = True
    original = DeadLetterQueue.delete

    def delete(self: DeadLetterQueue, letter: Any) -> None:
        original(self, letter)
        world.work()  # and the worker buries it at once

    monkeypatch.setattr(DeadLetterQueue, "delete", delete)
    status, rows = world.redrive("--all")
    assert (status, [row["verdict"] for row in rows]) == (1, ["runs", "came_back"])
    assert world.letters == (1, 0)


def test_by_force_a_job_with_two_letters_runs_once_more_and_not_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    original = DeadLetterQueue.delete

    def delete(self: DeadLetterQueue, letter: Any) -> None:
        original(self, letter)
        world.work()  # the worker is quicker than the next letter

    monkeypatch.setattr(DeadLetterQueue, "delete", delete)
    status, rows = world.redrive("--all", "--force")
    assert (status, [row["verdict"] for row in rows]) == (0, ["runs", "answered"])
    assert world.ran == [("#charge", 1), ("#2#charge", 2)]


# Whatever goes wrong on the way.


def test_a_store_that_does_not_answer_stops_it_and_everything_is_put_back(world: World) -> None:
    world.letter('{"job_id":"1"}')
    with aws_requests(GetItem=["denied"]):
        result = onejob("dlq", "redrive", "--all")
    assert result.exit_code == 1
    assert "GetItem on the table of records is denied" in result.stderr
    assert world.letters == (1, 0)
    assert world.queues.counts() == (0, 0)


def test_an_answer_that_was_lost_leaves_the_letter_and_the_job_runs_once(world: World) -> None:
    world.dead_letter('{"job_id":"1"}')
    with aws_requests(SendMessage=["lost"]) as requests:
        result = onejob("dlq", "redrive", "--all")
    assert (result.exit_code, requests.count["SendMessage"]) == (1, 1)
    assert "perhaps sent too: run again" in result.stderr
    assert world.letters == (1, 0)
    assert world.redrive("--all")[0] == 0
    world.work(2)
    assert world.ran == [("#charge", 2)]


def test_ctrl_c_puts_back_what_is_not_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.letter('{"job_id":"1"}')
    world.letter('{"job_id":"2"}')
    original, calls = DeadLetterQueue.delete, []

    def delete(self: DeadLetterQueue, letter: Any) -> None:
        original(self, letter)
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(DeadLetterQueue, "delete", delete)
    assert onejob("dlq", "redrive", "--all").exit_code == 130
    assert world.letters == (1, 0)
    assert world.queues.counts() == (1, 0)


KILLED = """
import os, signal
from adapters.sqs import dead_letter_queue
dead_letter_queue.HOLD_SECONDS, dead_letter_queue.LOOK_SECONDS = 1, 0
dead_letter_queue.DeadLetterQueue.delete = lambda self, letter: os.kill(os.getpid(), signal.SIGKILL)
from entrypoints.cli.app import app
app(["dlq", "redrive", "--all"])
"""


def test_killed_between_send_and_delete_a_letter_is_doubled_and_never_lost_and_its_job_runs_once(
    world: World,
) -> None:
    world.dead_letter('{"job_id":"1"}')
    killed = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, env={**os.environ, "PYTHONPATH": "src"}, capture_output=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert world.queues.counts() == (1, 0)
    deadline = time.monotonic() + 10
    while world.letters != (1, 0):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert world.redrive("--all")[0] == 0
    world.work(2)
    assert world.ran == [("#charge", 2)]
    assert (world.letters, world.queues.counts()) == ((0, 0), (0, 0))


@pytest.mark.parametrize("world", [True], indirect=True, ids=["fifo"])
def test_a_fifo_queue_gets_it_in_its_group_under_another_deduplication_id(world: World) -> None:
    world.dead_letter('{"job_id":"1"}', MessageGroupId="group-7", MessageDeduplicationId="d-1")
    assert world.redrive("--all")[0] == 0
    (message,) = world.queues.receive(1)
    assert message["Attributes"]["MessageGroupId"] == "group-7"
    assert message["Attributes"]["MessageDeduplicationId"].startswith("redrive-")
    world.queues.invoke(world.handle, [message])
    assert world.ran == [("#charge", 2)]


@pytest.mark.parametrize("world", [True], indirect=True, ids=["fifo"])
def test_a_group_of_more_letters_than_one_request_brings_is_sent_whole_and_in_order(world: World) -> None:
    for number in range(12):
        body = f'{{"job_id":"{number:02}"}}'
        ids: dict[str, Any] = {"MessageGroupId": "g", "MessageDeduplicationId": str(number)}
        world.queues.sqs.send_message(QueueUrl=world.queues.dead_letter_url, MessageBody=body, **ids)
    status, rows = world.redrive("--all")
    assert (status, [row["job_id"] for row in rows]) == (0, [f"{number:02}" for number in range(12)])
    assert world.queues.counts() == (12, 0)


@pytest.mark.parametrize("world", [True], indirect=True, ids=["fifo"])
def test_by_force_again_within_five_minutes_a_letter_is_sent_again_and_not_dropped(world: World) -> None:
    """SQS drops what has the deduplication id of a message that it took lately, and answers as if it took it."""
    world.broken = False
    world.dead_letter('{"job_id":"1"}', MessageGroupId="g", MessageDeduplicationId="d-1")
    world.letter('{"job_id":"1"}')
    for epoch in (2, 3, 4):
        with aws_requests(DeleteMessage=["denied"]):
            assert world.redrive("--all", "--force")[0] == 1
        assert world.queues.counts() == (1, 0), f"sent, and its letter could not be deleted: epoch {epoch}"
        world.work()
        assert (len(world.ran), world.letters) == (epoch, (1, 0))
    assert world.redrive("--all", "--force")[0] == 0
    world.work()
    assert [key for key, _ in world.ran] == ["#charge", "#2#charge", "#3#charge", "#4#charge", "#5#charge"]
    assert world.letters == (0, 0)


@pytest.mark.parametrize("world", [True], indirect=True, ids=["fifo"])
def test_a_job_that_was_forgotten_by_hand_since_is_not_lost_either(world: World) -> None:
    world.broken = False
    world.letter('{"job_id":"1"}')
    with aws_requests(DeleteMessage=["denied"]):
        assert world.redrive("--all")[0] == 1
    world.work()
    assert onejob("forget", "1", "--yes").exit_code == 0
    assert world.redrive("--all")[0] == 0
    world.work()
    assert world.ran == [("#charge", 1), ("#2#charge", 2)]


@pytest.mark.parametrize("world", [True], indirect=True, ids=["fifo"])
def test_a_send_that_sqs_dropped_is_not_believed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.broken = False
    world.letter('{"job_id":"1"}')
    original, deleted = DeadLetterQueue.letters, []
    monkeypatch.setattr(DeadLetterQueue, "letters", lambda box: (letter for letter in original(box) for _ in range(2)))
    monkeypatch.setattr(DeadLetterQueue, "delete", lambda _, letter: deleted.append(letter))
    status, rows = world.redrive("--all")
    assert (status, [(row["verdict"], row["sent"]) for row in rows]) == (1, [("runs", True), ("deduplicated", False)])
    assert "SQS took it for one that was sent before" in rows[1]["explanation"]
    assert (len(deleted), world.queues.counts()) == (1, (1, 0))


def test_a_deduplication_id_is_one_that_sqs_takes() -> None:
    longest = repeat_id("m" * 100, 10**16 - 1)
    odd = repeat_id("ü m", 1)
    assert repeat_id("m1", 2) == "redrive-m1-2"
    assert all(re.fullmatch(r"[!-~]{1,128}", each) for each in (longest, odd, repeat_id("m" * 200, 1)))
    assert odd != repeat_id("ü m", 2)


TERMINATED = """
import os, signal
from adapters.sqs import dead_letter_queue
from entrypoints.cli import app
dead_letter_queue.LOOK_SECONDS = 0
original = dead_letter_queue.DeadLetterQueue.letters
def terminated(self):
    yield next(original(self))
    os.kill(os.getpid(), signal.SIGTERM)
dead_letter_queue.DeadLetterQueue.letters = terminated
import sys
sys.argv = ["onejob", "dlq", *sys.argv[1:]]
app.main()
"""


def test_sigterm_puts_back_what_is_not_sent(world: World) -> None:
    world.letter('{"job_id":"1"}')
    world.letter('{"job_id":"2"}')
    terminated = subprocess.run(
        [sys.executable, "-c", TERMINATED, "redrive", "--job-id", "none"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "src"},
        capture_output=True,
    )
    assert terminated.returncode == 143, terminated.stderr
    assert world.letters == (2, 0)


# Where to.


def test_the_sources_are_known_by_their_redrive_policies_and_no_other_queue_gets_letters() -> None:
    with in_process():
        queues = make_queues()
        assert source_urls(queues.sqs, queues.dead_letter_url) == []
        arn = queues.arn.rpartition(":")[0] + ":dead"
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 100})
        queues.sqs.set_queue_attributes(QueueUrl=queues.url, Attributes={"RedrivePolicy": policy})
        assert source_urls(queues.sqs, queues.dead_letter_url) == [queues.url]
        other = queues.sqs.create_queue(QueueName="other")["QueueUrl"]
        stale = onejob("dlq", "redrive", "--all", "--dead-letter-url", queues.dead_letter_url, "--queue-url", other)
        assert (stale.exit_code, f"here come those of {queues.url}" in stale.stderr) == (2, True)
        queues.sqs.set_queue_attributes(QueueUrl=other, Attributes={"RedrivePolicy": policy})
        assert set(source_urls(queues.sqs, queues.dead_letter_url)) == {queues.url, other}


def test_a_source_that_is_not_known_is_to_be_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUEUE_URL")
    unknown = onejob("dlq", "redrive", "--all")
    assert (unknown.exit_code, "--queue-url says where" in unknown.stderr) == (2, True)


def test_the_record_is_that_of_the_operation_that_the_worker_runs(world: World) -> None:
    """Of two workers on one table, each with a job of that id, the other's record is not to be forgotten."""
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}')
    mine = ("--operation", "tests.entrypoints.test_dlq_redrive:bill")
    status, (row,) = world.redrive("--all", "--force", *mine)
    assert (status, row["operation"], row["verdict"], row["forgotten"]) == (0, "bill", "runs", False)
    assert objects(onejob("show", "1", "--json"))[0]["status"] == "completed"


def test_a_letter_that_says_its_operation_needs_no_option(world: World) -> None:
    world.broken = False
    world.dead_letter('{"job_id":"1"}')
    world.letter('{"job_id":"1"}', operation="bill")
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["operation"], row["verdict"], row["forgotten"]) == (0, "bill", "runs", False)
    assert objects(onejob("show", "1", "--json"))[0]["status"] == "completed"


@pytest.mark.parametrize(
    "note",
    [
        '{"operation":"bill"}',
        '{"reason":"broken","operation":"bill","first_sent":1}',
        '{"operation":"bill","mac":"00000000000000000000000000000000"}',
        '{"operation":"bill","mac":7}',
    ],
)
def test_a_note_that_no_worker_wrote_chooses_no_operation_and_has_no_record_forgotten(world: World, note: str) -> None:
    bills = World(world.queues)
    bills.broken = False
    world.queues.send('{"job_id":"1","operation":"bill"}')
    known = Operations(Operation("default", world.run), Operation("bill", bills.run))
    handle = handler(known=known, clock=SystemClock(), dead_letter_queue_url=world.queues.dead_letter_url)
    assert world.queues.invoke(handle, world.queues.receive(1)) == []
    world.forged('{"job_id":"1"}', note)
    status, (row,) = world.redrive("--all", "--force")
    assert (status, row["operation"], row["forgotten"], row["reason"]) == (0, "default", False, None)
    assert row["claim"]["operation"] == "bill"
    assert objects(onejob("show", "1", "--operation", "bill", "--json"))[0]["status"] == "completed"


def test_a_note_of_another_message_is_a_claim_too(world: World) -> None:
    """A note tells of the body that it was written for: it cannot be copied to another job's message."""
    world.letter('{"job_id":"1"}', operation="bill")
    (letter,) = world.queues.receive(1, url=world.queues.dead_letter_url)
    note = letter["MessageAttributes"]["onejob"]["StringValue"]
    world.queues.sqs.delete_message(QueueUrl=world.queues.dead_letter_url, ReceiptHandle=letter["ReceiptHandle"])
    world.forged('{"job_id":"2"}', note)
    (row,) = objects(onejob("dlq", "list", "--json"))
    assert (row["operation"], row["reason"], row["claim"]["operation"]) == ("default", None, "bill")


def test_a_claimed_reason_is_not_picked_as_a_workers(world: World) -> None:
    world.forged('{"job_id":"1"}', '{"reason":"broken"}')
    nothing = onejob("dlq", "redrive", "--reason", "broken", "--force")
    assert (nothing.exit_code, nothing.stdout) == (1, "no such letters\n")
    assert "claims broken" in onejob("dlq", "list").stdout
    assert len(world.redrive("--reason", "claims broken")[1]) == 1


def test_an_age_that_a_producer_claims_makes_no_fresh_job_stale(world: World) -> None:
    world.broken = False
    old = round((datetime.now(UTC) - 40 * DAY).timestamp() * 1000)
    attribute: Any = {"onejob": {"DataType": "String", "StringValue": json.dumps({"first_sent": old})}}
    world.queues.send('{"job_id":"1"}', MessageAttributes=attribute)
    world.work()
    assert world.ran == [("#charge", 1)]
    world.forged('{"job_id":"2"}', json.dumps({"first_sent": old}))
    status, (row,) = world.redrive("--all")
    assert (status, row["verdict"], row["sent"]) == (0, "runs", True)
    world.work()
    assert (len(world.ran), world.letters) == (2, (0, 0))


# Which job.


def of_tenants(world: World) -> None:
    """One id, four jobs: of no tenant, of a, of b (completed), and of another operation."""
    world.broken = False
    world.dead_letter('{"job_id":"1","tenant":"b"}')
    for whose in ("", ',"tenant":"a"', ',"tenant":"b"', ',"operation":"bill"'):
        world.letter(f'{{"job_id":"1"{whose}}}', operation="bill" if "bill" in whose else "default")


def test_an_id_is_that_of_one_job_and_never_of_every_tenants(world: World) -> None:
    of_tenants(world)
    status, (row,) = world.redrive("--job-id", "1", "--force")
    assert (status, row["tenant"], row["operation"], row["forgotten"]) == (0, None, "default", False)
    assert objects(onejob("show", "1", "--tenant", "b", "--json"))[0]["status"] == "completed"
    assert world.letters == (3, 0)


@pytest.mark.parametrize(
    ("named", "wanted"),
    [
        (("--job-id", "1", "--tenant", "a"), {("a", "default")}),
        (("--job-id", "1", "--operation", "bill"), {(None, "bill")}),
        (("--job-id", "1", "--operation", "bill", "--tenant", "a"), set()),
        (("--all", "--operation", "bill"), {(None, "bill")}),
        (("--all", "--tenant", "b"), {("b", "default")}),
        (("--all", "--operation", "default"), {(None, "default"), ("a", "default"), ("b", "default")}),
        (("--all",), {(None, "default"), ("a", "default"), ("b", "default"), (None, "bill")}),
    ],
)
def test_a_job_is_named_as_show_names_it(world: World, named: tuple[str, ...], wanted: set[Any]) -> None:
    of_tenants(world)
    rows = world.redrive("--dry-run", *named)[1]
    assert {(row["tenant"], row["operation"]) for row in rows} == wanted
    listed = objects(onejob("dlq", "list", "--json", *(one for one in named if one != "--all")))
    assert {(row["tenant"], row["operation"]) for row in listed} == wanted


def test_an_id_is_found_in_whatever_form_it_is_typed(world: World) -> None:
    world.letter('{"job_id":"caf\u00e9","tenant":"\u00fc"}')
    named = ("--job-id", "cafe\u0301", "--tenant", "u\u0308")
    assert len(objects(onejob("dlq", "list", "--json", *named))) == 1
    assert len(world.redrive(*named)[1]) == 1
    for command in ("list", "redrive"):
        refused = onejob("dlq", command, "--job-id", " 1")
        assert (refused.exit_code, "invalid_job_id" in refused.stderr) == (2, True)


def test_letters_that_name_no_operation_are_not_taken_for_the_one_that_is_asked_for(world: World) -> None:
    world.queues.sqs.send_message(QueueUrl=world.queues.dead_letter_url, MessageBody='{"job_id":"1"}')
    status, rows = world.redrive("--all", "--operation", "bill")
    assert (status, rows) == (1, [])
    assert "1 letters name no operation" in world.stderr
    assert [row["operation"] for row in world.redrive("--all", "--name", "bill")[1]] == ["bill"]


def test_jobs_and_messages_are_counted_apart_and_a_job_of_three_letters_runs_once(world: World) -> None:
    world.dead_letter('{"job_id":"done"}')
    world.broken = False
    world.queues.send('{"job_id":"done"}')
    world.work()
    for job_id in ("1", "1", "1", "done"):
        world.letter(f'{{"job_id":"{job_id}"}}')
    world.letter('{"job_id":"1","n":2}')
    world.letter("nonsense")
    assert onejob("dlq", "list").stdout.splitlines()[-1].startswith("7 messages of 2 jobs, 1 without a job: ")
    dry = onejob("dlq", "redrive", "--all", "--dry-run").stdout.splitlines()[-1]
    status, rows = world.redrive("--all")
    verdicts = sorted(row["verdict"] for row in rows if row["job_id"] == "1")
    assert status == 1
    assert verdicts in (["payload_mismatch", "repeated", "repeated", "runs"], ["payload_mismatch"] * 3 + ["runs"])
    assert "of 2 jobs would be sent" in dry
    assert "1 job redriven, 1 answered, 0 waiting" in dry


def bill(job: Job, attempt: Attempt) -> object:
    return f"{job.job_id} {attempt.number}"


def test_a_dead_letter_queue_is_not_sent_its_own_letters(world: World) -> None:
    world.dead_letter('{"job_id":"1"}')
    result = onejob("dlq", "redrive", "--all", "--queue-url", world.queues.dead_letter_url)
    assert result.exit_code == 2
    assert "is the dead-letter queue itself" in result.stderr
    assert world.letters == (1, 0)


@pytest.mark.parametrize(
    ("request_name", "denied_on"),
    [("ReceiveMessage", "/dead is denied"), ("DeleteMessage", "/dead is denied"), ("SendMessage", "/jobs is denied")],
)
def test_the_queue_that_refused_is_named(world: World, request_name: str, denied_on: str) -> None:
    world.dead_letter('{"job_id":"1"}')
    plan: dict[str, list[AwsFault]] = {request_name: ["denied"]}
    with aws_requests(**plan):
        assert world.redrive("--all")[0] == 1
    assert f"{request_name} on " in world.stderr
    assert denied_on in world.stderr


def test_nothing_is_sent_unless_it_is_said_what(world: World) -> None:
    result = onejob("dlq", "redrive")
    assert (result.exit_code, "--job-id ID, --reason CODE, or --all" in result.stderr) == (2, True)


@pytest.mark.parametrize("group", ["tenant-a", None])
def test_on_a_standard_queue_a_message_keeps_its_tenant_into_the_dead_letter_queue_and_back(group: str | None) -> None:
    options = {"MessageGroupId": group} if group else {}
    with redriven_world(fifo=False) as world:
        world.dead_letter('{"job_id":"a"}', **options)
        (letter,) = world.queues.receive(1, url=world.queues.dead_letter_url)
        assert letter["Attributes"].get("MessageGroupId") == group
        world.queues.sqs.change_message_visibility(
            QueueUrl=world.queues.dead_letter_url, ReceiptHandle=letter["ReceiptHandle"], VisibilityTimeout=0
        )
        assert world.redrive("--all")[0] == 0
        (message,) = world.queues.receive(1)
        assert message["Attributes"].get("MessageGroupId") == group
        assert "MessageDeduplicationId" not in message["Attributes"]
