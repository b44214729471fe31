"""`LambdaIdempotencyStack`: one worker, and where alarms go."""

from dataclasses import replace
from typing import Any, Final

from aws_cdk import Annotations, CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.bundle import Bundle
from infra.clean_up import CleanUp
from infra.http_api import HttpApi
from infra.http_props import HttpProps
from infra.idempotent_worker import IdempotentWorker
from infra.permissions import OPERATION_STATEMENTS
from infra.worker_props import Stage, WorkerProps

NAME: Final = "LambdaIdempotencyStack"
NAMES: Final = {Stage.DEV: NAME, Stage.PROD: f"{NAME}-prod"}
"""A stack a stage: a deployment of `dev` never takes the protection off what `prod` keeps."""


class LambdaIdempotencyStack(Stack):
    """The worker of this project. Its metrics carry the stack's name as `service`, so that two stacks do not mix."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str = NAME,
        *,
        props: WorkerProps,
        bundle: Bundle,
        key_arn: str | None = None,
        stack_name: str | None = None,
        http: HttpProps | None = None,
        clean_up_hours: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Runs each job's effect once: SQS, Lambda, DynamoDB (onejob)",
            stack_name=stack_name or NAMES[props.stage],
            termination_protection=props.stage is Stage.PROD,
            **options,
        )
        self.alarm_topic = self._topic(props.alarm_email) if props.alarm_email else None
        self.worker = IdempotentWorker(
            self,
            "Worker",
            props=replace(props, service=self.stack_name),
            bundle=bundle,
            key=kms.Key.from_key_arn(self, "Key", key_arn) if key_arn else None,
            alarm_topic=self.alarm_topic,
        )
        self.http = self._http_api(http, bundle) if http else None
        self.clean_up = (
            CleanUp(
                self, "CleanUp", worker=self.worker, bundle=bundle, hours=clean_up_hours, alarm_topic=self.alarm_topic
            )
            if clean_up_hours
            else None
        )
        for statement in OPERATION_STATEMENTS:
            self.worker.role.add_to_policy(statement)
            if self.http:
                self.http.role.add_to_policy(statement)
        for name, value, meaning in (
            ("QueueUrl", self.worker.queue.queue_url, "send jobs here"),
            ("IdempotencyTableName", self.worker.table.table_name, "a record for each job"),
            ("WorkerLogGroupName", self.worker.log_group.log_group_name, "a line for each outcome"),
            ("DeadLetterQueueUrl", self.worker.dead_letter_queue.queue_url, "what was rejected, with the reason"),
            ("WorkerFunctionName", self.worker.function.function_name, "the worker"),
            (
                "EventSourceMappingId",
                self.worker.event_source_mapping.event_source_mapping_id,
                "disable this to stop the worker (docs/runbook.md)",
            ),
        ):
            CfnOutput(self, name, value=value, description=meaning)

        if props.stage is Stage.PROD and props.alarm_email is None:
            Annotations.of(self).add_warning_v2("onejob:alarm-email", "alarm-email is not set: alarms call nobody")

    def _http_api(self, props: HttpProps, bundle: Bundle) -> HttpApi:
        api = HttpApi(self, "Http", props=props, worker=self.worker, bundle=bundle, alarm_topic=self.alarm_topic)
        CfnOutput(self, "HttpUrl", value=api.url.url, description="POST jobs here, signed (docs/http.md)")
        CfnOutput(self, "HttpLogGroupName", value=api.log_group.log_group_name, description="the HTTP API's lines")
        return api

    def _topic(self, email: str) -> sns.Topic:
        topic = sns.Topic(self, "AlarmTopic", enforce_ssl=True)
        topic.add_to_resource_policy(  # a topic with a policy has lost the one that let its account's alarms publish
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": self.account}},
            )
        )
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic
