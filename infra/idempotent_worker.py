"""A worker as one construct: queue, dead-letter queue, table, function, event source mapping, alarms, dashboard."""

from collections.abc import Mapping
from typing import Final

import jsii
from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IValidation

from entrypoints.settings import SettingError, Settings
from infra.alarms import WorkerAlarms
from infra.bundle import Bundle
from infra.dashboard import worker_dashboard
from infra.permissions import statements
from infra.replicas import OneRegionClaims, is_passive
from infra.worker_props import DAY, Architecture, Stage, WorkerProps, WorkerPropsError

HANDLER: Final = "entrypoints.sqs_worker.handler"
METRICS_NAMESPACE: Final = "onejob"

ARCHITECTURES: Final = {
    Architecture.ARM64: lambda_.Architecture.ARM_64,
    Architecture.X86_64: lambda_.Architecture.X86_64,
}


class IdempotentWorker(Construct):
    """Messages that arrive in `queue` run once each.

    `bundle` is what `infra.bundle.build` made. `table` shares another worker's records: give each worker a `namespace`
    of its own unless they are to run the same jobs. `key` encrypts queues and table under a key of yours. `alarm_topic`
    is told of every alarm. `environment` holds settings of your operations. Raises `WorkerPropsError`.

    What your operations call is yours to grant, to `role`.
    """

    props: WorkerProps

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        props: WorkerProps,
        bundle: Bundle,
        table: dynamodb.ITable | None = None,
        key: kms.IKey | None = None,
        alarm_topic: sns.ITopic | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        if bundle.architecture is not props.architecture:
            raise WorkerPropsError(
                f"architecture={props.architecture} with a bundle for {bundle.architecture}: it could not start"
            )
        for other in Stack.of(self).node.find_all():
            if isinstance(other, IdempotentWorker) and other is not self and other.props.service == props.service:
                raise WorkerPropsError(
                    f"service={props.service!r} is that of {other.node.path} too: metrics and alarms would mix"
                )
        self.props = props
        self.key = key
        self._removal = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if props.stage is Stage.PROD else RemovalPolicy.DESTROY
        self.dead_letter_queue = self._queue(
            "DeadLetters", retention_days=props.dead_letter_retention_days, allowed=self._only_source()
        )
        self.queue = self._queue(
            "Jobs",
            retention_days=props.queue_retention_days,
            name=self._source_name,
            visibility_timeout=Duration.seconds(props.visibility_timeout),
            dead_letter_queue=sqs.DeadLetterQueue(queue=self.dead_letter_queue, max_receive_count=props.max_receives),
        )
        self.table = self._table() if table is None else table
        self.log_group = self.new_log_group(self)
        self.role = self._role()
        self.function = self._function(bundle, environment or {})
        self.event_source_mapping = self._event_source_mapping()
        self.alarms = WorkerAlarms(
            self,
            "Alarms",
            props=props,
            namespace=METRICS_NAMESPACE,
            queue=self.queue,
            dead_letter_queue=self.dead_letter_queue,
            function=self.function,
            topic=alarm_topic,
        )
        self.dashboard = worker_dashboard(self, self.alarms, self.function)
        self.node.add_validation(OneRegionClaims(self.table, props.active_region))
        self.node.add_validation(_NotOnManagedInstances(self.function))

    @property
    def _source_name(self) -> str | None:
        name = self.props.queue_name
        return f"{name}.fifo" if name and self.props.fifo else name

    def _only_source(self) -> sqs.RedriveAllowPolicy | None:
        """No other queue of the account may name this dead-letter queue as its own. The two queues name each other,
        which CloudFormation cannot make unless the name of one is known beforehand.
        """
        if self._source_name is None:
            return None
        arn = Stack.of(self).format_arn(service="sqs", resource=self._source_name)
        source = sqs.Queue.from_queue_arn(self, "Source", arn)
        return sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.BY_QUEUE, source_queues=[source])

    def _queue(
        self,
        construct_id: str,
        *,
        retention_days: int,
        name: str | None = None,
        allowed: sqs.RedriveAllowPolicy | None = None,
        visibility_timeout: Duration | None = None,
        dead_letter_queue: sqs.DeadLetterQueue | None = None,
    ) -> sqs.Queue:
        fifo = self.props.fifo
        return sqs.Queue(
            self,
            construct_id,
            queue_name=name,
            redrive_allow_policy=allowed,
            retention_period=Duration.days(retention_days),
            visibility_timeout=visibility_timeout,
            dead_letter_queue=dead_letter_queue,
            fifo=fifo or None,
            deduplication_scope=sqs.DeduplicationScope.MESSAGE_GROUP if fifo else None,
            fifo_throughput_limit=sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID if fifo else None,
            encryption=sqs.QueueEncryption.KMS if self.key else sqs.QueueEncryption.SQS_MANAGED,
            encryption_master_key=self.key,
            enforce_ssl=True,
            removal_policy=self._removal,
        )

    def _table(self) -> dynamodb.Table:
        managed = dynamodb.TableEncryption.CUSTOMER_MANAGED if self.key else dynamodb.TableEncryption.AWS_MANAGED
        return dynamodb.Table(
            self,
            "Records",
            partition_key=dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute="expiration",
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=managed,
            encryption_key=self.key,
            deletion_protection=self.props.stage is Stage.PROD,
            removal_policy=self._removal,
        )

    def new_log_group(self, scope: Construct) -> logs.LogGroup:
        """Kept for as long as the worker's."""
        group = logs.LogGroup(scope, "Logs", removal_policy=self._removal)
        resource = group.node.default_child
        assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101 - CDK's own, typed too widely
        resource.retention_in_days = self.props.log_retention_days
        return group

    def _role(self) -> iam.Role:
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        for statement in statements(
            table=self.table,
            source=self.queue,
            dead_letters=self.dead_letter_queue,
            log_group=self.log_group,
            key=self.key,
        ):
            role.add_to_policy(statement)
        return role

    def _function(self, bundle: Bundle, environment: Mapping[str, str]) -> lambda_.Function:
        props = self.props
        return lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=ARCHITECTURES[props.architecture],
            code=lambda_.Code.from_asset(str(bundle.folder)),
            handler=HANDLER,
            role=self.role,
            memory_size=props.memory,
            timeout=Duration.seconds(props.timeout),
            reserved_concurrent_executions=props.reserved_concurrency,
            log_group=self.log_group,
            environment={
                **worker_settings(props, environment),
                "IDEMPOTENCY_TABLE": self.table.table_name,
                "DEAD_LETTER_QUEUE_URL": self.dead_letter_queue.queue_url,
            },
        )

    def _event_source_mapping(self) -> lambda_.EventSourceMapping:
        props = self.props
        mapping = lambda_.EventSourceMapping(
            self,
            "EventSourceMapping",
            target=self.function,
            event_source_arn=self.queue.queue_arn,
            batch_size=props.batch_size,
            max_batching_window=None if props.fifo else Duration.seconds(props.batch_window),
            max_concurrency=props.concurrency,
            report_batch_item_failures=True,
            enabled=False if is_passive(self, props.active_region) else None,
        )
        mapping.node.add_dependency(self.role)  # Lambda asks at once whether the role may receive
        return mapping


