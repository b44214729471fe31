"""What `onejob doctor` looks at in the worker's function and in what feeds it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entrypoints.cli.commands.doctor.finding import Asked, Finding, Level, ask, fail, judged, ok, warn

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient

MANAGED = "CapacityProviderConfig"


@dataclass(frozen=True, slots=True)
class FunctionCheck:
    """One function, asked once."""

    name: str
    configuration: Asked
    mappings: Asked
    reserved: Asked

    @classmethod
    def of(cls, client: "LambdaClient", name: str) -> "FunctionCheck":
        subject = f"function {name}"
        return cls(
            name,
            ask(subject, lambda: client.get_function_configuration(FunctionName=name)),
            ask(
                f"event source mapping of {name}",
                lambda: client.list_event_source_mappings(FunctionName=name)["EventSourceMappings"],
            ),
            ask(f"concurrency of {name}", lambda: client.get_function_concurrency(FunctionName=name), level=Level.WARN),
        )

    @property
    def environment(self) -> dict[str, str] | None:
        """The worker's settings; None where they are not known."""
        if self.configuration.trouble:
            return None
        return {
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            **self.configuration.answer.get("Environment", {}).get("Variables", {}),
        }

    @property
    def timeout(self) -> int | None:
        return None if self.configuration.trouble else int(self.configuration.answer["Timeout"])

    @property
    def window(self) -> int:
        return max((int(mapping.get("MaximumBatchingWindowInSeconds") or 0) for mapping in self._feeds), default=0)

    @property
    def queue_arn(self) -> str | None:
        """What it reads; None unless that is one queue."""
        return self._feeds[0]["EventSourceArn"] if len(self._feeds) == 1 else None

    @property
    def _feeds(self) -> list[dict[str, Any]]:
        return [mapping for mapping in self.mappings.answer or () if ":sqs:" in str(mapping.get("EventSourceArn", ""))]

    def findings(self) -> Iterator[Finding]:
        subject = f"function {self.name}"
        if self.configuration.trouble:
            yield self.configuration.trouble
        else:
            yield from self._starts(subject, self.configuration.answer)
        yield self.reserved.trouble or self._may_run(subject)
        if self.mappings.trouble:
            yield self.mappings.trouble
        elif not self._feeds:
            yield fail(subject, "no queue feeds it", "make an event source mapping from the queue (cdk deploy does)")
        for mapping in self._feeds:
            yield from self._is_fed(mapping)

    def _starts(self, subject: str, configuration: dict[str, Any]) -> Iterator[Finding]:
        state = configuration.get("State", "Active")
        text = f"{configuration.get('Runtime')}, time-out {self.timeout} s, {state}"
        if state == "Pending":
            yield warn(subject, text, "wait: it is being made")
        else:
            why = configuration.get("StateReason", "it does not start")
            yield judged(subject, state in ("Active", "Inactive"), text, f"{why}: deploy again")
        if configuration.get(MANAGED):
            yield fail(
                subject,
                "runs on Lambda Managed Instances, where code runs on after a time-out",
                "use Lambda's default kind of function",
            )

    def _may_run(self, subject: str) -> Finding:
        reserved = self.reserved.answer.get("ReservedConcurrentExecutions")
        if reserved == 0:
            return fail(
                subject,
                "reserved concurrency is 0: each delivery is throttled and uses up a receive",
                f"aws lambda delete-function-concurrency --function-name {self.name}; "
                "to stop a worker, disable its event source mapping",
            )
        return ok(subject, "no reserved concurrency" if reserved is None else f"reserved concurrency {reserved}")

    def _is_fed(self, mapping: dict[str, Any]) -> Iterator[Finding]:
        uuid = mapping.get("UUID", "")
        subject = f"event source mapping {uuid}"
        update = f"aws lambda update-event-source-mapping --uuid {uuid}"
        yield judged(
            subject,
            "ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", ()),
            f"answers {', '.join(mapping.get('FunctionResponseTypes', ())) or 'nothing'}, "
            f"batches of {mapping.get('BatchSize')}",
            f"{update} --function-response-types ReportBatchItemFailures: without it failed messages are deleted",
        )
        most = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
        if most is None:
            yield warn(
                subject,
                "has no maximum concurrency: Lambda throttles what is too much, which uses up receives",
                f"{update} --scaling-config MaximumConcurrency=10",
            )
        else:
            yield ok(subject, f"maximum concurrency {most}")
        state = mapping.get("State", "Enabled")
        if state in ("Enabled", "Enabling", "Updating"):
            yield ok(subject, f"is {state}")
        else:
            yield warn(subject, f"is {state}: nothing is received", f"{update} --enabled")
