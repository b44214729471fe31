"""What the operator commands print: tables for people, objects for scripts, moments for both."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from entrypoints.cli.run_view import printable


def print_object(**values: Any) -> None:
    """One line of JSON on standard output."""
    sys.stdout.write(f"{json.dumps(values, default=str)}\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """One line for people."""
    sys.stdout.write(f"{printable(text)}\n")
    sys.stdout.flush()


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """For people: framed on a terminal, plain columns elsewhere. What a message brought is text, never markup."""
    is_terminal = sys.stdout.isatty()
    table = Table(box=None if not is_terminal else Table().box, pad_edge=is_terminal)
    for heading in headings:
        table.add_column(Text(heading), no_wrap=not is_terminal)
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console() if is_terminal else Console(width=100_000, color_system=None)
    with console.capture() as captured:
        console.print(table)
    lines = (line.rstrip() for line in captured.get().splitlines())
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def _cell(value: object) -> str:
    return "-" if value is None or value == "" else printable(str(value))


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC, whole seconds."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(moment: datetime | None, now: datetime) -> str | None:
    """`3 min ago`, `in 20 s`."""
    if moment is None:
        return None
    distance = now - moment
    return f"in {length(-distance)}" if distance < timedelta(0) else f"{length(distance)} ago"


def length(duration: timedelta) -> str:
    """In the largest unit that fits at least once, or twice where it is small."""
    seconds = int(duration.total_seconds())
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def when(moment: datetime | None, now: datetime) -> str | None:
    """Both, for people."""
    return None if moment is None else f"{iso(moment)} ({ago(moment, now)})"


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """One thing, a line a fact."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        print_line(f"{name:<{width}}  {_cell(value)}")
