"""Least privilege: what the role may do is what the worker was seen to call, and what Lambda does in its name."""

import json
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
from infra.permissions import OPERATION_STATEMENTS
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
OPERATORS_ONLY = {"scan", "delete_item"}
"""Of the table; the worker's role may do neither: `onejob list` and `purge`, and the clean-up under its own role."""

CONFIGURED_KEY = {("kms:Decrypt", KEY), ("kms:GenerateDataKey", KEY)}


@pytest.fixture(scope="module")
def seen() -> Iterator[Requests]:
    """The requests between a handler's beginning and its end, and none of the test's own."""
    template()  # with the bundle, for which uv may need what the emulator's environment lacks
    with emulated():
        yield _everything_that_a_worker_does(make_queues())


def _everything_that_a_worker_does(queues: Queues) -> Requests:
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
    first = queues.receive(5)
    queues.send('{"job_id":"new"}')
    (again,) = queues.receive(1)
    again["Attributes"]["ApproximateReceiveCount"] = "2"
    queues.send('{"job_id":"quick"}', '{"job_id":"slow"}')
    hurried = queues.receive(2)
    with aws_requests() as requests:
        # one that is done while another still runs at the margin is deleted by the worker itself
        requests.awaited["DeleteMessageBatch"] = deleted
        for messages, seconds in ((first, 30), ([again], 30), (hurried, 5.5)):
            handle(lambda_event(messages, queues.arn), Context(seconds))
    assert deleted.is_set()
    return requests


def called_by_the_worker(requests: Requests) -> set[Grant]:
    """The handler's requests as IAM names them, on what they were."""
    services = {"UpdateItem": "dynamodb", "GetItem": "dynamodb"}
    places = {"dead": "dead letters", "jobs": "jobs"}
    grants = set()
    for name, bodies in requests.bodies.items():
        action = f"{services.get(name, 'sqs')}:{name.removesuffix('Batch')}"
        for body in bodies:
            place = "table" if body.get("TableName") == TABLE else places[body["QueueUrl"].rpartition("/")[2]]
            grants.add((action, place))
    return grants


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
                    place = places.get(resource["Fn::GetAtt"][0]) if "Fn::GetAtt" in resource else None
                    grants.add((action, place or (resource if isinstance(resource, str) else json.dumps(resource))))
    return grants - granted_to_operations()


def granted_to_operations() -> set[Grant]:
    """What the project's own operations are granted beside."""
    told = [statement.to_statement_json() for statement in OPERATION_STATEMENTS]
    return {
        (action, resource if isinstance(resource, str) else json.dumps(resource))
        for statement in told
        for action in _listed(statement["Action"])
        for resource in _listed(statement["Resource"])
    }


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
        (PROJECT / "src" / "adapters" / name).read_text() for name in ("stores/dynamodb/layer.py", "sqs/queue.py")
    )
    written = set(re.findall(r"client\.(\w+)[(,]", text)) | set(re.findall(r'_in_batches\(\s*"(\w+)"', text))
    assert written >= OPERATORS_ONLY
    written -= OPERATORS_ONLY
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
