"""The scheduled clean-up, for a table without TTL, or whose TTL is not relied on. Opt-in: `-c clean-up=24`."""

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarms import PERIOD, alarm
from infra.bundle import Bundle
from infra.idempotent_worker import IdempotentWorker
from infra.permissions import LOG_ACTIONS, TABLE_KEY_ACTION

HANDLER: Final = "entrypoints.cleanup.handler"
TABLE_ACTIONS: Final = ("dynamodb:Scan", "dynamodb:DeleteItem")
TIMEOUT_SECONDS: Final = 900
MARGIN_SECONDS: Final = 30
"""A page of a thousand conditional deletions fits."""


class CleanUp(Construct):
    """A function of its own, with a role that may read the worker's table and delete from it, every `hours` hours.

    Every run begins at the table's beginning. Where its time does not suffice it says so in its log
    (`purge_unfinished`), and where to go on.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        worker: IdempotentWorker,
        bundle: Bundle,
        hours: int,
        alarm_topic: sns.ITopic | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log_group = worker.new_log_group(self)
        self.role = self._role(worker)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=worker.function.architecture,
            code=lambda_.Code.from_asset(str(bundle.folder)),
            handler=HANDLER,
            role=self.role,
            memory_size=worker.props.memory,
            timeout=Duration.seconds(TIMEOUT_SECONDS),
            log_group=self.log_group,
            retry_attempts=0,  # the next run comes anyway
            environment={
                "IDEMPOTENCY_BACKEND": "dynamodb",
                "IDEMPOTENCY_TABLE": worker.table.table_name,
                "DEADLINE_MARGIN_SECONDS": str(MARGIN_SECONDS),
                "POWERTOOLS_SERVICE_NAME": f"{worker.props.service}-clean-up",
            },
        )
        self.rule = events.Rule(
            self,
            "Schedule",
            schedule=events.Schedule.rate(Duration.hours(hours)),
            targets=[targets.LambdaFunction(self.function, retry_attempts=0)],
        )
        self.alarm = alarm(
            self,
            "Errors",
            f"{Stack.of(self).stack_name}-{self.node.id}",
            f"a clean-up failed; the next is within {hours} h. What to do: docs/runbook.md, CleanUp",
            self.function.metric_errors(period=PERIOD, statistic="Sum"),
            alarm_topic,
        )

    def _role(self, worker: IdempotentWorker) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        role.add_to_policy(iam.PolicyStatement(actions=[*TABLE_ACTIONS], resources=[worker.table.table_arn]))
        role.add_to_policy(iam.PolicyStatement(actions=[*LOG_ACTIONS], resources=[self.log_group.log_group_arn]))
        if worker.table.encryption_key is not None:
            key = worker.table.encryption_key.key_arn
            role.add_to_policy(iam.PolicyStatement(actions=[TABLE_KEY_ACTION], resources=[key]))
        return role