def worker_settings(props: WorkerProps, environment: Mapping[str, str]) -> dict[str, str]:
    """The worker's environment, read once as the worker will read it: what it would refuse is refused now."""
    ours = {
        "IDEMPOTENCY_BACKEND": "dynamodb",
        "IDEMPOTENCY_NAMESPACE": props.namespace,
        "IDEMPOTENCY_EXPIRES_AFTER_SECONDS": str(props.retention_days * DAY),
        "JOB_CONCURRENCY": str(props.job_concurrency),
        "MAX_ATTEMPTS": str(props.max_attempts),
        "DEADLINE_MARGIN_SECONDS": str(props.margin),
        "LEASE_GRACE_SECONDS": str(props.grace),
        "LOG_ERROR_MESSAGES": str(props.log_error_messages).lower(),
        "POWERTOOLS_SERVICE_NAME": props.service,
        "POWERTOOLS_METRICS_NAMESPACE": METRICS_NAMESPACE,
    }
    made_here = {*ours, "IDEMPOTENCY_TABLE", "DEAD_LETTER_QUEUE_URL"}
    made_here |= {name for name in environment if name.startswith("POWERTOOLS_METRICS_")}
    for name in sorted(made_here & environment.keys()):
        raise WorkerPropsError(f"environment {name}: this setting follows from the props or the resources")
    told = {**environment, **ours}
    try:
        Settings.from_environment({**told, "IDEMPOTENCY_TABLE": "made-at-deployment"})
    except SettingError as error:
        raise WorkerPropsError(str(error)) from error
    return told


@jsii.implements(IValidation)
class _NotOnManagedInstances:
    """Lambda Managed Instances let code run on after a time-out, beside the attempt that takes over."""

    def __init__(self, function: lambda_.Function) -> None:
        self._function = function

    def validate(self) -> list[str]:
        resource = self._function.node.default_child
        if isinstance(resource, lambda_.CfnFunction) and resource.capacity_provider_config is not None:
            return [
                "a capacity provider (Lambda Managed Instances) lets code run on after a time-out: not for a worker"
            ]
        return []
