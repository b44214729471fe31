"""Items that other tools left in a store: a record with one value that onejob never writes there.

What an item is like is compared as it is stored. Imports each technology where it is used.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

Oddity = tuple[str, Any]
"""A field, and the value that it gets; None: the field is missing."""


class ForeignItems(Protocol):
    """How a backend's items are made odd, by name (`str` of a key)."""

    certain: ClassVar[Sequence[Oddity]]
    """Each of these makes a finished record foreign for certain."""

    def spoil(self, name: str, oddity: Oddity) -> None: ...

    def remove(self, name: str) -> None: ...

    def stored(self) -> dict[str, Any]:
        """Everything in the store, by name, as it is stored."""
        ...


class DynamoDBItems:
    """The table of tests/support/aws.py."""

    certain: ClassVar[Sequence[Oddity]] = [
        ("status", None),
        ("status", {"S": "OPEN"}),
        ("status", {"SS": ["COMPLETED"]}),
        ("expiration", None),
        ("expiration", {"S": "2020-01-01"}),
        ("expiration", {"S": "1"}),
        ("expiration", {"B": b"1"}),
        ("expiration", {"N": "1E100"}),
        ("expiration", {"N": "-1"}),
        ("expiration", {"BOOL": True}),
        ("expiration", {"NULL": True}),
        ("expiration", {"NS": ["1"]}),
        ("expiration", {"L": []}),
        ("expiration", {"M": {}}),
        ("in_progress_expiration", {"S": "1"}),
        ("in_progress_expiration", {"N": "1E100"}),
        ("in_progress_expiration", {"BOOL": False}),
        ("attempts", {"S": "1"}),
        ("attempts", {"N": "1.5"}),
        ("attempts", {"N": "-1"}),
        ("attempts", {"N": "1E100"}),
        ("attempts", {"BOOL": True}),
        ("epoch", {"N": "0"}),
        ("epoch", {"S": "1"}),
        ("owner", {"N": "1"}),
        ("owner", {"SS": ["a"]}),
        ("job_id", {"B": b"x"}),
        ("data", {"M": {}}),
        ("validation", {"N": "1"}),
        ("first_seen", {"S": "1"}),
        ("last_seen", {"N": "1E100"}),
        ("last_error", {"L": []}),
        ("omitted", {"BOOL": True}),
    ]

    def spoil(self, name: str, oddity: Oddity) -> None:
        field, value = oddity
        change: dict[str, Any] = {"UpdateExpression": "REMOVE #f"}
        if value is not None:
            change = {"UpdateExpression": "SET #f = :v", "ExpressionAttributeValues": {":v": value}}
        self._client.update_item(
            TableName=self._table(), Key={"id": {"S": name}}, ExpressionAttributeNames={"#f": field}, **change
        )

    def remove(self, name: str) -> None:
        self._client.delete_item(TableName=self._table(), Key={"id": {"S": name}})

    def stored(self) -> dict[str, Any]:
        items = self._client.scan(TableName=self._table(), ConsistentRead=True)["Items"]
        return {item["id"]["S"]: item for item in items}

    @cached_property
    def _client(self) -> Any:
        import boto3

        return boto3.client("dynamodb")

    def _table(self) -> str:
        from tests.support.aws import TABLE

        return TABLE


@dataclass
class SQLiteRows:
    """Written by plain SQLite, which may ignore the checks of the table."""

    path: Path

    certain: ClassVar[Sequence[Oddity]] = [
        ("status", "OPEN"),
        ("status", b"\xff"),
        ("expires_at", 2**63 - 1),
        ("expires_at", -(2**63)),
        ("expires_at", -1),
        ("lease_until", 2**63 - 1),
        ("first_seen", 2**63 - 1),
        ("last_seen", -(2**63)),
        ("attempts", -1),
        ("attempts", 2**63 - 1),
        ("epoch", 0),
        ("epoch", 2**63 - 1),
        ("owner", b"\xff"),
        ("job_id", b"\xed\xa0\x80"),
        ("answer", b"\xff"),
        ("last_error", b"\xc3"),
    ]

    def spoil(self, name: str, oddity: Oddity) -> None:
        field, value = oddity
        as_text = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
        with closing(sqlite3.connect(self.path)) as file, file:
            file.execute("PRAGMA ignore_check_constraints = ON")
            file.execute(f"UPDATE record SET {field} = {as_text} WHERE key = ?", (value, name))

    def remove(self, name: str) -> None:
        with closing(sqlite3.connect(self.path)) as file, file:
            file.execute("DELETE FROM record WHERE key = ?", (name,))

    def stored(self) -> dict[str, Any]:
        with closing(sqlite3.connect(self.path)) as file:
            file.text_factory = bytes
            return {row[0].decode(): row for row in file.execute("SELECT * FROM record")}


@dataclass
class ValkeyHashes:
    """Fields are bytes, whoever wrote them."""

    port: int

    certain: ClassVar[Sequence[Oddity]] = [
        *((name, None) for name in ("status", "job_id", "attempts", "lease_until", "expires_at", "epoch")),
        *((name, None) for name in ("first_seen", "last_seen", "answer")),
        *((name, b"-1") for name in ("attempts", "lease_until", "expires_at", "first_seen", "epoch")),
        *((name, b"x") for name in ("status", "attempts", "lease_until", "expires_at", "last_seen", "epoch")),
        *((name, b"\xff") for name in ("job_id", "owner", "fingerprint", "answer", "last_error", "omitted")),
        ("expires_at", b"99999999999999999"),
        ("epoch", b"0"),
    ]

    def spoil(self, name: str, oddity: Oddity) -> None:
        field, value = oddity
        with closing(self._client()) as client:
            if value is None:
                client.hdel(f"onejob:{name}", field)
            else:
                client.hset(f"onejob:{name}", field, value)

    def remove(self, name: str) -> None:
        with closing(self._client()) as client:
            client.delete(f"onejob:{name}")

    def stored(self) -> dict[str, Any]:
        with closing(self._client()) as client:
            return {key.decode().removeprefix("onejob:"): client.hgetall(key) for key in client.scan_iter()}

    def _client(self) -> Any:
        from valkey import Valkey

        return Valkey(port=self.port)
