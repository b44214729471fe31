"""Which letters are meant: a job is named by operation, tenant and id, and found in any Unicode form."""

from typing import Any

import pytest

from adapters.sqs.letters import Letter, read_letter
from adapters.sqs.message import Message
from domain.errors import InvalidJobError
from entrypoints.cli.commands.dlq.wanted import LetterOptions, Wanted, counted
from entrypoints.cli.errors import UnusableOptionError
from tests.support.notes import NOTES, signed

ARN = "arn:aws:sqs:us-east-1:0:dead"


def letter(body: str, **note: Any) -> Letter:
    return read_letter(Message("m", "h", body, ARN, attributes=signed(note, body) if note else {}), {}, NOTES)


def meant(options: LetterOptions, *bodies: str) -> list[str]:
    wanted = Wanted.of(options, "test")
    letters = [letter(body) for body in bodies]
    return [one.message.body for one in letters if wanted.has(one, one.job(wanted.factory))]


PLAIN = '{"job_id":"1"}'
OF_A = '{"job_id":"1","tenant":"a"}'
BILL = '{"job_id":"1","operation":"bill"}'
OTHER = '{"job_id":"2"}'
ALL = (PLAIN, OF_A, BILL, OTHER, "nonsense")


def test_an_id_is_that_of_one_job() -> None:
    assert meant(LetterOptions(job_ids=("1",)), *ALL) == [PLAIN]
    assert meant(LetterOptions(job_ids=("1", "2")), *ALL) == [PLAIN, OTHER]
    assert meant(LetterOptions(job_ids=("1",), tenant="a"), *ALL) == [OF_A]
    assert meant(LetterOptions(job_ids=("1",), operation="bill"), *ALL) == [BILL]


def test_operation_and_tenant_filter() -> None:
    assert meant(LetterOptions(operation="bill"), *ALL) == [BILL]
    assert meant(LetterOptions(operation="default"), *ALL) == [PLAIN, OF_A, OTHER]
    assert meant(LetterOptions(tenant="a"), *ALL) == [OF_A]
    assert meant(LetterOptions(), *ALL) == list(ALL)


def test_an_id_and_a_tenant_are_meant_in_normal_form() -> None:
    body = '{"job_id":"\u00e9","tenant":"\u00fc"}'
    assert meant(LetterOptions(job_ids=("e\u0301",), tenant="u\u0308"), body) == [body]


def test_a_letters_own_operation_is_known_by_its_note() -> None:
    wanted = Wanted.of(LetterOptions(operation="bill"), "test")
    buried = letter(PLAIN, operation="bill")
    assert wanted.has(buried, buried.job(wanted.factory))
    unnamed = letter(PLAIN)
    assert not wanted.has(unnamed, unnamed.job(wanted.factory))
    assert wanted.unnamed == 1


@pytest.mark.parametrize(
    "options",
    [
        LetterOptions(job_ids=(" 1",)),
        LetterOptions(job_ids=("",)),
        LetterOptions(job_ids=("1",), tenant="\x00"),
        LetterOptions(operation="no name"),
        LetterOptions(name="no name"),
        LetterOptions(operation="no.such.module:function"),
    ],
)
def test_what_can_be_no_job_is_refused(options: LetterOptions) -> None:
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
