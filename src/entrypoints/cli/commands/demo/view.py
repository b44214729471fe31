"""How the demo is shown: a story for a terminal, an object for a script."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from entrypoints.cli.commands.demo.demo import DemoResult

ORDER = ("id", "status", "job_id", "operation", "owner", "attempts", "data", "first_seen", "expiration")
NAMES = ("first", "second", "malformed")


class Silent:
    """For `--json`: nothing until the end."""

    def step(self, text: str) -> None:
        pass

    def result(self, result: DemoResult) -> None:
        pass


class Story:
    """A few coloured lines and two tables."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)

    def step(self, text: str) -> None:
        self._console.print(Text.assemble(("· ", "dim"), text))

    def result(self, result: DemoResult) -> None:
        self._console.print()
        self._console.print(_deliveries(result))
        self._console.print(_record(result))
        for check in result.checks:
            mark = ("✓ ", "bold green") if check.passed else ("✗ ", "bold red")
            self._console.print(Text.assemble(mark, check.claim))
        verdict = "one job, one effect" if result.passed else "this is not so: something is wrong"
        self._console.print(Text(f"\n{verdict} ({result.seconds} s)", "bold green" if result.passed else "bold red"))


def as_json(result: DemoResult) -> str:
    """One object: `ok`, `checks`, `deliveries`, `record`, `dead_letters`, `seconds`."""
    return json.dumps(
        {
            "ok": result.passed,
            "checks": {check.claim: check.passed for check in result.checks},
            "deliveries": [
                {"message_id": delivery.message_id, "body": delivery.body, "log": delivery.event}
                for delivery in result.deliveries
            ],
            "record": {name: _plain(value) for name, value in result.record.items()},
            "dead_letters": result.dead_letters,
            "seconds": result.seconds,
        },
        indent=2,
    )


def _deliveries(result: DemoResult) -> Table:
    table = Table("message", "id", "what the worker logged", "execution_id")
    for name, delivery in zip(NAMES, result.deliveries, strict=True):
        log = delivery.event
        event = Text(str(log.get("event", "nothing")), _colour(log), no_wrap=True)
        if "reason" in log:
            event.append(f": {log['reason']}")
        ran = log.get("event") == "business_operation_executed"
        table.add_row(name, delivery.message_id[:8], event, log["execution_id"][:8] if ran else "")
    return table


def _colour(log: dict[str, Any]) -> str:
    return {"INFO": "green", "WARNING": "yellow"}.get(str(log.get("level")), "red")


def _record(result: DemoResult) -> Table:
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("the record in DynamoDB", "bold"))
    for name in ORDER:
        if name in result.record:
            text = Text(str(result.record[name]), "green" if name == "status" else "")
            table.add_row(name, text.append("  the execution_id of the run", "dim") if name == "owner" else text)
    table.add_section()
    table.add_row(Text("the dead letter", "bold"))
    for letter in result.dead_letters:
        table.add_row("body", Text(letter["body"]))
        table.add_row("reason", Text(f"{letter['reason']} ({letter['detail']})", "yellow"))
    return table


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)
