"""What `onejob doctor` looks at in the table of records."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from entrypoints.cli.commands.doctor.finding import Finding, Level, ask, judged, ok, warn

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient

TTL_ATTRIBUTE: Final = "expiration"
PROBE_KEY: Final = {"id": {"S": "onejob doctor"}}
"""A key that no job has."""


def table_findings(client: "DynamoDBClient", table: str) -> Iterator[Finding]:
    """Whether it is there, is made as it must be, forgets in time, can be restored, and may be read by the caller."""
    subject = f"table {table}"
    described = ask(subject, lambda: client.describe_table(TableName=table)["Table"])
    if described.trouble:
        yield described.trouble
    else:
        yield from _made_right(subject, described.answer)
        yield from _claimed_once(subject, described.answer)
    yield _forgets(client, table)
    backups = ask(f"backups of {table}", lambda: client.describe_continuous_backups(TableName=table), level=Level.WARN)
    yield backups.trouble or _can_be_restored(table, backups.answer)
    yield from _may_be_read(client, table)


def _made_right(subject: str, table: dict[str, object]) -> Iterator[Finding]:
    key = [(part["AttributeName"], part["KeyType"]) for part in table["KeySchema"]]  # type: ignore[attr-defined]
    types = {part["AttributeName"]: part["AttributeType"] for part in table["AttributeDefinitions"]}  # type: ignore[attr-defined]
    is_right = key == [("id", "HASH")] and types.get("id") == "S"
    shown = ", ".join(f"{name} ({types.get(name)})" for name, _ in key)
    yield judged(subject, is_right, f"key {shown}", "records need a table whose one key is the string `id`: --table")
    status = table.get("TableStatus")
    yield judged(subject, status in ("ACTIVE", "UPDATING"), f"is {status}", "wait until it is ACTIVE")
    if table.get("DeletionProtectionEnabled"):
        yield ok(subject, "deletion protection is on")
    else:
        yield warn(
            subject,
            "deletion protection is off",
            f"aws dynamodb update-table --table-name {_name(subject)} --deletion-protection-enabled",
        )


def _claimed_once(subject: str, table: dict[str, object]) -> Iterator[Finding]:
    """A condition is checked on one replica: with eventual consistency two regions can both claim a job."""
    replicas = [str(one["RegionName"]) for one in table.get("Replicas") or ()]  # type: ignore[attr-defined]
    if not replicas and table.get("GlobalTableVersion") is None:
        return
    shown = f"global table ({', '.join(sorted(replicas)) or 'of version ' + str(table['GlobalTableVersion'])})"
    if table.get("MultiRegionConsistency") == "STRONG":
        yield ok(subject, f"{shown}, strongly consistent: one region's claim holds in all. It has no TTL: see purge")
    else:
        yield warn(
            subject,
            f"{shown}, eventually consistent: workers in two regions can both claim a job: two effects",
            "let the workers of one region run, those of the others stay stopped (-c active-region=REGION; "
            "docs/stores.md), or make the table with MultiRegionConsistency=STRONG",
        )


def _forgets(client: "DynamoDBClient", table: str) -> Finding:
    """Where setting it up failed unseen, the table grows for ever."""
    subject = f"TTL of {table}"
    asked = ask(subject, lambda: client.describe_time_to_live(TableName=table)["TimeToLiveDescription"])
    if asked.trouble:
        return asked.trouble
    status, attribute = asked.answer.get("TimeToLiveStatus"), asked.answer.get("AttributeName")
    return judged(
        subject,
        status in ("ENABLED", "ENABLING") and attribute == TTL_ATTRIBUTE,
        f"is {status}" + (f" on {attribute}" if attribute else ": the table grows for ever"),
        f"aws dynamodb update-time-to-live --table-name {table} --time-to-live-specification "
        f"Enabled=true,AttributeName={TTL_ATTRIBUTE}; or let `onejob purge` do it",
    )


def _can_be_restored(table: str, answer: dict[str, dict[str, dict[str, str]]]) -> Finding:
    described = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    subject = f"backups of {table}"
    if described.get("PointInTimeRecoveryStatus") == "ENABLED":
        return ok(subject, "point-in-time recovery is on")
    return warn(
        subject,
        "point-in-time recovery is off: what is deleted by mistake would run again",
        f"aws dynamodb update-continuous-backups --table-name {table} --point-in-time-recovery-specification "
        "PointInTimeRecoveryEnabled=true",
    )


def _may_be_read(client: "DynamoDBClient", table: str) -> Iterator[Finding]:
    reading = f"reads of {table}"
    item = ask(reading, lambda: client.get_item(TableName=table, Key=PROBE_KEY))
    yield item.trouble or ok(reading, "GetItem is allowed (show)")
    page = ask(reading, lambda: client.scan(TableName=table, Limit=1, ProjectionExpression="id"), level=Level.WARN)
    yield page.trouble or ok(reading, "Scan is allowed (list, purge)")


def _name(subject: str) -> str:
    return subject.removeprefix("table ")
