"""The help of the operator commands is enough to use them, and the page of commands to type can be typed."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from entrypoints.cli.app import app
from infra.bundle import PROJECT
from tests.support.cli import onejob

PAGE = (PROJECT / "docs" / "runbook.md").read_text()
COMMANDS = ("send", "doctor", "show", "list", "forget", "purge", "dlq list", "dlq redrive")


def options(command: str) -> set[str]:
    found: Any = typer.main.get_command(app)
    for name in command.split():
        found = found.commands[name]
    return {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}


def typed() -> Iterator[str]:
    """Each command line of the page's blocks and sentences."""
    for line in re.findall(r"onejob (?!local)[a-z][^`#|\n]*", PAGE):
        yield line.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_it_says_how_it_ends_and_how_to_be_read_by_scripts(command: str) -> None:
    text = onejob(*command.split(), "--help").stdout
    for status in ("Exit status: 0", "1 ", "2 unusable arguments", "130 interrupted", "143 terminated"):
        assert status in " ".join(text.split()), status
    assert {"--json", "--region", "--endpoint-url"} <= options(command)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "doctor"])
def test_where_and_whose_are_asked_alike(command: str) -> None:
    records = {"--backend", "--table", "--db"}
    assert records <= options(command) or command in ("send", "dlq list")
    assert "--namespace" in options(command) or command == "purge"


def test_every_line_of_the_page_can_be_typed() -> None:
    lines = list(typed())
    assert len(lines) > 15
    for line in lines:
        words = line.split()[1:]
        command = " ".join(words[:2]) if words[0] == "dlq" else words[0]
        assert command in COMMANDS, line
        for option in re.findall(r"(?<!\S)--[a-z-]+", line):
            assert option in options(command), line


def test_every_command_is_on_the_page() -> None:
    for command in COMMANDS:
        assert f"onejob {command} " in PAGE, command
