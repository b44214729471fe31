"""The worker's metrics and alarms. What each alarm means and asks for stands in docs/runbook.md, by its name."""

from typing import Final

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.worker_props import WorkerProps

PERIOD: Final = Duration.minutes(5)
IN_FLIGHT: Final = 100_000
"""SQS stops delivering at 120,000 messages in flight, and what is deferred or backs off is in flight too."""
LEAST_AGE_SECONDS: Final = 3600
ENOUGH_JOBS: Final = 20
"""Rates of fewer jobs in a period say nothing."""
FAILED_PERCENT: Final = 10
DUPLICATE_PERCENT: Final = 50

_OUTCOMES: Final = ("JobsExecuted", "JobsSkipped", "JobsRejected", "JobsFailed")


def alarm(
    scope: Construct,
    name: str,
    prefix: str,
    description: str,
    metric: cloudwatch.IMetric,
    topic: sns.ITopic | None,
    threshold: float = 1,
    periods: int = 1,
) -> cloudwatch.Alarm:
    """`{prefix}-{name}`: goes off when so many periods of the last ones all reach the threshold. `topic` hears of it,
    and of its end.
    """
    made = cloudwatch.Alarm(
        scope,
        name,
        alarm_name=f"{prefix}-{name}",
        alarm_description=description,
        metric=metric,
        threshold=threshold,
        evaluation_periods=periods,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    if topic is not None:
        action = actions.SnsAction(topic)
        made.add_alarm_action(action)
        made.add_ok_action(action)
    return made


def own_metric(name: str, namespace: str, service: str) -> cloudwatch.Metric:
    """One that the function's own code emits (docs/observe.md), summed."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map={"service": service},
        statistic="Sum",
        period=PERIOD,
    )


class WorkerAlarms(Construct):
    """The alarms of one worker; `topic` is told when one goes off and when it is over."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        props: WorkerProps,
        namespace: str,
        queue: sqs.Queue,
        dead_letter_queue: sqs.Queue,
        function: lambda_.Function,
        topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._prefix = f"{Stack.of(self).stack_name}-{scope.node.id}"
        self._namespace, self._service, self._topic = namespace, props.service, topic
        self.all: dict[str, cloudwatch.Alarm] = {}
        self.dead_letters = dead_letter_queue.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum"
        )
        self.age = queue.metric_approximate_age_of_oldest_message(period=PERIOD, statistic="Maximum")
        self.visible = queue.metric_approximate_number_of_messages_visible(period=PERIOD, statistic="Maximum")
        self.in_flight = queue.metric_approximate_number_of_messages_not_visible(period=PERIOD, statistic="Maximum")
        self.outcomes = {name: self.metric(name) for name in (*_OUTCOMES, "JobsDeferred")}
        self.failed_percent = self._percent("JobsFailed", "failed jobs (%)")
        self.duplicate_percent = self._percent("JobsSkipped", "duplicates (%)")
        self.errors = function.metric_errors(period=PERIOD)
        self.throttles = function.metric_throttles(period=PERIOD)

        age = max(LEAST_AGE_SECONDS, 3 * props.visibility_timeout)
        self._alarm("DeadLetters", self.dead_letters, 1, "a message is in the dead-letter queue")
        self._alarm("OldestMessage", self.age, age, f"a message has waited {age} s: the worker does not keep up")
        self._alarm("InFlight", self.in_flight, IN_FLIGHT, "SQS stops delivering at 120,000 messages in flight")
        self._alarm("JobsFailed", self.failed_percent, FAILED_PERCENT, f"{FAILED_PERCENT} % of jobs fail", periods=3)
        self._alarm("StoreUnavailable", self.metric("StoreUnavailable"), 1, "the table does not answer", periods=2)
        self._alarm("LeaseLost", self.metric("LeaseLost"), 1, "a worker outlived its lease: an effect may be doubled")
        self._alarm(
            "JobsOverdue", self.metric("JobsOverdue"), 1, "an operation hangs: its job is left to another worker"
        )
        self._alarm("CompletionLost", self.metric("CompletionLost"), 1, "an effect happened and is not recorded")
        self._alarm("BurialFailed", self.metric("BurialFailed"), 1, "a rejected message could not be buried")
        self._alarm("Unexpected", self.metric("Unexpected"), 1, "what nobody foresaw broke, or nothing could start")
        self._alarm(
            "Duplicates", self.duplicate_percent, DUPLICATE_PERCENT, "most deliveries are duplicates", periods=3
        )
        self._alarm("FunctionErrors", self.errors, 1, "the function failed to start, timed out or crashed")
        self._alarm("Throttles", self.throttles, 1, "Lambda throttles the worker, which uses up receives", periods=3)

    def metric(self, name: str) -> cloudwatch.Metric:
        """One of the worker's own."""
        return own_metric(name, self._namespace, self._service)

    def _percent(self, name: str, label: str) -> cloudwatch.MathExpression:
        """No metric need ever have been emitted: a sum over all of them passes over those that are missing."""
        ids = {outcome: f"{outcome[0].lower()}{outcome[1:]}" for outcome in _OUTCOMES}
        total = "SUM(METRICS())"
        return cloudwatch.MathExpression(
            expression=f"IF({total} >= {ENOUGH_JOBS}, 100 * {ids[name]} / {total}, 0)",
            using_metrics={ids[outcome]: self.outcomes[outcome] for outcome in _OUTCOMES},
            label=label,
            period=PERIOD,
        )

    def _alarm(
        self, name: str, metric: cloudwatch.IMetric, threshold: float, meaning: str, *, periods: int = 1
    ) -> None:
        description = f"{meaning}. What to do: docs/runbook.md, {name}"
        self.all[name] = alarm(self, name, self._prefix, description, metric, self._topic, threshold, periods)
