"""The HTTP API's alarms. What each means and asks for stands in docs/runbook.md, by its name."""

from typing import Final

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.alarms import PERIOD, alarm, own_metric

_TOLD: Final = {
    "StoreUnavailable": ("the table does not answer", 2),
    "LeaseLost": ("a request outlived its lease: an effect may be doubled", 1),
    "CompletionLost": ("an effect happened and is not recorded", 1),
    "Unexpected": ("what nobody foresaw broke", 1),
}
"""Metrics of the door's own, what they say, and for how many periods."""


class HttpAlarms(Construct):
    """The alarms of one door; `topic` is told when one goes off and when it is over."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        service: str,
        namespace: str,
        function: lambda_.Function,
        topic: sns.ITopic | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._prefix, self._topic = f"{Stack.of(self).stack_name}-{scope.node.id}", topic
        for name, (meaning, periods) in _TOLD.items():
            metric = own_metric(name, namespace, service)
            self._alarm(name, metric, meaning, periods)
        errors, throttles = function.metric_errors(period=PERIOD), function.metric_throttles(period=PERIOD)
        self._alarm("FunctionErrors", errors, "the function failed to start, timed out or crashed", 1)
        self._alarm("Throttles", throttles, "Lambda throttles the door: callers are answered 429", 3)

    def _alarm(self, name: str, metric: cloudwatch.IMetric, meaning: str, periods: int) -> None:
        description = f"{meaning}. What to do: docs/runbook.md, {name}"
        alarm(self, name, self._prefix, description, metric, self._topic, periods=periods)
