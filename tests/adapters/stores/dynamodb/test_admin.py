"""The `StoreAdmin` on a table that is shared with others: what is neither onejob's nor Powertools' stays."""

from datetime import timedelta

import boto3
import pytest

from adapters.system import SystemClock
from tests.support.aws import TABLE, dynamodb_admin, in_process

LONG_AGO = {"N": "1"}


@pytest.mark.parametrize(("status", "deleted"), [("COMPLETED", 1), ("INPROGRESS", 1), ("OPEN", 0)])
def test_a_purge_deletes_records_and_nothing_that_looks_like_one(status: str, deleted: int) -> None:
    with in_process():
        table = boto3.client("dynamodb")
        table.put_item(TableName=TABLE, Item={"id": {"S": "order-1"}, "status": {"S": status}, "expiration": LONG_AGO})
        admin = dynamodb_admin(SystemClock(), timedelta(days=1))
        assert admin.purge().deleted == deleted
        assert table.scan(TableName=TABLE)["Count"] == 1 - deleted
