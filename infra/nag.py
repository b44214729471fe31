"""cdk-nag's rules over the stack, and why a few of its findings stand."""

from typing import Final

from aws_cdk import Acknowledgment, App, Validations
from aws_cdk import aws_lambda as lambda_
from cdk_nag import AwsSolutionsChecks, ServerlessChecks
from constructs import IConstruct

from infra.clean_up import CleanUp
from infra.http_api import HttpApi
from infra.idempotent_worker import IdempotentWorker
from infra.stack import LambdaIdempotencyStack

NO_QUEUE: Final = "serves asynchronous invocations; mappings and URLs invoke synchronously, and the queue has its own"


def check(app: App, stack: LambdaIdempotencyStack) -> None:
    """Add the rule packs to the app. A finding without a reason here stops the synth."""
    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    for one in app.node.find_all():
        if isinstance(one, IdempotentWorker):
            _accept_of(one)
        if isinstance(one, HttpApi):
            _accept_of_function(one.function, NO_QUEUE)
        if isinstance(one, CleanUp):
            _accept_of_clean_up(one)
    if stack.alarm_topic is not None:
        _accept(
            stack.alarm_topic,
            "Serverless::Serverless-SNSRedrivePolicy",
            "a notice that an e-mail server refuses is not worth a queue: the alarm stays on the dashboard",
        )


def _accept_of_function(function: lambda_.Function, no_queue: str) -> None:
    python = "3.13 is the Python that the project is tested with, and that the bundle's bytecode is made by"
    _accept(function, "AwsSolutions::AwsSolutions-L1", python)
    _accept(function, "Serverless::Serverless-LambdaLatestVersion", python)
    _accept(function, "Serverless::Serverless-LambdaDLQ", no_queue)
    _accept(
        function,
        "Serverless::Serverless-LambdaTracing",
        "it imports no tracing SDK: half a second of cold start; the worker's log lines carry job and message ids",
    )


def _accept_of(worker: IdempotentWorker) -> None:
    _accept_of_function(worker.function, NO_QUEUE)
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


def _accept_of_clean_up(clean_up: CleanUp) -> None:
    next_run = "nothing is lost with a run that failed: an alarm tells, and the next one does its work"
    _accept_of_function(clean_up.function, next_run)
    _accept(clean_up.function, "Serverless::Serverless-LambdaAsyncFailureDestination", next_run)
    _accept(clean_up.rule, "Serverless::Serverless-EventBusDLQ", next_run)


def _accept(construct: IConstruct, rule: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=rule, reason=reason))
