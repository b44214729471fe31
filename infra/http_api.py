"""A worker's HTTP API as a construct: a function with a URL that asks for IAM, on the worker's table and queue."""

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from entrypoints.http_settings import HttpSettings
from entrypoints.settings import SettingError
from infra.bundle import Bundle
from infra.http_alarms import HttpAlarms
from infra.http_props import HttpProps
from infra.idempotent_worker import ARCHITECTURES, METRICS_NAMESPACE, IdempotentWorker, worker_settings
from infra.permissions import door_statements
from infra.replicas import is_passive
from infra.worker_props import WorkerPropsError

HANDLER: Final = "entrypoints.http_api.handler"


class HttpApi(Construct):
    """Runs the worker's operations for whoever may call `url`, once for each Idempotency-Key of a caller.

    It shares the worker's table, namespace and settings, so that a job which either has done is done for both.
    `environment` holds settings of your operations and of the door (`HTTP_TENANT_CLAIM`). Raises `WorkerPropsError`.

    What your operations call is yours to grant, to `role`.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        props: HttpProps,
        worker: IdempotentWorker,
        bundle: Bundle,
        alarm_topic: sns.ITopic | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        props.check_against(worker.props.margin)
        if is_passive(worker, worker.props.active_region):
            raise WorkerPropsError(
                f"http=true in a passive region (active-region={worker.props.active_region}): the door would claim too"
            )
        self.service = f"{worker.props.service}-http"
        self.log_group = worker.new_log_group(self)
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        for statement in door_statements(
            table=worker.table, jobs=worker.queue, log_group=self.log_group, key=worker.key
        ):
            self.role.add_to_policy(statement)
        self.function = lambda_.Function(
            self,
            "Function",
            runtime=lambda_.Runtime.PYTHON_3_13,
            architecture=ARCHITECTURES[worker.props.architecture],
            code=lambda_.Code.from_asset(str(bundle.folder)),
            handler=HANDLER,
            role=self.role,
            memory_size=worker.props.memory,
            timeout=Duration.seconds(props.timeout),
            reserved_concurrent_executions=props.concurrency or None,
            log_group=self.log_group,
            environment={
                **_settings(worker, self.service, environment or {}),
                "IDEMPOTENCY_TABLE": worker.table.table_name,
                "JOBS_QUEUE_URL": worker.queue.queue_url,
            },
        )
        self.url = self.function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        if props.caller is not None:
            self._grant(props.caller)
        self.alarms = HttpAlarms(
            self, "Alarms", service=self.service, namespace=METRICS_NAMESPACE, function=self.function, topic=alarm_topic
        )

    def _grant(self, caller: str) -> None:
        """Both permissions that a function URL asks for (since October 2025), the second one for the URL only: who may
        invoke the function itself may write the event, and with it whom it takes for the caller.
        """
        arn = self.function.function_arn
        lambda_.CfnPermission(
            self,
            "MayCallUrl",
            action="lambda:InvokeFunctionUrl",
            function_name=arn,
            principal=caller,
            function_url_auth_type="AWS_IAM",
        )
        lambda_.CfnPermission(
            self,
            "MayInvokeByUrl",
            action="lambda:InvokeFunction",
            function_name=arn,
            principal=caller,
            invoked_via_function_url=True,
        )


def _settings(worker: IdempotentWorker, service: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Read once as the door will read it: what it would refuse is refused now."""
    if "JOBS_QUEUE_URL" in environment:
        raise WorkerPropsError("environment JOBS_QUEUE_URL: this setting follows from the props or the resources")
    told = worker_settings(worker.props, environment) | {"POWERTOOLS_SERVICE_NAME": service}
    try:
        HttpSettings.from_environment(told)
    except SettingError as error:
        raise WorkerPropsError(str(error)) from error
    return told
