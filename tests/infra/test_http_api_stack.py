"""The HTTP API in the stack: opt-in, asks for IAM, may do what it was seen to call and no more."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack

from adapters.system import SystemClock
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from entrypoints.settings import Backend
from infra import nag
from infra.bundle import PROJECT, build
from infra.http_api import HttpApi
from infra.http_props import HttpProps
from infra.idempotent_worker import IdempotentWorker
from infra.worker_props import Architecture, WorkerProps, WorkerPropsError
from tests.infra.test_checks import report
from tests.support.aws import TABLE, emulated
from tests.support.aws_faults import Requests, aws_requests
from tests.support.http import client
from tests.support.sqs_aws import make_queues
from tests.support.template import KEY, app, folder_of, named, resources, stack, template

ROLE = "arn:aws:iam::111122223333:role/shop"


def door(**context: str) -> dict[str, Any]:
    return template(http="true", **context)


def function(made: dict[str, Any]) -> dict[str, Any]:
    properties: dict[str, Any] = named(made, "Lambda::Function", "HttpFunction")[1]["Properties"]
    return properties


def test_it_is_opt_in() -> None:
    assert not resources(template(), "Lambda::Url")
    assert not resources(template(), "Lambda::Permission")
    assert "HttpUrl" not in template()["Outputs"]
    assert template(http="false") == template()


def test_the_url_asks_for_iam_and_lets_no_page_call() -> None:
    made = door()
    (url,) = resources(made, "Lambda::Url").values()
    assert url["Properties"]["AuthType"] == "AWS_IAM"
    assert "Cors" not in url["Properties"]
    assert not resources(made, "Lambda::Permission"), "granted to nobody unless told"
    assert made["Outputs"]["HttpUrl"]["Value"] == {
        "Fn::GetAtt": [next(iter(resources(made, "Lambda::Url"))), "FunctionUrl"]
    }
    assert made["Outputs"]["HttpLogGroupName"]["Value"] == {"Ref": named(made, "Logs::LogGroup", "Http")[0]}


def test_so_many_requests_are_served_at_a_time() -> None:
    assert function(door())["ReservedConcurrentExecutions"] == 20
    assert function(door(http_concurrency="7"))["ReservedConcurrentExecutions"] == 7
    assert "ReservedConcurrentExecutions" not in function(door(http_concurrency="0"))
    with pytest.raises(WorkerPropsError, match="http-concurrency=10001"):
        door(http_concurrency="10001")
    with pytest.raises(WorkerPropsError, match="http-concurrency without http=true"):
        template(http_concurrency="7")


def test_a_caller_is_granted_the_url_and_nothing_beside_it() -> None:
    made = door(http_caller=ROLE)
    granted = [one["Properties"] for one in resources(made, "Lambda::Permission").values()]
    arn = {"Fn::GetAtt": [named(made, "Lambda::Function", "HttpFunction")[0], "Arn"]}
    assert {one["Action"] for one in granted} == {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"}
    for one in granted:
        assert (one["Principal"], one["FunctionName"]) == (ROLE, arn)
        if one["Action"] == "lambda:InvokeFunction":
            assert one["InvokedViaFunctionUrl"] is True, "who invokes the function writes the event"
        else:
            assert one["FunctionUrlAuthType"] == "AWS_IAM"


def test_the_function_shares_the_workers_records_and_settings() -> None:
    made = door(namespace="billing", margin="6", memory="1024", http_timeout="20", architecture="x86_64")
    told = function(made)
    worker = named(made, "Lambda::Function", "WorkerFunction")[1]["Properties"]
    assert (told["Handler"], told["Timeout"], told["MemorySize"]) == ("entrypoints.http_api.handler", 20, 1024)
    assert (told["Runtime"], told["Architectures"], told["Code"]) == (
        worker["Runtime"],
        worker["Architectures"],
        worker["Code"],
    )
    ours, theirs = told["Environment"]["Variables"], worker["Environment"]["Variables"]
    differing = {name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name)}
    assert differing == {"DEAD_LETTER_QUEUE_URL", "JOBS_QUEUE_URL", "POWERTOOLS_SERVICE_NAME"}
    assert ours["JOBS_QUEUE_URL"] == {"Ref": named(made, "SQS::Queue", "Jobs")[0]}
    assert ours["POWERTOOLS_SERVICE_NAME"] == "LambdaIdempotencyStack-http"
    assert "ANONYMOUS" not in str(ours)
    assert told["LoggingConfig"]["LogGroup"] == {"Ref": named(made, "Logs::LogGroup", "Http")[0]}
    assert function(door())["Timeout"] == 29


def test_its_logs_are_kept_as_the_workers() -> None:
    made = door(stage="prod", log_retention="365")
    groups = [*resources(made, "Logs::LogGroup").values()]
    assert [one["Properties"]["RetentionInDays"] for one in groups] == [365, 365]
    assert {one["DeletionPolicy"] for one in groups} == {"RetainExceptOnCreate"}


def test_its_alarms_watch_it_and_are_explained() -> None:
    made = door(alarm_email="ops@example.com")
    names = ("StoreUnavailable", "LeaseLost", "CompletionLost", "Unexpected", "FunctionErrors", "Throttles")
    alarms = [
        one["Properties"]
        for one in resources(made, "CloudWatch::Alarm").values()
        if one["Properties"]["AlarmName"].startswith("LambdaIdempotencyStack-Http-")
    ]
    assert {one["AlarmName"].rpartition("-")[2] for one in alarms} == set(names)
    runbook = (PROJECT / "docs" / "runbook.md").read_text()
    for one in alarms:
        name = one["AlarmName"].rpartition("-")[2]
        assert one["AlarmDescription"].endswith(f"docs/runbook.md, {name}")
        assert f"### {name}\n" in runbook
        assert len(one["AlarmActions"]) == len(one["OKActions"]) == 1
        (dimension,) = one["Dimensions"]
        if one["Namespace"] == "onejob":
            assert (one["MetricName"], dimension["Value"]) == (name, "LambdaIdempotencyStack-http")
        else:
            assert dimension["Value"] == {"Ref": named(made, "Lambda::Function", "HttpFunction")[0]}


@pytest.fixture(scope="module")
def seen() -> Iterator[Requests]:
    """Everything that a door asks of AWS."""

    def run(job: Job, attempt: Attempt) -> object:
        match job.job_id:
            case "refused":
                raise PermanentError("refused")
            case "failing":
                raise OSError
        return None

    with emulated():
        called = client(
            run,
            clock=SystemClock(),
            http={"jobs_queue_url": make_queues().url},
            backend=Backend.DYNAMODB,
            table=TABLE,
        )
        with aws_requests() as requests:
            for key in ("new", "new", "refused", "failing"):
                called.post(f'"{key}"')
            called.get("new")
            called.post('"later"', prefer="respond-async")
        yield requests


def test_granted_is_what_is_called_and_no_more(seen: Requests) -> None:
    made = door()
    places = {
        next(iter(resources(made, "DynamoDB::Table"))): "table",
        named(made, "SQS::Queue", "Jobs")[0]: "jobs",
        named(made, "Logs::LogGroup", "Http")[0]: "logs",
    }
    assert granted(made, places) == {
        ("dynamodb:GetItem", "table"),
        ("dynamodb:UpdateItem", "table"),
        ("sqs:SendMessage", "jobs"),
        ("logs:CreateLogStream", "logs"),
        ("logs:PutLogEvents", "logs"),
    }
    assert set(seen.count) == {"GetItem", "UpdateItem", "SendMessage"}
    with_key = granted(door(key_arn=KEY), places)
    assert with_key - granted(made, places) == {("kms:Decrypt", KEY), ("kms:GenerateDataKey", KEY)}


def granted(made: dict[str, Any], places: dict[str, str]) -> set[tuple[str, str]]:
    role, _ = named(made, "IAM::Role", "Http")
    grants = set()
    for policy in resources(made, "IAM::Policy").values():
        if policy["Properties"]["Roles"] == [{"Ref": role}]:
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                assert statement.keys() == {"Action", "Effect", "Resource"}
                actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
                resource = statement["Resource"]
                place = resource if isinstance(resource, str) else places[resource["Fn::GetAtt"][0]]
                grants |= {(action, place) for action in actions}
    return grants


def test_others_find_nothing_that_is_not_justified() -> None:
    """cdk-nag over the construct tree, cfn-lint over the template."""
    told = {"http": "true", "stage": "prod", "http-caller": ROLE, "key-arn": KEY}
    root = app(told)
    nag.check(root, stack(root, told))
    root.synth()
    assert [pack["violations"] for pack in report(root)] == [[], []]
    (path,) = folder_of(root).glob("*.template.json")
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), path], cwd=PROJECT, capture_output=True, text=True
    )
    assert (linted.returncode, linted.stdout) == (0, "")


@pytest.mark.parametrize(
    ("context", "told"),
    [
        ({"http": "true", "http_timeout": "9"}, "http-timeout=9 is less than twice margin=5"),
        ({"http": "true", "http_timeout": "901"}, "http-timeout=901"),
        ({"http": "true", "http_caller": "*"}, r"http-caller='\*'"),
        ({"http": "true", "http_caller": "arn:aws:sts::111122223333:assumed-role/r/s"}, "http-caller="),
        ({"http_timeout": "20"}, "http-timeout without http=true"),
        ({"http": "false", "http_caller": ROLE}, "http-caller without http=true"),
        ({"http": "yes"}, "http='yes'"),
        ({"htp": "true"}, "did you mean http"),
    ],
    ids=str,
)
def test_what_no_door_should_be_deployed_with_is_refused_by_name(context: dict[str, str], told: str) -> None:
    with pytest.raises(WorkerPropsError, match=told):
        template(**context)


def test_settings_that_the_door_would_refuse_are_refused_at_synth() -> None:
    mine, bundle = Stack(app({}), "Mine"), build(Architecture.ARM64)
    worker = IdempotentWorker(mine, "Worker", props=WorkerProps(), bundle=bundle)
    for number, (name, value) in enumerate(
        (("JOBS_QUEUE_URL", "https://x"), ("HTTP_ALLOW_ANONYMOUS", "maybe"), ("MAX_ATTEMPTS", "1"))
    ):
        with pytest.raises(WorkerPropsError, match=name):
            HttpApi(mine, f"Http{number}", props=HttpProps(), worker=worker, bundle=bundle, environment={name: value})


def test_outputs_and_context_values_are_in_the_page() -> None:
    page = (PROJECT / "docs" / "http.md").read_text()
    for name in (*(door()["Outputs"].keys() - template()["Outputs"].keys()), "http", "http-caller", "http-timeout"):
        assert f"`{name}`" in page
