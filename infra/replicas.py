"""A table with replicas in other regions: who may claim there. A condition is checked on one replica alone: with
eventual consistency two regions can both claim a job.
"""

from typing import Final

import jsii
from aws_cdk import CfnResource, Stack, Token
from aws_cdk import aws_dynamodb as dynamodb
from constructs import IConstruct, IValidation

from infra.worker_props import WorkerPropsError

REPLICA: Final = "Custom::DynamoDBReplica"
"""What a `dynamodb.Table` makes for each of its `replication_regions`."""


def is_passive(construct: IConstruct, active_region: str | None) -> bool:
    """Whether this stack's workers must not run. Raises `WorkerPropsError` where its region is not known at synth."""
    if active_region is None:
        return False
    region = Stack.of(construct).region
    if Token.is_unresolved(region):
        raise WorkerPropsError(
            f"active-region={active_region} in a stack whose region is not known: set CDK_DEFAULT_REGION, or its env"
        )
    return region != active_region


def has_eventual_replicas(table: dynamodb.ITable) -> bool:
    """Whether the table, as far as this app makes it, has replicas that are not strongly consistent."""
    made = table.node.default_child
    if isinstance(made, dynamodb.CfnGlobalTable):
        resolve = Stack.of(made).resolve  # both may be lazy
        return len(resolve(made.replicas)) > 1 and resolve(made.multi_region_consistency) != "STRONG"
    return any(isinstance(one, CfnResource) and one.cfn_resource_type == REPLICA for one in table.node.find_all())


@jsii.implements(IValidation)
class OneRegionClaims:
    """Replicas are refused unless `active_region` says in which region the worker runs."""

    def __init__(self, table: dynamodb.ITable, active_region: str | None) -> None:
        self._table = table
        self._active_region = active_region

    def validate(self) -> list[str]:
        if self._active_region is None and has_eventual_replicas(self._table):
            return [
                "the table has replicas that are eventually consistent: workers in two regions could both claim a job. "
                "active-region=REGION says where the worker runs, and that the others are passive (docs/stores.md)"
            ]
        return []
