"""A DynamoDB client in this process, for one table: the requests of the persistence layer, as it makes them.

What it takes, what it answers and what it refuses is checked against the emulator by `test_double.py`.
"""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, NoReturn

from botocore.exceptions import ClientError

from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.dynamodb.record import to_ms, to_seconds
from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store_admin import StoreAdmin
from domain.record import Record
from tests.simulation.backends import Backend, RequestClock
from tests.simulation.plan import Plan
from tests.simulation.world import World

type Item = dict[str, dict[str, Any]]
type Test = Callable[[Item, Mapping[str, str], Mapping[str, Any]], bool]

MAX_ITEM_BYTES: Final = 409_600
_TOKEN: Final = re.compile(r"\s*(#\w+|:\w+|<>|<=|[()<>=,+]|[A-Za-z_]+)")


class DynamoDBDouble:
    """One table with the partition key `id`."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.is_stranger = False
        """Whether somebody else answers, who says 200 to everything."""

    def divert(self, is_stranger: bool) -> None:
        self.is_stranger = is_stranger

    def get_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        ConsistentRead: bool = False,  # noqa: N803
        ReturnConsumedCapacity: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        if self.is_stranger:
            return {}
        found = self.items.get(Key["id"]["S"])
        return _told(found, "Item", TableName, ReturnConsumedCapacity)

    def update_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        UpdateExpression: str,  # noqa: N803
        ConditionExpression: str,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str],  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
        ReturnValuesOnConditionCheckFailure: str = "NONE",  # noqa: N803
        ReturnValues: str = "NONE",  # noqa: N803
        ReturnConsumedCapacity: str = "NONE",  # noqa: N803
    ) -> dict[str, Any]:
        if self.is_stranger:
            return {}
        names, values = ExpressionAttributeNames, ExpressionAttributeValues
        self._validate(f"{UpdateExpression} {ConditionExpression}", names, values)
        key = Key["id"]["S"]
        if not key:
            _refuse("ValidationException", "the key is empty")
        old = self.items.get(key)
        if not _condition(ConditionExpression)(old or {}, names, values):
            is_wanted = old is not None and ReturnValuesOnConditionCheckFailure == "ALL_OLD"
            more = {"Item": deepcopy(old)} if is_wanted else {}
            _refuse("ConditionalCheckFailedException", "The conditional request failed", **more)
        new = _updated(old or {"id": {"S": key}}, UpdateExpression, names, values)
        if _size(new) > MAX_ITEM_BYTES:
            _refuse("ValidationException", "Item size to update has exceeded the maximum allowed size")
        self.items[key] = new
        told = {"ALL_OLD": old, "ALL_NEW": new}.get(ReturnValues)
        return _told(told, "Attributes", TableName, ReturnConsumedCapacity)

    def delete_item(
        self,
        *,
        TableName: str,  # noqa: N803
        Key: Item,  # noqa: N803
        ConditionExpression: str,  # noqa: N803
        ExpressionAttributeNames: Mapping[str, str],  # noqa: N803
        ExpressionAttributeValues: Mapping[str, Any],  # noqa: N803
    ) -> dict[str, Any]:
        names, values = ExpressionAttributeNames, ExpressionAttributeValues
        self._validate(ConditionExpression, names, values)
        key = Key["id"]["S"]
        if not _condition(ConditionExpression)(self.items.get(key) or {}, names, values):
            _refuse("ConditionalCheckFailedException", "The conditional request failed")
        self.items.pop(key, None)
        return {}

    def scan(
        self,
        *,
        TableName: str,  # noqa: N803
        Limit: int,  # noqa: N803
        ConsistentRead: bool = False,  # noqa: N803
        ExclusiveStartKey: Item | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        """A page, in the order of keys. DynamoDB has an order of its own, and nobody may count on it."""
        after = "" if ExclusiveStartKey is None else ExclusiveStartKey["id"]["S"]
        keys = sorted(key for key in self.items if key > after)[:Limit]
        last = {"LastEvaluatedKey": {"id": {"S": keys[-1]}}} if len(keys) == Limit else {}
        return {"Items": [deepcopy(self.items[key]) for key in keys], **last}

    def _validate(self, text: str, names: Mapping[str, str], values: Mapping[str, Any]) -> None:
        used_names, used_values = set(re.findall(r"#\w+", text)), set(re.findall(r":\w+", text))
        if used_names != set(names):
            _refuse("ValidationException", f"attribute names unused or missing: {used_names ^ set(names)}")
        if used_values != set(values):
            _refuse("ValidationException", f"attribute values unused or missing: {used_values ^ set(values)}")


def dynamodb_backend(world: World, plan: Plan) -> Backend:
    clock, retention = RequestClock(), timedelta(seconds=plan.retention)
    double = DynamoDBDouble()
    layer = FencedDynamoDBPersistenceLayer("records", boto3_client=double)

    def put(record: Record) -> None:
        assert record.lease_until is not None
        double.items[str(record.key)] = {
            "id": {"S": str(record.key)},
            "status": {"S": record.status},
            "expiration": {"N": str(to_seconds(record.expires_at))},
            "in_progress_expiration": {"N": str(to_ms(record.lease_until))},
        }

    def delete(key: JobKey) -> None:
        double.items.pop(str(key), None)

    def admin(clock: Clock) -> StoreAdmin:
        return DynamoDBStoreAdmin(layer, clock, retention)

    store = DynamoDBIdempotencyStore(layer, clock, retention)
    return Backend(store, clock, retention, put, delete, admin, divert=double.divert)


def _told(item: Item | None, name: str, table: str, capacity: str) -> dict[str, Any]:
    answer: dict[str, Any] = {} if item is None else {name: deepcopy(item)}
    return answer if capacity == "NONE" else {**answer, "ConsumedCapacity": {"TableName": table, "CapacityUnits": 1.0}}


def _refuse(code: str, message: str, **more: Any) -> NoReturn:
    answer: Any = {"Error": {"Code": code, "Message": message}, **more}
    raise ClientError(answer, "UpdateItem")


def _size(item: Item) -> int:
    return sum(len(name.encode()) + len(str(next(iter(value.values()))).encode()) for name, value in item.items())


def _value(attribute: Mapping[str, Any] | None) -> Any:
    if attribute is None:
        return None
    ((kind, value),) = attribute.items()
    return (kind, Decimal(value)) if kind == "N" else (kind, value)


def _compare(left: Any, operator: str, right: Any) -> bool:
    """Nothing compares with what is missing, or of another type; but it differs from it."""
    if left is None or right is None or left[0] != right[0]:
        return operator == "<>" and not (left is None and right is None)
    if operator in ("<", "<="):
        return bool(left[1] < right[1] or (operator == "<=" and left[1] == right[1]))
    return bool((left[1] == right[1]) == (operator == "="))


@lru_cache(maxsize=256)
def _condition(text: str) -> Test:
    """A parsed ConditionExpression: comparisons, IN, attribute_not_exists, begins_with, AND, OR, NOT, parentheses."""
    return _Parser(_TOKEN.findall(text)).whole()


class _Parser:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._place = 0

    def whole(self) -> Test:
        test = self._or()
        if self._place != len(self._tokens):
            _refuse("ValidationException", f"syntax: {self._tokens[self._place :]}")
        return test

    def _next(self) -> str:
        token = self._tokens[self._place] if self._place < len(self._tokens) else ""
        self._place += 1
        return token

    def _peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def _or(self) -> Test:
        tests = [self._and()]
        while self._peek() == "OR":
            self._next()
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else lambda *at: any(test(*at) for test in tests)

    def _and(self) -> Test:
        tests = [self._not()]
        while self._peek() == "AND":
            self._next()
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else lambda *at: all(test(*at) for test in tests)

    def _not(self) -> Test:
        if self._peek() == "NOT":
            self._next()
            test = self._not()
            return lambda *at: not test(*at)
        return self._one()

    def _one(self) -> Test:
        token = self._next()
        if token == "(":
            test = self._or()
            self._expect(")")
            return test
        if token == "attribute_not_exists":
            (name,) = self._arguments(1)
            return lambda item, names, values: names[name] not in item
        if token == "begins_with":
            name, prefix = self._arguments(2)
            return lambda item, names, values: _begins_with(item.get(names[name]), values[prefix])
        operator, other = self._next(), self._next()
        if operator == "IN":
            return self._among(token)
        return lambda item, names, values: _compare(
            _value(item.get(names[token])),
            operator,
            _value(item.get(names[other]) if other.startswith("#") else values[other]),
        )

    def _among(self, token: str) -> Test:
        """After the opening parenthesis."""
        others = [self._next()]
        while self._next() == ",":
            others.append(self._next())
        return lambda item, names, values: any(
            _compare(_value(item.get(names[token])), "=", _value(values[other])) for other in others
        )

    def _arguments(self, number: int) -> list[str]:
        self._expect("(")
        found = [self._next()]
        for _ in range(number - 1):
            self._expect(",")
            found.append(self._next())
        self._expect(")")
        return found

    def _expect(self, token: str) -> None:
        if self._next() != token:
            _refuse("ValidationException", f"syntax: {token} expected")


def _begins_with(attribute: Mapping[str, Any] | None, prefix: Mapping[str, Any]) -> bool:
    return attribute is not None and "S" in attribute and str(attribute["S"]).startswith(prefix["S"])


def _updated(old: Item, text: str, names: Mapping[str, str], values: Mapping[str, Any]) -> Item:
    """SET with plain values and `if_not_exists(#a, :b) + :c`, REMOVE."""
    new = dict(old)
    sets, _, removes = text.removeprefix("SET ").partition(" REMOVE ")
    for assignment in re.split(r",\s*(?![^(]*\))", sets):
        name, _, what = assignment.partition(" = ")
        new[names[name.strip()]] = _assigned(old, what.strip(), names, values)
    for name in filter(None, (one.strip() for one in removes.split(","))):
        new.pop(names[name], None)
    return new


def _assigned(old: Item, what: str, names: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    first, _, added = what.partition(" + ")
    if match := re.fullmatch(r"if_not_exists\((#\w+), (:\w+)\)", first):
        found: dict[str, Any] = dict(old.get(names[match[1]]) or values[match[2]])
    else:
        found = dict(values[first])
    if not added:
        return found
    if "N" not in found:
        _refuse("ValidationException", "An operand in the update expression has an incorrect data type")
    return {"N": str(Decimal(found["N"]) + Decimal(values[added]["N"]))}
