"""What the worker's role may do: what the worker calls, what Lambda's poller and log agent call in its name, no more.

`tests/infra/test_permissions.py` records the worker's calls and compares.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs

TABLE_ACTIONS: Final = ("dynamodb:GetItem", "dynamodb:UpdateItem")
SOURCE_ACTIONS: Final = ("sqs:ChangeMessageVisibility", "sqs:DeleteMessage")
POLLER_ACTIONS: Final = ("sqs:ReceiveMessage", "sqs:GetQueueAttributes")
"""Beside `sqs:DeleteMessage`: the event source mapping polls under the function's role."""
DEAD_LETTER_ACTIONS: Final = ("sqs:SendMessage",)
LOG_ACTIONS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")
TABLE_KEY_ACTION: Final = "kms:Decrypt"
KEY_ACTIONS: Final = (TABLE_KEY_ACTION, "kms:GenerateDataKey")
"""SQS wants both of a sender, the first of a receiver; DynamoDB the first of whoever reads or writes an item."""


OPERATION_STATEMENTS: Sequence[iam.PolicyStatement] = ()
"""What your operations call is added here, and so to what the test expects."""


def statements(
    *,
    table: dynamodb.ITable,
    source: sqs.IQueue,
    dead_letters: sqs.IQueue,
    log_group: logs.ILogGroup,
    key: kms.IKey | None,
) -> Iterator[iam.PolicyStatement]:
    """One statement a resource."""
    yield iam.PolicyStatement(actions=[*TABLE_ACTIONS], resources=[table.table_arn])
    yield iam.PolicyStatement(actions=[*SOURCE_ACTIONS, *POLLER_ACTIONS], resources=[source.queue_arn])
    yield iam.PolicyStatement(actions=[*DEAD_LETTER_ACTIONS], resources=[dead_letters.queue_arn])
    yield iam.PolicyStatement(actions=[*LOG_ACTIONS], resources=[log_group.log_group_arn])
    yield from _of_keys(key, table)


def door_statements(
    *, table: dynamodb.ITable, jobs: sqs.IQueue, log_group: logs.ILogGroup, key: kms.IKey | None
) -> Iterator[iam.PolicyStatement]:
    """Of the HTTP API: it answers from the table, and sends what is to be answered later."""
    yield iam.PolicyStatement(actions=[*TABLE_ACTIONS], resources=[table.table_arn])
    yield iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[jobs.queue_arn])
    yield iam.PolicyStatement(actions=[*LOG_ACTIONS], resources=[log_group.log_group_arn])
    yield from _of_keys(key, table)


def _of_keys(key: kms.IKey | None, table: dynamodb.ITable) -> Iterator[iam.PolicyStatement]:
    if key is not None:
        yield iam.PolicyStatement(actions=[*KEY_ACTIONS], resources=[key.key_arn])
    if table.encryption_key is not None and table.encryption_key is not key:  # another worker's
        yield iam.PolicyStatement(actions=[TABLE_KEY_ACTION], resources=[table.encryption_key.key_arn])
