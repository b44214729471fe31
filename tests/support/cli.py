"""`onejob` as typed, in this process."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from entrypoints.cli.app import app


def onejob(*arguments: str, given: bytes | str | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=given)


def objects(result: Result) -> list[dict[str, Any]]:
    """What `--json` printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def file_of(folder: Path, *lines: str) -> str:
    path = folder / "jobs.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)
