"""What takes a visibility timeout, and the end: runs last, on what the first test had sent."""

from typing import Any

from tests.e2e.conftest import Deployed
from tests.support.deployed import Watched


def test_a_job_killed_by_the_time_out_is_taken_over_and_completes(worker: Watched) -> None:
    worker.until_events("hanging", "business_operation_executed")
    (line,) = worker.lines("hanging")
    assert (line["attempt"], line["receives"]) == (2, 2)
    record = worker.records()["hanging"]
    assert (record["status"], record["attempts"], record["data"]) == ("COMPLETED", 2, '{"attempt":2}')


def test_nothing_is_left_in_the_queue(worker: Watched) -> None:
    worker.until(lambda: worker.counts() == (0, 0), worker.counts)


def everything(worker: Watched) -> dict[str, list[str]]:
    """What there is in the account, but for what bootstrapping made."""

    def names(service: str, request: str, answer: str, name: str | None, **arguments: Any) -> list[str]:
        told = getattr(worker.client(service), request)(**arguments).get(answer, [])
        return [one[name] if name else one for one in told]

    live = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "DELETE_FAILED", "ROLLBACK_COMPLETE"]
    found = {
        "stacks": names("cloudformation", "list_stacks", "StackSummaries", "StackName", StackStatusFilter=live),
        "queues": names("sqs", "list_queues", "QueueUrls", None),
        "tables": names("dynamodb", "list_tables", "TableNames", None),
        "functions": names("lambda", "list_functions", "Functions", "FunctionName"),
        "mappings": names("lambda", "list_event_source_mappings", "EventSourceMappings", "UUID"),
        "logs": names("logs", "describe_log_groups", "logGroups", "logGroupName"),
        "alarms": names("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
        "dashboards": names("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
        "roles": names("iam", "list_roles", "Roles", "RoleName"),
    }
    return {
        kind: [name for name in some if not name.startswith(("cdk-", "CDKToolkit"))] for kind, some in found.items()
    }


def test_destroy_leaves_nothing(deployed: Deployed) -> None:
    before = everything(deployed.watched)
    assert all(before.values()), before
    assert (len(before["queues"]), len(before["alarms"])) == (2, 19)
    deployed.deployment.destroy()
    assert not any(everything(deployed.watched).values())
