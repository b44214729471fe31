"""The table of what a redrive may do with a letter, row by row: above all that nothing forced comes back as stale."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters.sqs.dead_letter_queue import ReceivedDeadLetter, read_dead_letter
from adapters.sqs.message import Message
from adapters.sqs.notes import ATTRIBUTE, Notes
from adapters.stores.memory import MemoryIdempotencyStore
from domain.answer import Answer
from domain.life import Life
from domain.record import RELEASED, Record, Status
from domain.redrive import Decision, Verdict, decide
from entrypoints.cli.commands.dlq.redrive import Redriver
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.notes import NOTES

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RETENTION = 28 * DAY
JOB = job("1", amount=10)
RUNNING = Record(
    key=JOB.key,
    job_id="1",
    status=Status.IN_PROGRESS,
    owner="a",
    attempts=3,
    lease_until=NOW + timedelta(minutes=1),
    expires_at=NOW + DAY,
    fingerprint=JOB.fingerprint,
    life=Life(runs=2),
)
DONE = replace(RUNNING, status=Status.COMPLETED, answer=Answer("1"))
RECORDS = {
    "none": None,
    "over": replace(DONE, expires_at=NOW - DAY),
    "running": RUNNING,
    "lapsed": replace(RUNNING, lease_until=NOW - DAY),
    "released": replace(RUNNING, owner=None, lease_until=RELEASED),
    "finished": DONE,
    "finished, another payload": replace(DONE, fingerprint=job("1", amount=11).fingerprint),
}


def letter(age: timedelta, buried: timedelta = timedelta(0), *, is_signed: bool = True) -> ReceivedDeadLetter:
    """Of a job first sent so long ago."""
    facts = {"reason": "broken", "first_sent": round((NOW - age).timestamp() * 1000)}
    note_text = json.dumps((NOTES if is_signed else Notes()).signed(facts, '{"job_id":"1"}'))
    received = {ATTRIBUTE: {"dataType": "String", "stringValue": note_text}}
    message = Message("m2", "handle", '{"job_id":"1"}', "arn:aws:sqs:x:0:dead", sent_at=NOW - buried)
    message = replace(message, attributes=received)
    return read_dead_letter(message, {ATTRIBUTE: {"DataType": "String", "StringValue": note_text}}, NOTES)


def decided(found: ReceivedDeadLetter, record: Record | None, *, force: bool) -> Decision:
    return decide(JOB, record, first_sent=found.first_sent, now=NOW, retention=RETENTION, force=force)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_a_stale_letter_that_is_forced_is_sent_as_if_it_were_new_whatever_is_on_record(record: Record | None) -> None:
    """With its age the worker would reject it as stale again."""
    decision = decided(letter(40 * DAY), record, force=True)
    assert (decision.send, decision.forget_age) == (True, True)
    assert decided(letter(40 * DAY), record, force=False) == Decision(Verdict.STALE, send=False)


@pytest.mark.parametrize("force", [True, False])
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_a_letter_that_is_not_stale_keeps_its_age(record: Record | None, force: bool) -> None:
    assert not decided(letter(RETENTION), record, force=force).forget_age


def test_a_letter_is_as_old_as_the_first_message_of_its_job() -> None:
    with redriver(force=False) as (made, sender):
        told = made.take(letter(40 * DAY, buried=DAY), JOB)
    assert (told["verdict"], sender.sent) == (Verdict.STALE, [])


def test_an_age_that_a_message_claims_makes_no_letter_stale() -> None:
    assert decided(letter(40 * DAY, buried=DAY, is_signed=False), None, force=False).verdict is Verdict.RUNS


@pytest.mark.parametrize("scheme", ["v1-abc", "v10", "v2"])
def test_payloads_that_cannot_be_compared_are_no_mismatch(scheme: str) -> None:
    record = replace(DONE, fingerprint=f"{scheme}:0")
    assert decided(letter(DAY), record, force=False) == Decision(Verdict.ANSWERED)


@dataclass
class RecordedSender:
    """Takes what is sent to SQS."""

    sent: list[dict[str, Any]] = field(default_factory=list)

    def send_message(self, **request: Any) -> dict[str, str]:
        self.sent.append(request)
        return {"MessageId": f"sent {len(self.sent)}"}


@contextmanager
def redriver(*, force: bool) -> Iterator[tuple[Redriver, RecordedSender]]:
    clock, sender = FakeClock(NOW), RecordedSender()
    records = SimpleNamespace(
        admin=MemoryIdempotencyStore(clock, RETENTION),
        clock=clock,
        settings=SimpleNamespace(retention=RETENTION),
        notes=NOTES,
    )
    options = SimpleNamespace(force=force, dry_run=False)
    box = SimpleNamespace(delete=lambda letter: None)
    made: Any = Redriver(cast(Any, options), cast(Any, box), cast(Any, sender), "https://sqs/q", cast(Any, records))
    yield made, sender


@pytest.mark.parametrize(("age", "kept"), [(40 * DAY, False), (DAY, True)])
def test_a_forced_redrive_sends_a_stale_letter_without_its_age(age: timedelta, kept: bool) -> None:
    with redriver(force=True) as (made, sender):
        assert made.take(letter(age), JOB)["sent"]
    (request,) = sender.sent
    facts = json.loads(request["MessageAttributes"][ATTRIBUTE]["StringValue"])
    assert (facts["reason"], "first_sent" in facts) == ("broken", kept)


@pytest.mark.parametrize(
    ("name", "restarts"),
    [("running", True), ("lapsed", True), ("released", True), ("finished", False), ("over", False), ("none", False)],
)
def test_a_letter_of_a_job_that_is_not_done_begins_another_life_of_it(name: str, restarts: bool) -> None:
    assert decided(letter(DAY), RECORDS[name], force=False).restart is restarts


@pytest.mark.parametrize("life", [Life(3, runs=1), Life(3, unended=1), Life(3, rejected_at=NOW)])
def test_whatever_a_life_has_counted_ends_with_it(life: Life) -> None:
    released = replace(RUNNING, owner=None, lease_until=RELEASED)
    assert decided(letter(DAY), replace(released, life=life), force=False).restart
    assert not decided(letter(DAY), replace(released, life=Life(3)), force=False).restart


def test_a_message_that_is_sent_back_has_all_its_runs() -> None:
    with redriver(force=False) as (made, sender):
        store: Any = made.records.admin
        claimed = store.claim(JOB, owner="a", lease=DAY)
        store.release(claimed.claim, "KeyError", life=Life(runs=5, rejected_at=NOW))
        assert made.take(letter(DAY), JOB)["sent"]
        assert store.look(JOB.key).life == Life(2)
    assert len(sender.sent) == 1


def test_a_job_of_three_letters_is_told_to_run_once() -> None:
    with redriver(force=False) as (made, sender):
        verdicts = [made.take(letter(DAY), JOB)["verdict"] for _ in range(3)]
        # what each was sent as has an id of its own, or SQS dropped it
    assert verdicts == [Verdict.RUNS, Verdict.REPEATED, Verdict.REPEATED]
    assert (len(sender.sent), made.keys, made.jobs) == (3, [str(JOB.key)] * 3, {JOB.key: Verdict.RUNS})


def test_another_payload_of_a_job_that_was_sent_is_left() -> None:
    with redriver(force=False) as (made, sender):
        assert made.take(letter(DAY), JOB)["sent"]
        told = made.take(letter(DAY), job("1", amount=11))
    assert (told["verdict"], told["sent"], len(sender.sent)) == (Verdict.MISMATCH, False, 1)
