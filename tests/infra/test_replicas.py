"""A table that several regions share: refused at synth until it is said whose worker runs."""

from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk.assertions import Template

from infra.bundle import build
from infra.http_api import HttpApi
from infra.http_props import HttpProps
from infra.idempotent_worker import IdempotentWorker
from infra.worker_props import Architecture, WorkerProps, WorkerPropsError
from tests.support.template import app, only

HERE = "eu-central-1"
KEY = dynamodb.Attribute(name="id", type=dynamodb.AttributeType.STRING)


def regional(root: App, region: str | None = HERE) -> Stack:
    return Stack(root, "Regional", env=Environment(account="111122223333", region=region))


def global_table(stack: Stack, **options: Any) -> dynamodb.ITable:
    replicas = [dynamodb.ReplicaTableProps(region=region) for region in ("eu-west-1", "eu-west-2")]
    return dynamodb.TableV2(stack, "Shared", partition_key=KEY, replicas=replicas, **options)


def replicated_table(stack: Stack) -> dynamodb.ITable:
    return dynamodb.Table(
        stack,
        "Shared",
        partition_key=KEY,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        replication_regions=["us-east-1"],
    )


def worker(stack: Stack, table: dynamodb.ITable | None, **props: Any) -> IdempotentWorker:
    return IdempotentWorker(stack, "W", props=WorkerProps(**props), bundle=build(Architecture.ARM64), table=table)


@pytest.mark.parametrize("make", [global_table, replicated_table])
def test_replicas_that_are_eventually_consistent_are_refused(make: Any) -> None:
    root = app({})
    stack = regional(root)
    worker(stack, make(stack))
    with pytest.raises(RuntimeError, match="active-region=REGION says where the worker runs"):
        root.synth()


def test_replicas_that_are_strongly_consistent_are_not() -> None:
    root = app({})
    stack = regional(root)
    worker(stack, global_table(stack, multi_region_consistency=dynamodb.MultiRegionConsistency.STRONG))
    root.synth()


def test_a_table_without_replicas_is_not() -> None:
    root = app({})
    stack = regional(root)
    worker(stack, dynamodb.TableV2(stack, "Alone", partition_key=KEY))
    root.synth()


@pytest.mark.parametrize(("active", "enabled"), [(HERE, True), ("us-east-1", False)])
def test_the_worker_of_the_active_region_runs_and_those_of_the_others_do_not(active: str, enabled: bool) -> None:
    root = app({})
    stack = regional(root)
    worker(stack, global_table(stack), active_region=active)
    assert only(Template.from_stack(stack).to_json(), "Lambda::EventSourceMapping").get("Enabled", True) is enabled


def test_a_door_in_a_passive_region_would_claim_too() -> None:
    stack = regional(app({}))
    made = worker(stack, None, active_region="us-east-1")
    with pytest.raises(WorkerPropsError, match="http=true in a passive region"):
        HttpApi(stack, "Http", props=HttpProps(), worker=made, bundle=build(Architecture.ARM64))


def test_a_region_that_is_not_known_or_none_is_named() -> None:
    with pytest.raises(WorkerPropsError, match="set CDK_DEFAULT_REGION"):
        worker(regional(app({}), None), None, active_region=HERE)
    with pytest.raises(WorkerPropsError, match="active-region='here': expected a region"):
        WorkerProps(active_region="here")
