"""Which letters are meant: a job is named by operation, tenant and id, and found in any Unicode form."""

from typing import Any

import pytest

from adapters.sqs.dead_letter_queue import ReceivedDeadLetter, read_dead_letter
from adapters.sqs.message import Message
from domain.errors import InvalidJobError
from entrypoints.cli.commands.dlq.wanted import DeadLetterOptions, Wanted, counted
from entrypoints.cli.errors import UnusableOptionError
from tests.support.notes import NOTES, signed

ARN = "arn:aws:sqs:us-east-1:0:dead"


def letter(body: str, **note: Any) -> ReceivedDeadLetter:
    return read_dead_letter(Message("m", "h", body, ARN, attributes=signed(note, body) if note else {}), {}, NOTES)


def meant(options: DeadLetterOptions, *bodies: str) -> list[str]:
    wanted = Wanted.of(options, "test")
    letters = [letter(body) for body in bodies]
    return [one.message.body for one in letters if wanted.has(one, one.job(wanted.factory))]


PLAIN = '{"job_id":"1"}'
OF_A = '{"job_id":"1","tenant":"a"}'
BILL = '{"job_id":"1","operation":"bill"}'
OTHER = '{"job_id":"2"}'
ALL = (PLAIN, OF_A, BILL, OTHER, "nonsense")


def test_an_id_is_that_of_one_job() -> None:
    assert meant(DeadLetterOptions(job_ids=("1",)), *ALL) == [PLAIN]
    assert meant(DeadLetterOptions(job_ids=("1", "2")), *ALL) == [PLAIN, OTHER]
    assert meant(DeadLetterOptions(job_ids=("1",), tenant="a"), *ALL) == [OF_A]
    assert meant(DeadLetterOptions(job_ids=("1",), operation="bill"), *ALL) == [BILL]


def test_operation_and_tenant_filter() -> None:
    assert meant(DeadLetterOptions(operation="bill"), *ALL) == [BILL]
    assert meant(DeadLetterOptions(operation="default"), *ALL) == [PLAIN, OF_A, OTHER]
    assert meant(DeadLetterOptions(tenant="a"), *ALL) == [OF_A]
    assert meant(DeadLetterOptions(), *ALL) == list(ALL)


def test_an_id_and_a_tenant_are_meant_in_normal_form() -> None:
    body = '{"job_id":"\u00e9","tenant":"\u00fc"}'
    assert meant(DeadLetterOptions(job_ids=("e\u0301",), tenant="u\u0308"), body) == [body]


def test_a_letters_own_operation_is_known_by_its_note() -> None:
    wanted = Wanted.of(DeadLetterOptions(operation="bill"), "test")
    buried = letter(PLAIN, operation="bill")
    assert wanted.has(buried, buried.job(wanted.factory))
    unnamed = letter(PLAIN)
    assert not wanted.has(unnamed, unnamed.job(wanted.factory))
    assert wanted.unnamed == 1


@pytest.mark.parametrize(
    "options",
    [
        DeadLetterOptions(job_ids=(" 1",)),
        DeadLetterOptions(job_ids=("",)),
        DeadLetterOptions(job_ids=("1",), tenant="\x00"),
        DeadLetterOptions(operation="no name"),
        DeadLetterOptions(name="no name"),
        DeadLetterOptions(operation="no.such.module:function"),
    ],
)
def test_what_can_be_no_job_is_refused(options: DeadLetterOptions) -> None:
    with pytest.raises((InvalidJobError, UnusableOptionError)):
        Wanted.of(options, "test")


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ([], "0 messages of 0 jobs"),
        (["a"], "1 message of 1 job"),
        (["a", "a", "b", "b"], "4 messages of 2 jobs"),
        (["a", None], "2 messages of 1 job, 1 without a job"),
        ([None, None], "2 messages without a job"),
    ],
)
def test_messages_and_jobs_are_counted_apart(keys: list[str | None], text: str) -> None:
    assert counted(keys) == text
