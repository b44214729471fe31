"""Every alarm watches what it says, goes off in time, calls someone, and is explained."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from infra.bundle import PROJECT
from tests.support.template import named, only, resources, template

RUNBOOK = PROJECT / "docs" / "runbook.md"
OLD_ADDRESS = PROJECT / "docs" / "operations.md"
ALARMS = (
    "DeadLetters",
    "OldestMessage",
    "InFlight",
    "JobsFailed",
    "StoreUnavailable",
    "LeaseLost",
    "JobsOverdue",
    "CompletionLost",
    "BurialFailed",
    "Unexpected",
    "Duplicates",
    "FunctionErrors",
    "Throttles",
)


def alarm(name: str, **context: str) -> dict[str, Any]:
    made = template(**context)
    found: dict[str, Any]
    (found,) = [
        one["Properties"]
        for one in resources(made, "CloudWatch::Alarm").values()
        if one["Properties"]["AlarmName"].endswith(f"-{name}")
    ]
    return found


def test_these_and_no_others() -> None:
    names = [one["Properties"]["AlarmName"] for one in resources(template(), "CloudWatch::Alarm").values()]
    assert sorted(names) == sorted(f"LambdaIdempotencyStack-Worker-{name}" for name in ALARMS)


@pytest.mark.parametrize("name", ALARMS)
def test_each_is_explained_and_missing_data_is_no_alarm(name: str) -> None:
    told = alarm(name)
    assert told["AlarmDescription"].endswith(f"What to do: docs/runbook.md, {name}")
    assert f"### {name}\n" in RUNBOOK.read_text()
    assert told["TreatMissingData"] == "notBreaching"
    assert told["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"


@pytest.mark.parametrize(
    ("name", "metric", "queue", "threshold"),
    [
        ("DeadLetters", "ApproximateNumberOfMessagesVisible", "DeadLetters", 1),
        ("OldestMessage", "ApproximateAgeOfOldestMessage", "Jobs", 3600),
        ("InFlight", "ApproximateNumberOfMessagesNotVisible", "Jobs", 100_000),
    ],
)
def test_alarms_on_queues(name: str, metric: str, queue: str, threshold: int) -> None:
    told, queue_id = alarm(name), named(template(), "SQS::Queue", queue)[0]
    assert (told["Namespace"], told["MetricName"]) == ("AWS/SQS", metric)
    assert told["Dimensions"] == [{"Name": "QueueName", "Value": {"Fn::GetAtt": [queue_id, "QueueName"]}}]
    assert (told["Statistic"], told["Threshold"], told["EvaluationPeriods"]) == ("Maximum", threshold, 1)


def test_the_page_that_alarms_name_leads_to_the_runbook() -> None:
    assert "runbook.md#an-alarm-rings" in OLD_ADDRESS.read_text()


def test_dead_letters_are_looked_at_every_minute() -> None:
    assert alarm("DeadLetters")["Period"] == 60


def test_waiting_as_long_as_three_visibility_timeouts_is_no_alarm() -> None:
    assert alarm("OldestMessage", timeout="900")["Threshold"] == 3 * 6 * 900


@pytest.mark.parametrize(
    ("name", "periods"),
    [
        ("StoreUnavailable", 2),
        ("LeaseLost", 1),
        ("JobsOverdue", 1),
        ("CompletionLost", 1),
        ("BurialFailed", 1),
        ("Unexpected", 1),
    ],
)
def test_alarms_on_the_worker_s_own_metrics(name: str, periods: int) -> None:
    told = alarm(name)
    assert (told["Namespace"], told["MetricName"], told["Statistic"]) == ("onejob", name, "Sum")
    assert told["Dimensions"] == [{"Name": "service", "Value": "LambdaIdempotencyStack"}]
    assert (told["Threshold"], told["EvaluationPeriods"], told["Period"]) == (1, periods, 300)


def test_the_worker_emits_them_under_that_namespace_and_service() -> None:
    variables = only(template(), "Lambda::Function")["Environment"]["Variables"]
    assert variables["POWERTOOLS_METRICS_NAMESPACE"] == "onejob"
    assert variables["POWERTOOLS_SERVICE_NAME"] == "LambdaIdempotencyStack"
    telemetry = (PROJECT / "src" / "adapters" / "telemetry.py").read_text()
    for metric in own_metrics():
        assert f'"{metric}"' in telemetry, metric


def own_metrics() -> set[str]:
    """Those of the namespace `onejob` that alarms and dashboard look at."""
    made = template()
    names = set(_metric_names([one["Properties"] for one in resources(made, "CloudWatch::Alarm").values()]))
    names |= set(re.findall(r'\["onejob","(\w+)"', json.dumps(only(made, "CloudWatch::Dashboard")).replace("\\", "")))
    assert {"JobsExecuted", "JobsFailed", "LeaseLost", "BurialFailed"} <= names
    return names


def _metric_names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("Namespace") == "onejob":
            yield value["MetricName"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _metric_names(one)


@pytest.mark.parametrize(
    ("name", "metric", "percent"), [("JobsFailed", "jobsFailed", 10), ("Duplicates", "jobsSkipped", 50)]
)
def test_alarms_on_rates(name: str, metric: str, percent: int) -> None:
    told = alarm(name)
    (rate,) = [one for one in told["Metrics"] if "Expression" in one]
    outcomes = ["jobsExecuted", "jobsSkipped", "jobsRejected", "jobsFailed"]
    assert rate["Expression"] == f"IF(SUM(METRICS()) >= 20, 100 * {metric} / SUM(METRICS()), 0)"
    assert {one["Id"] for one in told["Metrics"] if "MetricStat" in one} == set(outcomes)
    assert (told["Threshold"], told["EvaluationPeriods"]) == (percent, 3)


@pytest.mark.parametrize(
    ("name", "metric", "periods"), [("FunctionErrors", "Errors", 1), ("Throttles", "Throttles", 3)]
)
def test_alarms_on_the_function(name: str, metric: str, periods: int) -> None:
    told = alarm(name)
    (function_id,) = resources(template(), "Lambda::Function")
    assert (told["Namespace"], told["MetricName"]) == ("AWS/Lambda", metric)
    assert told["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": function_id}}]
    assert (told["Statistic"], told["Threshold"], told["EvaluationPeriods"]) == ("Sum", 1, periods)


def test_alarms_call_someone_if_told_whom() -> None:
    made = template(alarm_email="ops@example.com")
    (topic,) = resources(made, "SNS::Topic")
    subscription = only(made, "SNS::Subscription")
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "ops@example.com")
    assert subscription["TopicArn"] == {"Ref": topic}
    for one in resources(made, "CloudWatch::Alarm").values():
        assert one["Properties"]["AlarmActions"] == one["Properties"]["OKActions"] == [{"Ref": topic}]
    assert not resources(template(), "SNS::Topic")


def test_the_topic_lets_alarms_publish_and_refuses_plain_text() -> None:
    made = template(alarm_email="ops@example.com")
    (topic,) = resources(made, "SNS::Topic")
    statements = only(made, "SNS::TopicPolicy")["PolicyDocument"]["Statement"]
    (allowed,) = [one for one in statements if one["Effect"] == "Allow"]
    assert (allowed["Principal"], allowed["Action"]) == ({"Service": "cloudwatch.amazonaws.com"}, "sns:Publish")
    assert allowed["Resource"] == {"Ref": topic}
    assert allowed["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    denied = [one for one in statements if one["Effect"] == "Deny"]
    assert [one["Condition"] for one in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


def test_the_dashboard_shows_alarms_outcomes_queues_and_function() -> None:
    body = only(template(), "CloudWatch::Dashboard")["DashboardBody"]
    text = json.dumps(body)
    for shown in (
        "JobsExecuted",
        "JobsDeferred",
        "CompletionLost",
        "BurialFailed",
        "ApproximateAgeOfOldestMessage",
        "Duration",
    ):
        assert shown in text, shown
    for name in resources(template(), "CloudWatch::Alarm"):
        assert name in text
