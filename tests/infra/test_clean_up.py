"""The scheduled clean-up: only if asked for, with rights of its own, and never unseen when it fails."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from dependency_injector.providers import Object

from entrypoints import cleanup
from entrypoints.container import Container
from entrypoints.settings import Backend, Settings
from infra.bundle import PROJECT
from infra.clean_up import HANDLER, TABLE_ACTIONS
from tests.support.aws import TABLE, in_process
from tests.support.aws_faults import Requests, aws_requests
from tests.support.template import KEY, named, resources, template


@pytest.fixture(scope="module")
def seen() -> Iterator[Requests]:
    """What a run asks of AWS that looks at one record, which is over."""

    class Context:
        def get_remaining_time_in_millis(self) -> int:
            return 60_000

    with in_process():
        container = Container()
        container.settings.override(Object(Settings(backend=Backend.DYNAMODB, table=TABLE)))
        handle = cleanup.make_handler(container)
        item = {"id": {"S": "k"}, "status": {"S": "COMPLETED"}, "expiration": {"N": "1"}}
        boto3.client("dynamodb").put_item(TableName=TABLE, Item=item)
        with aws_requests() as requests:
            assert handle({}, Context())["purged"] == 1
        yield requests


def of_clean_up(made: dict[str, Any], kind: str) -> dict[str, Any]:
    properties: dict[str, Any] = named(made, kind, "CleanUp")[1]["Properties"]
    return properties


def test_nothing_of_it_is_there_unless_asked_for() -> None:
    assert "CleanUp" not in json.dumps(template())


def test_a_function_of_its_own_is_called_by_a_schedule() -> None:
    made = template(clean_up="6")
    name, function = named(made, "Lambda::Function", "CleanUp")
    properties = function["Properties"]
    assert (properties["Handler"], properties["Timeout"]) == (HANDLER, 900)
    assert properties["Environment"]["Variables"] == {
        "IDEMPOTENCY_BACKEND": "dynamodb",
        "IDEMPOTENCY_TABLE": {"Ref": next(iter(resources(made, "DynamoDB::Table")))},
        "DEADLINE_MARGIN_SECONDS": "30",
        "POWERTOOLS_SERVICE_NAME": "LambdaIdempotencyStack-clean-up",
    }
    rule = of_clean_up(made, "Events::Rule")
    assert rule["ScheduleExpression"] == "rate(6 hours)"
    assert rule["Targets"][0]["Arn"] == {"Fn::GetAtt": [name, "Arn"]}
    permission = of_clean_up(made, "Lambda::Permission")
    assert (permission["Principal"], permission["Action"]) == ("events.amazonaws.com", "lambda:InvokeFunction")
    assert properties["LoggingConfig"]["LogGroup"] == {"Ref": named(made, "Logs::LogGroup", "CleanUp")[0]}


def test_it_may_do_what_it_was_seen_to_do_and_no_more(seen: Requests) -> None:
    assert {f"dynamodb:{name}" for name in seen.count} == set(TABLE_ACTIONS)
    made = template(clean_up="6", key_arn=KEY)
    policy = of_clean_up(made, "IAM::Policy")
    (table,) = resources(made, "DynamoDB::Table")
    logs, _ = named(made, "Logs::LogGroup", "CleanUp")
    granted = {
        (action, json.dumps(statement["Resource"]))
        for statement in policy["PolicyDocument"]["Statement"]
        for action in _listed(statement["Action"])
    }
    of_table, of_logs = (json.dumps({"Fn::GetAtt": [name, "Arn"]}) for name in (table, logs))
    assert granted == {
        *((action, of_table) for action in TABLE_ACTIONS),
        ("logs:CreateLogStream", of_logs),
        ("logs:PutLogEvents", of_logs),
        ("kms:Decrypt", json.dumps(KEY)),
    }
    assert policy["Roles"] == [{"Ref": named(made, "IAM::Role", "CleanUp")[0]}]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_its_failure_alarms_and_is_explained() -> None:
    made = template(clean_up="6", alarm_email="ops@example.com")
    alarm = of_clean_up(made, "CloudWatch::Alarm")
    name, _ = named(made, "Lambda::Function", "CleanUp")
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Threshold"]) == ("AWS/Lambda", "Errors", 1)
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": name}}]
    assert alarm["AlarmActions"] == [{"Ref": next(iter(resources(made, "SNS::Topic")))}]
    assert alarm["AlarmDescription"].endswith("What to do: docs/runbook.md, CleanUp")
    assert "runbook.md#cleanup" in (PROJECT / "docs" / "operate.md").read_text()
    assert "\n### CleanUp\n" in (PROJECT / "docs" / "runbook.md").read_text()


def test_it_leaves_the_worker_as_it_is() -> None:
    without, beside = template(), template(clean_up="6")
    for kind in ("Lambda::Function", "IAM::Policy", "DynamoDB::Table", "SQS::Queue"):
        for name, one in resources(without, kind).items():
            assert beside["Resources"][name] == one
