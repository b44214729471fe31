"""Job messages on a real queue (emulated): nothing that SQS refuses, nothing deduplicated away."""

import json
from collections.abc import Iterator

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.sqs.dead_letter import is_legal
from adapters.sqs.envelope import unwrap
from adapters.sqs.groups import is_group
from adapters.sqs.job_sender import SqsJobSender
from adapters.sqs.job_size import MAX_JOB_BYTES
from adapters.system import new_id
from domain.errors import InvalidJobError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.strict_json import Json, parse
from entrypoints.client_config import sdk_config
from entrypoints.container import SQS_TRIES
from entrypoints.settings import Backend, Settings
from tests.support.aws import emulated
from tests.support.aws_faults import aws_requests
from tests.support.sqs_aws import Queues, make_queues


@pytest.fixture
def queues() -> Iterator[Queues]:
    with emulated():
        yield make_queues()


def sender(queue_url: str) -> SqsJobSender:
    client = boto3.client("sqs", config=sdk_config(Settings(backend=Backend.MEMORY), SQS_TRIES))
    return SqsJobSender(lambda: client, queue_url, new_id)


def job(tenant: str | None = None) -> Job:
    return JobFactory("test", Operations()).job({"job_id": "a", **({} if tenant is None else {"tenant": tenant})})


def sent(queues: Queues, message: dict[str, Json]) -> None:
    made = sender(queues.url)
    assert made.send(made.body(message), job()) is None


def test_a_message_arrives_as_it_was_in_characters_that_sqs_takes(queues: Queues) -> None:
    message: dict[str, Json] = {"job_id": "a", "text": "\x00\ufffe\uffff\n", "number": 1e300, "\uffff": "\ufffe"}
    sent(queues, message)
    (received,) = queues.receive(1)
    assert unwrap(received["Body"]) == message
    assert received["Body"].isascii()


def test_what_sqs_carries_is_not_escaped(queues: Queues) -> None:
    text = "\x7f\x9f ä \u2028\ufffd\U0001f600\U0010ffff"
    sent(queues, {"job_id": "a", "text": text})
    (received,) = queues.receive(1)
    assert received["Body"] == f'{{"job_id":"a","text":"{text}"}}'


@given(st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False, allow_infinity=False)))
def test_whatever_is_in_a_message_sqs_carries_it_and_the_worker_reads_it(message: dict[str, Json]) -> None:
    body = SqsJobSender(lambda: pytest.fail("asks nobody"), "https://queue", new_id).body(message)
    assert is_legal(body)
    assert parse(body) == message


@pytest.mark.parametrize("filling", ["x", "\x7f", "ä"])
def test_a_message_is_measured_as_it_is_sent(queues: Queues, filling: str) -> None:
    frame = len('{"job_id":"a","text":""}')
    room, size = MAX_JOB_BYTES - frame, len(filling.encode())
    text = "x" * (room % size) + filling * (room // size)
    for fits in (text[1:], text):
        sent(queues, {"job_id": "a", "text": fits})
        (received,) = queues.receive(1)
        assert unwrap(received["Body"]) == {"job_id": "a", "text": fits}
    with pytest.raises(InvalidJobError, match="too_large"):
        sender(queues.url).body({"job_id": "a", "text": f"{text}x"})


def test_on_a_fifo_queue_a_job_is_a_group_and_the_same_job_may_be_sent_again() -> None:
    with emulated():
        queues = make_queues(fifo=True)
        for _ in range(2):
            assert sender(queues.url).send('{"job_id":"a"}', job("t")) is None
        received = queues.receive(2)
    assert [json.loads(one["Body"]) for one in received] == [{"job_id": "a"}] * 2
    assert {one["Attributes"]["MessageGroupId"] for one in received} == {job("t").key.digest}


TENANTS = ["anonymous", "x" * 128, "x" * 129, "iam 111122223333 AIDACKCEVSQ6C2EXAMPLE", "jwt https://i ü", None]


def test_on_a_standard_queue_each_tenant_is_a_group_and_none_is_none(queues: Queues) -> None:
    made = sender(queues.url)
    for tenant in TENANTS * 2:
        assert made.send(made.body({"job_id": "a", "is": tenant}), job(tenant)) is None
    groups: dict[str | None, set[str | None]] = {tenant: set() for tenant in TENANTS}
    for one in queues.receive(2 * len(TENANTS)):
        groups[json.loads(one["Body"])["is"]].add(one["Attributes"].get("MessageGroupId"))
    assert all(len(group) == 1 for group in groups.values()), "the same tenant is the same group"
    assert len(set().union(*groups.values())) == len(TENANTS), "and another one is another"
    assert (groups["anonymous"], groups[None]) == ({"anonymous"}, {None})
    assert all(is_group(group) for group in set().union(*groups.values()) - {None} if group)


@pytest.mark.parametrize(("fault", "name"), [("denied", "AccessDeniedException"), ("timeout", "ConnectTimeoutError")])
def test_what_was_not_sent_is_told_by_its_name(queues: Queues, fault: str, name: str) -> None:
    made = sender(queues.url)
    with aws_requests(SendMessage=[fault] * 10):  # type: ignore[list-item]
        assert made.send('{"job_id":"a"}', job()) == name
    assert queues.counts() == (0, 0)


def test_an_endpoint_that_is_no_url_is_told_too() -> None:
    def broken() -> None:
        raise ValueError("Invalid endpoint")

    assert SqsJobSender(broken, "https://queue", new_id).send("{}", job()) == "ValueError"  # type: ignore[arg-type]
