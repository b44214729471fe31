"""What the operator commands print: tables for people, objects for scripts, moments for both."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from entrypoints.cli.output import is_terminal, printable, write

WIDEST_COLUMN: Final = 300
"""Outside a terminal. A longer cell is whole and moves its own line on: padding every line to it would cost their
product.
"""


def print_object(**values: Any) -> None:
    """One line of JSON on standard output."""
    write(sys.stdout, f"{json.dumps(values, default=str)}\n")


def print_line(text: str) -> None:
    """One line for people."""
    write(sys.stdout, f"{printable(text)}\n")


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """For people: framed on a terminal, plain columns elsewhere. What a message brought is text, never markup."""
    cells = [[_cell(value) for value in row] for row in rows]
    lines = _framed(headings, cells) if is_terminal(sys.stdout) else _columns([headings, *cells])
    write(sys.stdout, "".join(f"{line.rstrip()}\n" for line in lines))


def _framed(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = Table(*(Column(Text(heading)) for heading in headings))
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console()
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [min(WIDEST_COLUMN, max(map(cell_len, column))) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))


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
