"""Situations reported in public, by their ids: what the stack must and must not be."""

import pytest

from infra.worker_props import WorkerProps, WorkerPropsError
from tests.support.template import named, only, resources, template


def test_D16_throttled_deliveries_do_not_bury_what_never_ran() -> None:
    made = template(reserved_concurrency="10")
    mapping = only(made, "Lambda::EventSourceMapping")
    assert named(made, "SQS::Queue", "Jobs")[1]["Properties"]["RedrivePolicy"]["maxReceiveCount"] >= 20
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    reserved = only(made, "Lambda::Function")["ReservedConcurrentExecutions"]
    assert 2 <= mapping["ScalingConfig"]["MaximumConcurrency"] <= min(1000, reserved)
    for wrong in ({"max_receives": 1}, {"reserved_concurrency": 5}, {"concurrency": 1}, {"reserved_concurrency": 0}):
        with pytest.raises(WorkerPropsError):
            WorkerProps(**wrong)  # type: ignore[arg-type]


def test_D17_visibility_is_at_least_six_timeouts_and_the_window() -> None:
    assert WorkerProps(timeout=30, batch_window=5).visibility_timeout >= 185
    with pytest.raises(WorkerPropsError, match=r"visibility=184 .* timeout=30 .* batch-window=5"):
        WorkerProps(timeout=30, batch_window=5, visibility=184)


def test_D24_the_alarm_on_dead_letters_sees_those_that_sqs_moved_too() -> None:
    made = template()
    (alarm,) = [
        one["Properties"]
        for one in resources(made, "CloudWatch::Alarm").values()
        if one["Properties"]["AlarmName"].endswith("-DeadLetters")
    ]
    assert (alarm["MetricName"], alarm["Threshold"]) == ("ApproximateNumberOfMessagesVisible", 1)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
