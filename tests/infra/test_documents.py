"""Deployment and operations pages keep up: names, prices, commands."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import cost
from domain.identity import job_key
from entrypoints.emulator.deployment import CDK_CLI
from infra.bundle import PROJECT
from tests.support.template import template

DEPLOY = (PROJECT / "docs" / "deploy.md").read_text()
OPERATIONS = (PROJECT / "docs" / "operations.md").read_text()
OPERATE = (PROJECT / "docs" / "operate.md").read_text()
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


def test_the_price_list_is_what_the_script_prints() -> None:
    assert cost.table() in DEPLOY


def test_prices_follow_from_requests() -> None:
    assert cost.dollars(cost.NEW)["DynamoDB"] == pytest.approx(1.25)
    assert cost.dollars(cost.DUPLICATE)["DynamoDB"] == pytest.approx(0.625)
    assert cost.dollars(cost.REDELIVERED)["DynamoDB"] == pytest.approx(0.0625)
    assert cost.dollars(cost.LARGE_REDELIVERED)["DynamoDB"] < cost.dollars(cost.LARGE_DUPLICATE)["DynamoDB"] / 10


def test_every_output_is_documented() -> None:
    for name in template()["Outputs"]:
        assert f"`{name}`" in DEPLOY


def test_the_shell_finds_the_key_of_a_job() -> None:
    (line,) = re.findall(r"^KEY=.*$", OPERATIONS, re.M)
    shown = subprocess.run(["bash", "-c", f'{line}; printf %s "$KEY"'], capture_output=True, text=True, check=True)
    assert shown.stdout == str(job_key("onejob", "default", "job-001"))


def test_the_shell_reads_the_outputs(tmp_path: Path) -> None:
    (line,) = re.findall(r"^out\(\) .*$", DEPLOY, re.M)
    outputs = tmp_path / "cdk-outputs.json"
    outputs.write_text(json.dumps({"LambdaIdempotencyStack-prod": {"QueueUrl": "https://queue"}}))
    script = line.replace("cdk-outputs.json", str(outputs)) + "; out QueueUrl"
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert shown.stdout == "https://queue\n"


@pytest.mark.parametrize("page", [DEPLOY, OPERATIONS, OPERATE], ids=["deploy", "operations", "operate"])
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page):
        assert (PROJECT / "docs" / link).exists(), link


def test_workflows_are_sound() -> None:
    linted = subprocess.run(
        ["zizmor", "--offline", "--strict-collection", "--no-progress", *map(str, WORKFLOWS)],
        capture_output=True,
        text=True,
    )
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_workflows_use_no_long_lived_keys_and_nothing_that_can_be_moved() -> None:
    for path in WORKFLOWS:
        text = path.read_text()
        assert "secrets." not in text
        assert "permissions: {}" in text
        for used in re.findall(r"uses: (\S+)", text):
            assert used.startswith("./") or re.search(r"@[0-9a-f]{40}$", used), used


def test_github_deploys_with_the_command_line_that_the_tests_use() -> None:
    assert f"CDK: {CDK_CLI}\n" in (PROJECT / ".github" / "workflows" / "deploy.yml").read_text()
