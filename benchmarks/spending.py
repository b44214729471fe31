"""What a delivery costs at AWS: requests and capacity units as a table in this process bills them, and dollars."""

from typing import Any, Final

from benchmarks import cost, sides
from benchmarks.pairs import Comparison, Section
from benchmarks.sides import Handle, all_done, events, messages, redelivered
from benchmarks.stand_in import listening
from benchmarks.table import Ledger, Table

JOBS: Final = 10
LARGE: Final = 100_000

NEW: Final = "new job"
DUPLICATE: Final = "duplicate, sent again"
LARGE_REDELIVERED: Final = "duplicate of 100 KB, delivered again"
FAILING: Final = "failing job"
FAILING_AGAIN: Final = "failing job, delivered again"
GOALS: Final = {LARGE_REDELIVERED: 0.1}


def spending() -> Section:
    """Counted, so that one pair says all: the same every time."""
    bills = {name: sides.fresh(_bills, name) for name in ("onejob", "bare")}
    comparisons = [
        Comparison(
            name=name,
            unit="DynamoDB dollars a million",
            ours=[bill["dollars"]],
            theirs=[bills["bare"][name]["dollars"]],
            against="bare Powertools",
            goal=GOALS.get(name),
        )
        for name, bill in bills["onejob"].items()
    ]
    return Section("requests, units and dollars", comparisons, bills)


def _bills(side: str) -> dict[str, dict[str, Any]]:
    table = Table()
    sides.enter(f"http://127.0.0.1:{listening(table, 0)}")
    handle = sides.side(side)
    small, large, failing = messages(JOBS), messages(JOBS, bytes=LARGE), messages(JOBS, fail=True)
    all_done(handle, events(large, 10))
    deliveries = {
        NEW: small,
        DUPLICATE: small,
        LARGE_REDELIVERED: redelivered(large),
        FAILING: failing,
        FAILING_AGAIN: redelivered(failing),
    }
    return {name: _bill(handle, table, records) for name, records in deliveries.items()}


def _bill(handle: Handle, table: Table, records: list[dict[str, Any]]) -> dict[str, Any]:
    """For one message of them."""
    table.ledger = Ledger()
    for event in events(records, 1):
        failed = handle(event, sides.Context())["batchItemFailures"]
        assert bool(failed) is ("fail" in event["Records"][0]["body"])
    ledger = table.ledger
    requests = {name: number / len(records) for name, number in sorted(ledger.requests.items())}
    writes, reads = ledger.write_units / len(records), ledger.read_units / len(records)
    return {
        "requests": requests,
        "write_units": writes,
        "read_units": reads,
        "largest_item": ledger.largest_item,
        "dollars": cost.MILLION * (writes * cost.WRITE_UNIT + reads * cost.READ_UNIT),
    }
