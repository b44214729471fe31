"""What others check: cdk-nag over the construct tree, cfn-lint over the template. And that they can fail."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk import aws_sqs as sqs

from infra import nag
from infra.bundle import PROJECT
from tests.support.template import KEY, app, folder_of, stack

CONTEXTS: list[dict[str, str]] = [
    {},
    {
        "stage": "prod",
        "fifo": "true",
        "alarm-email": "ops@example.com",
        "key-arn": KEY,
        "reserved-concurrency": "20",
        "clean-up": "24",
    },
]


def report(root: App) -> list[dict[str, Any]]:
    """What each rule pack found in the synthesised app."""
    told: dict[str, Any] = json.loads((folder_of(root) / "validation-report.json").read_text())
    return [plugin for plugin in told["pluginReports"] if plugin["pluginName"] in ("AwsSolutions", "Serverless")]


@pytest.mark.parametrize("context", CONTEXTS, ids=["default", "everything"])
def test_cdk_nag_finds_nothing_that_is_not_justified(context: dict[str, str]) -> None:
    root = app(context)
    nag.check(root, stack(root, context))
    root.synth()
    packs = report(root)
    assert len(packs) == 2
    assert [pack["violations"] for pack in packs] == [[], []]


def test_every_justification_is_still_needed() -> None:
    context = CONTEXTS[1]
    root = app(context)
    nag.check(root, stack(root, context))
    root.synth()
    used = {one["acknowledgedId"] for pack in report(root) for one in pack["suppressedViolations"]}
    assert used == set(re.findall(r'"(\w+::[\w-]+)"', Path(nag.__file__).read_text()))


def test_a_finding_that_nobody_justified_stops_the_synth() -> None:
    root = app({})
    made = stack(root, {})
    nag.check(root, made)
    sqs.Queue(made, "Loose")
    with pytest.raises(RuntimeError, match="Loose"):
        root.synth()


@pytest.mark.parametrize("context", CONTEXTS, ids=["default", "everything"])
def test_cfn_lint_finds_nothing(context: dict[str, str]) -> None:
    root = app(context)
    stack(root, context)
    root.synth()
    (path,) = folder_of(root).glob("*.template.json")
    linted = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), path], cwd=PROJECT, capture_output=True, text=True
    )
    assert (linted.returncode, linted.stdout) == (0, "")
