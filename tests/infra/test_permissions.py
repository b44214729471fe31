"""Least privilege: what the role may do is what the worker was seen to call, and what Lambda does in its name."""

import re
from collections.abc import Iterator
from threading import Event
from typing import Any

import pytest

from adapters.sqs.received import lambda_event
from adapters.system import SystemClock
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from infra.bundle import PROJECT
from tests.support.aws import TABLE, emulated
from tests.support.aws_faults import Requests, aws_requests
from tests.support.sqs import Context
from tests.support.sqs_aws import Queues, make_queues
from tests.support.template import KEY, named, only, resources, template
from tests.support.worker import handler

type Grant = tuple[str, str]
"""An action, and what it is allowed on."""

POLLER = {("sqs:ReceiveMessage", "jobs"), ("sqs:DeleteMessage", "jobs"), ("sqs:GetQueueAttributes", "jobs")}
LOG_AGENT = {("logs:CreateLogStream", "logs"), ("logs:PutLogEvents", "logs")}
CONFIGURED_KEY = {("kms:Decrypt", KEY), ("kms:GenerateDataKey", KEY)}


@pytest.fixture(scope="module")
def seen() -> Iterator[Requests]:
    with emulated(), aws_requests() as requests:
        queues = make_queues()
        requests.count.clear()
        requests.bodies.clear()
        _everything_that_a_worker_does(queues, requests)
        yield requests


def _everything_that_a_worker_does(queues: Queues, requests: Requests) -> None:
    deleted = Event()

    def run(job: Job, attempt: Attempt) -> object:
        match job.job_id:
            case "refused":
                raise PermanentError("refused")
            case "failing":
                raise OSError
            case "slow":
                assert deleted.wait(20)
        return None

    handle = handler(run, clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
    queues.send(*(f'{{"job_id":"{name}"}}' for name in ("new", "new", "refused", "failing")), "no JSON")
    queues.invoke(handle, queues.receive(5))

    queues.sqs.purge_queue(QueueUrl=queues.url)
    queues.send('{"job_id":"new"}')
    (message,) = queues.receive(1)
    queues.sqs.change_message_visibility(
        QueueUrl=queues.url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
    )
    assert queues.invoke(handle, queues.receive(1)) == []
    assert requests.count["GetItem"], "a redelivered message is looked up first"

    # one that is done while another still runs at the margin is deleted by the worker itself
    queues.send('{"job_id":"quick"}', '{"job_id":"slow"}')
    messages = queues.receive(2)
    requests.awaited["DeleteMessageBatch"] = deleted
    handle(lambda_event(messages, queues.arn), Context(seconds=5.5))
    assert deleted.is_set()


def called_by_the_worker(requests: Requests) -> set[Grant]:
    """The handler's requests as IAM names them, on what they were."""
    services = {"UpdateItem": "dynamodb", "GetItem": "dynamodb"}
    places = {"dead": "dead letters", "jobs": "jobs"}
    of_the_test = {("sqs:SendMessage", "jobs"), ("sqs:ReceiveMessage", "jobs"), ("sqs:PurgeQueue", "jobs")}
    of_the_test |= {("sqs:GetQueueAttributes", "jobs")}
    grants = set()
    for name, bodies in requests.bodies.items():
        action = f"{services.get(name, 'sqs')}:{name.removesuffix('Batch')}"
        for body in bodies:
            place = "table" if body.get("TableName") == TABLE else places[body["QueueUrl"].rpartition("/")[2]]
            grants.add((action, place))
    return grants - of_the_test


def granted(made: dict[str, Any]) -> set[Grant]:
    """What the template allows the worker's role: every statement of every policy that names it."""
    (role,) = resources(made, "IAM::Role")
    assert "ManagedPolicyArns" not in resources(made, "IAM::Role")[role]["Properties"]
    assert "Policies" not in resources(made, "IAM::Role")[role]["Properties"]
    assert not resources(made, "IAM::ManagedPolicy")
    places = {
        next(iter(resources(made, "DynamoDB::Table"))): "table",
        named(made, "SQS::Queue", "Jobs")[0]: "jobs",
        named(made, "SQS::Queue", "DeadLetters")[0]: "dead letters",
        next(iter(resources(made, "Logs::LogGroup"))): "logs",
    }
    grants = set()
    for policy in resources(made, "IAM::Policy").values():
        assert policy["Properties"]["Roles"] == [{"Ref": role}]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            assert statement.keys() == {"Action", "Effect", "Resource"}
            for action in _listed(statement["Action"]):
                for resource in _listed(statement["Resource"]):
                    place = resource if isinstance(resource, str) else places[resource["Fn::GetAtt"][0]]
                    grants.add((action, place))
    return grants


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_granted_is_what_is_called_and_no_more(seen: Requests) -> None:
    assert granted(template()) == called_by_the_worker(seen) | POLLER | LOG_AGENT


def test_a_key_of_yours_adds_what_it_needs(seen: Requests) -> None:
    assert granted(template(key_arn=KEY)) == called_by_the_worker(seen) | POLLER | LOG_AGENT | CONFIGURED_KEY


def test_fifo_and_stage_change_nothing(seen: Requests) -> None:
    assert granted(template(fifo="true", stage="prod")) == granted(template())


def test_every_request_that_the_adapters_can_make_was_seen(seen: Requests) -> None:
    text = "\n".join(
        (PROJECT / "src" / "adapters" / name).read_text() for name in ("powertools/layer.py", "sqs/queue.py")
    )
    written = set(re.findall(r"client\.(\w+)\(", text)) | set(re.findall(r'_in_batches\(\s*"(\w+)"', text))
    assert written == {
        "get_item",
        "update_item",
        "send_message",
        "delete_message_batch",
        "change_message_visibility_batch",
    }
    for name in written:
        assert seen.count["".join(word.capitalize() for word in name.split("_"))], name


def test_only_lambda_may_take_the_role() -> None:
    (statement,) = only(template(), "IAM::Role")["AssumeRolePolicyDocument"]["Statement"]
    assert (statement["Action"], statement["Principal"]) == ("sts:AssumeRole", {"Service": "lambda.amazonaws.com"})
