"""`onejob dlq list`: what is shown of each letter, and that looking changes nothing."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from adapters.sqs.dead_letter_queue import DeadLetterQueue
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from tests.support.aws import TABLE, emulated
from tests.support.cli import objects, onejob
from tests.support.sqs_aws import Queues, make_queues
from tests.support.worker import handler


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> Iterator[Queues]:
    monkeypatch.setattr("adapters.sqs.dead_letter_queue.LOOK_SECONDS", 0)
    with emulated():
        made = make_queues()
        monkeypatch.setenv("DEAD_LETTER_QUEUE_URL", made.dead_letter_url)
        monkeypatch.setenv("IDEMPOTENCY_TABLE", TABLE)
        monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "test")
        yield made


def refuse(job: Job, attempt: Attempt) -> object:
    raise PermanentError("out_of_stock", "amount: expected less")


def dead_letter(queues: Queues, *bodies: str) -> None:
    """As the worker does."""
    queues.send(*bodies)
    handle = handler(refuse, dead_letter_queue_url=queues.dead_letter_url)
    assert queues.invoke(handle, queues.receive(len(bodies))) == []


def test_the_job_the_reason_and_the_age_are_shown_and_no_payload(queues: Queues) -> None:
    dead_letter(queues, '{"job_id":"1","card":"secret"}', "secret nonsense")
    shown = onejob("dlq", "list")
    assert shown.exit_code == 0
    assert "secret" not in shown.output
    header, first, second, summary = shown.stdout.splitlines()
    assert header.split()[:3] == ["JOB", "OPERATION", "REASON"]
    assert first.split()[:3] == ["-", "-", "not_json"]
    assert second.split()[:3] == ["1", "default", "out_of_stock"]
    assert "amount: expected less" in second
    assert " s ago" in second
    assert summary == "2 messages of 1 job, 1 without a job: not_json 1, out_of_stock 1"


@pytest.mark.parametrize("member", ["job_id", "tenant"])
def test_a_letter_with_an_endless_id_is_shown_like_any_other(queues: Queues, member: str) -> None:
    marks = "\u0301\u0323" * 60_000
    dead_letter(queues, json.dumps({"job_id": "1", member: marks}, ensure_ascii=False), '{"job_id":"2"}')
    began = time.thread_time()
    shown = onejob("dlq", "list")
    assert time.thread_time() - began < 5, "seconds of the processor"
    _header, first, second, _summary = shown.stdout.splitlines()
    assert f"invalid_{member}" in first
    assert second.split()[0] == "2"


def test_for_scripts_an_object_a_line(queues: Queues) -> None:
    dead_letter(queues, '{"job_id":"1","tenant":"acme","card":"secret"}')
    assert "1 (tenant acme)" in onejob("dlq", "list").stdout
    (letter,) = objects(onejob("dlq", "list", "--json"))
    assert (letter["job_id"], letter["tenant"], letter["operation"]) == ("1", "acme", "default")
    assert (letter["reason"], letter["attempts"], letter["receives"]) == ("out_of_stock", 1, 1)
    assert datetime.now(UTC) - datetime.fromisoformat(letter["first_sent"]) < timedelta(minutes=1)
    assert "body" not in letter
    (letter,) = objects(onejob("dlq", "list", "--json", "--show-payload"))
    assert json.loads(letter["body"])["card"] == "secret"


def test_what_sqs_moved_itself_has_no_reason(queues: Queues) -> None:
    queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody='{"job_id":"1"}')
    assert "moved by SQS" in onejob("dlq", "list").stdout
    assert objects(onejob("dlq", "list", "--json", "--reason", "moved by SQS"))[0]["reason"] is None


@pytest.mark.parametrize("table", [None, "no-such-table"])
def test_without_the_records_every_note_is_a_claim_and_that_is_said(
    queues: Queues, monkeypatch: pytest.MonkeyPatch, table: str | None
) -> None:
    dead_letter(queues, '{"job_id":"1"}')
    monkeypatch.delenv("IDEMPOTENCY_TABLE")
    if table:
        monkeypatch.setenv("IDEMPOTENCY_TABLE", table)
    listed = onejob("dlq", "list", "--json")
    (letter,) = objects(listed)
    assert (letter["reason"], letter["claim"]["reason"], listed.exit_code) == (None, "out_of_stock", 0)
    assert "whose notes these are cannot be told" in listed.stderr


def test_looking_puts_everything_back_at_once(queues: Queues) -> None:
    dead_letter(queues, *(f'{{"job_id":"{number}"}}' for number in range(10)))
    dead_letter(queues, *(f'{{"job_id":"{number}"}}' for number in range(10, 13)))
    for _ in range(2):
        assert len(objects(onejob("dlq", "list", "--json"))) == 13
    assert queues.counts(queues.dead_letter_url) == (13, 0)


def test_ctrl_c_puts_them_back_too(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    dead_letter(queues, '{"job_id":"1"}', '{"job_id":"2"}')
    original = DeadLetterQueue.letters

    def interrupted(self: DeadLetterQueue) -> Iterator[Any]:
        yield next(original(self))
        raise KeyboardInterrupt

    monkeypatch.setattr(DeadLetterQueue, "letters", interrupted)
    assert onejob("dlq", "list").exit_code == 130
    assert queues.counts(queues.dead_letter_url) == (2, 0)


def test_some_can_be_picked(queues: Queues) -> None:
    dead_letter(queues, '{"job_id":"1"}', '{"job_id":"2"}', "nonsense")
    assert [one["job_id"] for one in objects(onejob("dlq", "list", "--json", "--job-id", "2"))] == ["2"]
    assert [one["job_id"] for one in objects(onejob("dlq", "list", "--json", "--reason", "not_json"))] == [None]
    cut = onejob("dlq", "list", "--json", "--limit", "1")
    assert (len(objects(cut)), cut.stderr) == (1, "there are more: --limit 10\n")
    assert queues.counts(queues.dead_letter_url) == (3, 0)


def test_letters_that_somebody_holds_are_counted_and_not_denied(queues: Queues) -> None:
    queues.sqs.send_message(QueueUrl=queues.dead_letter_url, MessageBody='{"job_id":"1"}')
    queues.receive(1, url=queues.dead_letter_url)
    for command in (("list",), ("redrive", "--all", "--dry-run")):
        assert "about 1 letters are held by somebody else" in onejob("dlq", *command).stderr


def test_an_empty_queue_and_one_that_is_not_there(queues: Queues) -> None:
    empty = onejob("dlq", "list")
    assert (empty.exit_code, empty.stdout) == (0, "no dead letters\n")
    none = onejob("dlq", "list", "--dead-letter-url", f"{queues.dead_letter_url}-2")
    assert (none.exit_code, "there is no queue" in none.stderr) == (1, True)


def test_a_queue_that_counts_looks_is_warned_of(queues: Queues) -> None:
    policy = json.dumps({"deadLetterTargetArn": queues.arn, "maxReceiveCount": 3})
    boto3.client("sqs").set_queue_attributes(QueueUrl=queues.dead_letter_url, Attributes={"RedrivePolicy": policy})
    assert "each look counts as a receive" in onejob("dlq", "list").stderr


def test_what_a_message_brings_is_text_for_the_terminal(queues: Queues) -> None:
    dead_letter(queues, '{"job_id":"[red]\u00e9[/red]"}')
    assert "[red]é[/red]" in onejob("dlq", "list").stdout
