"""One page to look at: what becomes of jobs, the queues, the function, the alarms."""

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.alarms import PERIOD, WorkerAlarms


def worker_dashboard(scope: Construct, alarms: WorkerAlarms, function: lambda_.Function) -> cloudwatch.Dashboard:
    """Named after the stack and the worker."""

    def graph(
        title: str, *left: cloudwatch.IMetric, right: tuple[cloudwatch.IMetric, ...] = ()
    ) -> cloudwatch.GraphWidget:
        return cloudwatch.GraphWidget(title=title, left=[*left], right=[*right], width=8, height=6)

    troubles = [alarms.metric(name) for name in ("StoreUnavailable", "LeaseLost", "CompletionLost", "BurialFailed")]
    return cloudwatch.Dashboard(
        scope,
        "Dashboard",
        dashboard_name=f"{Stack.of(scope).stack_name}-{scope.node.id}",
        widgets=[
            [cloudwatch.AlarmStatusWidget(alarms=[*alarms.all.values()], width=24, height=3)],
            [
                graph("Jobs", *alarms.outcomes.values()),
                graph("Failed and duplicate", alarms.failed_percent, alarms.duplicate_percent),
                graph("To look at", *troubles),
            ],
            [
                graph("Waiting, in flight", alarms.visible, alarms.in_flight, right=(alarms.age,)),
                graph("Dead letters", alarms.dead_letters),
                graph("Function", alarms.errors, alarms.throttles, right=(function.metric_duration(period=PERIOD),)),
            ],
        ],
    )
