"""The construct in a stack of yours: two workers on one table, settings of your operations, what it refuses."""

from pathlib import Path

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template

from infra import nag
from infra.bundle import Bundle, build
from infra.idempotent_worker import IdempotentWorker
from infra.stack import LambdaIdempotencyStack
from infra.worker_props import Architecture, WorkerProps, WorkerPropsError
from tests.support.template import KEY, app, named, resources


@pytest.fixture
def root() -> App:
    return app({})


@pytest.fixture
def bundle() -> Bundle:
    return build(Architecture.ARM64)


def test_two_workers_on_one_table(root: App, bundle: Bundle) -> None:
    stack = Stack(root, "Two")
    first = IdempotentWorker(
        stack, "Invoices", props=WorkerProps(namespace="invoices", service="invoices"), bundle=bundle
    )
    IdempotentWorker(
        stack,
        "Mails",
        props=WorkerProps(namespace="mails", service="mails", fifo=True),
        bundle=bundle,
        table=first.table,
    )
    made = Template.from_stack(stack).to_json()
    (table,) = resources(made, "DynamoDB::Table")
    told = [one["Properties"]["Environment"]["Variables"] for one in resources(made, "Lambda::Function").values()]
    assert [one["IDEMPOTENCY_TABLE"] for one in told] == [{"Ref": table}] * 2
    assert {one["IDEMPOTENCY_NAMESPACE"] for one in told} == {"invoices", "mails"}
    assert len(resources(made, "SQS::Queue")) == 4
    for name in ("InvoicesRole", "MailsRole"):
        policy = named(made, "IAM::Policy", name)[1]["Properties"]["PolicyDocument"]
        assert {"Fn::GetAtt": [table, "Arn"]} in [one["Resource"] for one in policy["Statement"]]
    names = [one["Properties"]["AlarmName"] for one in resources(made, "CloudWatch::Alarm").values()]
    assert len(names) == len(set(names)) == 26


def test_a_second_worker_in_the_stack_passes_the_checks(root: App, bundle: Bundle) -> None:
    made = LambdaIdempotencyStack(root, props=WorkerProps(), bundle=bundle)
    IdempotentWorker(
        made, "Mails", props=WorkerProps(namespace="mails", service="mails"), bundle=bundle, table=made.worker.table
    )
    nag.check(root, made)
    root.synth()


def test_two_workers_under_one_name_would_mix_their_metrics(root: App, bundle: Bundle) -> None:
    stack = Stack(root, "Mine")
    IdempotentWorker(stack, "First", props=WorkerProps(), bundle=bundle)
    with pytest.raises(WorkerPropsError, match=r"service='onejob' is that of Mine/First"):
        IdempotentWorker(stack, "Second", props=WorkerProps(namespace="other"), bundle=bundle)


def test_who_shares_an_encrypted_table_may_use_its_key(root: App, bundle: Bundle) -> None:
    stack = Stack(root, "Mine")
    key = kms.Key.from_key_arn(stack, "Key", KEY)
    first = IdempotentWorker(stack, "First", props=WorkerProps(), bundle=bundle, key=key)
    IdempotentWorker(stack, "Second", props=WorkerProps(service="second"), bundle=bundle, table=first.table)
    made = Template.from_stack(stack).to_json()
    policy = named(made, "IAM::Policy", "SecondRole")[1]["Properties"]["PolicyDocument"]
    assert [one["Action"] for one in policy["Statement"] if one["Resource"] == KEY] == ["kms:Decrypt"]


def test_settings_of_your_operations_reach_the_function(root: App, bundle: Bundle) -> None:
    stack = Stack(root, "Mine")
    IdempotentWorker(stack, "Worker", props=WorkerProps(), bundle=bundle, environment={"PAYMENTS_URL": "https://pay"})
    (function,) = resources(Template.from_stack(stack).to_json(), "Lambda::Function").values()
    assert function["Properties"]["Environment"]["Variables"]["PAYMENTS_URL"] == "https://pay"


@pytest.mark.parametrize(
    "name", ["IDEMPOTENCY_TABLE", "MAX_ATTEMPTS", "DEAD_LETTER_QUEUE_URL", "POWERTOOLS_METRICS_DISABLED"]
)
def test_settings_of_the_worker_follow_from_its_props(root: App, bundle: Bundle, name: str) -> None:
    with pytest.raises(WorkerPropsError, match=name):
        IdempotentWorker(Stack(root, "Mine"), "Worker", props=WorkerProps(), bundle=bundle, environment={name: "1"})


def test_what_the_worker_would_refuse_at_its_start_is_refused_at_synth(root: App, bundle: Bundle) -> None:
    with pytest.raises(WorkerPropsError, match=r"IDEMPOTENCY_NAMESPACE='a b'"):
        IdempotentWorker(Stack(root, "Mine"), "Worker", props=WorkerProps(namespace="a b"), bundle=bundle)


def test_a_bundle_for_another_processor_is_refused(root: App) -> None:
    bundle = Bundle(Path("unused"), Architecture.X86_64)
    with pytest.raises(WorkerPropsError, match=r"architecture=arm64.*x86_64"):
        IdempotentWorker(Stack(root, "Mine"), "Worker", props=WorkerProps(), bundle=bundle)


def test_lambda_managed_instances_are_refused(root: App, bundle: Bundle) -> None:
    worker = IdempotentWorker(Stack(root, "Mine"), "Worker", props=WorkerProps(), bundle=bundle)
    resource = worker.function.node.default_child
    assert isinstance(resource, lambda_.CfnFunction)
    resource.capacity_provider_config = lambda_.CfnFunction.CapacityProviderConfigProperty(
        lambda_managed_instances_capacity_provider_config=lambda_.CfnFunction.LambdaManagedInstancesCapacityProviderConfigProperty(
            capacity_provider_arn="arn:aws:lambda:us-east-1:123456789012:capacity-provider:mine"
        )
    )
    with pytest.raises(RuntimeError, match="Managed Instances"):
        root.synth()
