"""The judgement of a record at a claim: what the stores' contract, which asks the same of each store, rarely sees."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.answer import Answer
from domain.errors import ForeignRecordError
from domain.record import Acquired, Busy, Claim, Claimable, Completed, Mismatch, Record, Status, judge
from tests.support.jobs import job

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JOB = job("1", amount=10)
RUNNING = Record(
    key=JOB.key,
    job_id="1",
    status=Status.IN_PROGRESS,
    owner="a",
    attempts=3,
    lease_until=NOW + timedelta(seconds=10),
    expires_at=NOW + timedelta(days=1),
    fingerprint=JOB.fingerprint,
)
DONE = replace(RUNNING, status=Status.COMPLETED, answer=Answer('"x"'))


def test_no_record_is_free() -> None:
    assert isinstance(judge(None, JOB, "b", NOW), Claimable)


def test_a_live_lease_is_judged_before_the_retention() -> None:
    assert judge(replace(RUNNING, expires_at=NOW - timedelta(days=1)), JOB, "b", NOW) == Busy(
        NOW + timedelta(seconds=10)
    )


def test_a_record_of_another_job_is_an_error_on_every_path() -> None:
    for record in (RUNNING, DONE, replace(DONE, expires_at=NOW - timedelta(days=1))):
        with pytest.raises(ForeignRecordError, match="belongs to another job_id"):
            judge(replace(record, job_id="2"), JOB, "b", NOW)


def test_a_record_without_a_job_id_was_written_by_powertools_and_is_honoured() -> None:
    assert judge(replace(DONE, job_id=None), JOB, "b", NOW) == Completed(Answer('"x"'))


def test_a_claim_without_a_lease_lasts_for_its_retention() -> None:
    stock = replace(RUNNING, lease_until=None, fingerprint=None)
    assert judge(stock, JOB, "b", NOW) == Busy(stock.expires_at, verified=False)
    assert judge(stock, JOB, "b", stock.expires_at) == Busy(stock.expires_at, verified=False)
    assert isinstance(judge(stock, JOB, "b", stock.expires_at + timedelta(microseconds=1)), Claimable)


def test_a_completed_record_without_an_answer_answers_null() -> None:
    assert judge(replace(DONE, answer=None), JOB, "b", NOW) == Completed(Answer("null"))


def test_a_claim_knows_itself_by_owner_and_fingerprint_together() -> None:
    assert judge(RUNNING, JOB, "a", NOW) == Acquired(Claim(JOB.key, "a", 3))
    assert judge(RUNNING, job("1", amount=11), "a", NOW) == Mismatch()
    assert judge(DONE, JOB, "a", NOW) == Completed(Answer('"x"'))


def test_a_claim_that_knows_itself_knows_the_last_error_too() -> None:
    assert judge(replace(RUNNING, last_error="E"), JOB, "a", NOW) == Acquired(Claim(JOB.key, "a", 3), "E")
