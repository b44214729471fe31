"""cdk-nag's rules over the stack, and why a few of its findings stand."""

from aws_cdk import Acknowledgment, App, Validations
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import IConstruct

from infra.http_door import HttpDoor
from infra.idempotent_worker import IdempotentWorker
from infra.stack import LambdaIdempotencyStack


def check(app: App, stack: LambdaIdempotencyStack) -> None:
    """Add the rule packs to the app. A finding without a reason here stops the synth."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    for worker in app.node.find_all():
        if isinstance(worker, IdempotentWorker):
            _accept_of(worker)
        if isinstance(worker, IdempotentWorker | HttpDoor):
            _accept_function(worker.function)
    if stack.alarm_topic is not None:
        _accept(
            stack.alarm_topic,
            "Serverless::Serverless-SNSRedrivePolicy",
            "a notice that an e-mail server refuses is not worth a queue: the alarm stays on the dashboard",
        )


def _accept_function(function: lambda_.Function) -> None:
    python = "3.13 is the Python that the project is tested with, and that the bundle's bytecode is made by"
    _accept(function, "AwsSolutions::AwsSolutions-L1", python)
    _accept(function, "Serverless::Serverless-LambdaLatestVersion", python)
    _accept(
        function,
        "Serverless::Serverless-LambdaDLQ",
        "serves asynchronous invocations; mappings and URLs invoke synchronously, and the queue has its own",
    )
    _accept(
        function,
        "Serverless::Serverless-LambdaTracing",
        "the worker imports no tracing SDK: half a second of cold start; its log lines carry job and message ids",
    )


def _accept_of(worker: IdempotentWorker) -> None:
    _accept(
        worker.event_source_mapping,
        "Serverless::Serverless-LambdaEventSourceMappingDestination",
        "for streams: from an SQS source Lambda sends nothing there, and the queue's redrive policy does it",
    )
    _accept(
        worker.dead_letter_queue,
        "Serverless::Serverless-SQSRedrivePolicy",
        "it is the dead-letter queue: what is in it waits for a person, and an alarm calls one",
    )


def _accept(construct: IConstruct, rule: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
