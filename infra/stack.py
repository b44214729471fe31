"""`LambdaIdempotencyStack`: one worker, and where alarms go."""

from dataclasses import replace
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from infra.bundle import Bundle
from infra.idempotent_worker import IdempotentWorker
from infra.worker_props import Stage, WorkerProps

NAME = "LambdaIdempotencyStack"


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
        **options: Any,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Runs each job's effect once: SQS, Lambda, DynamoDB (onejob)",
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
        for name, value, meaning in (
            ("QueueUrl", self.worker.queue.queue_url, "send jobs here"),
            ("IdempotencyTableName", self.worker.table.table_name, "a record for each job"),
            ("WorkerLogGroupName", self.worker.log_group.log_group_name, "a line for each outcome"),
            ("DeadLetterQueueUrl", self.worker.dead_letter_queue.queue_url, "what was rejected, with the reason"),
            ("WorkerFunctionName", self.worker.function.function_name, "the worker"),
            (
                "EventSourceMappingId",
                self.worker.event_source_mapping.event_source_mapping_id,
                "disable this to stop the worker (docs/operations.md)",
            ),
        ):
            CfnOutput(self, name, value=value, description=meaning)

    def _topic(self, email: str) -> sns.Topic:
        topic = sns.Topic(self, "AlarmTopic", enforce_ssl=True)
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic
