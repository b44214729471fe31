"""A DynamoDB table in memory that answers as the service does, and keeps a ledger of requests and capacity units."""

from collections import Counter
from dataclasses import dataclass, field
from math import ceil
from threading import Lock
from typing import Any

from benchmarks.conditions import Item, holds, size, updated

type Body = dict[str, Any]


@dataclass
class Ledger:
    """What was asked for: requests by operation, units as DynamoDB bills them, the largest item written."""

    requests: Counter[str] = field(default_factory=Counter)
    write_units: float = 0
    read_units: float = 0
    largest_item: int = 0


@dataclass
class Table:
    """PutItem, UpdateItem, GetItem, DeleteItem on one table; SQS's settling requests are taken and counted."""

    items: dict[str, Item] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    _lock: Lock = field(default_factory=Lock)

    def answer(self, target: str, body: Body) -> tuple[int, Body]:
        """HTTP status and body for a request to `DynamoDB_20120810.Operation` or `AmazonSQS.Operation`."""
        operation = target.rpartition(".")[2]
        with self._lock:
            self.ledger.requests[operation] += 1
            match operation:
                case "PutItem":
                    return self._write(body["Item"]["id"]["S"], body, body["Item"])
                case "UpdateItem" | "DeleteItem":
                    return self._write(body["Key"]["id"]["S"], body, None)
                case "GetItem":
                    return 200, self._read(body)
                case "ChangeMessageVisibilityBatch" | "DeleteMessageBatch":
                    return 200, {"Successful": [{"Id": entry["Id"]} for entry in body["Entries"]], "Failed": []}
        raise ValueError(f"unforeseen request: {target}")

    def _write(self, key: str, body: Body, put: Item | None) -> tuple[int, Body]:
        old = self.items.get(key, {})
        names, values = body.get("ExpressionAttributeNames", {}), body.get("ExpressionAttributeValues", {})
        condition = body.get("ConditionExpression")
        if condition and not holds(condition, old, names, values):
            self._bill(old, old)
            refused: Body = {
                "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
                "message": "The conditional request failed",
            }
            if body.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD" and old:
                refused["Item"] = old
            return 400, refused
        if put is not None:
            new = put
        elif "UpdateExpression" in body:
            new = updated(body["UpdateExpression"], old or body["Key"], names, values)
        else:
            new = {}
        self._bill(old, new)
        if new:
            self.items[key] = new
        else:
            self.items.pop(key, None)
        wanted = {"ALL_OLD": old, "ALL_NEW": new}.get(body.get("ReturnValues", "NONE"))
        return 200, _with_capacity({"Attributes": wanted} if wanted else {}, body)

    def _read(self, body: Body) -> Body:
        item = self.items.get(body["Key"]["id"]["S"], {})
        blocks = max(1, ceil(size(item) / 4096))
        self.ledger.read_units += blocks if body.get("ConsistentRead") else blocks / 2
        return _with_capacity({"Item": item} if item else {}, body)

    def _bill(self, old: Item, new: Item) -> None:
        """A refused write costs as one that lands."""
        largest = max(size(old), size(new))
        self.ledger.largest_item = max(self.ledger.largest_item, largest)
        self.ledger.write_units += max(1, ceil(largest / 1024))


def _with_capacity(answer: Body, body: Body) -> Body:
    if body.get("ReturnConsumedCapacity", "NONE") == "NONE":
        return answer
    return {**answer, "ConsumedCapacity": {"TableName": body["TableName"], "CapacityUnits": 1.0}}
