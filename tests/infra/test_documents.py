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
RUNBOOK = (PROJECT / "docs" / "runbook.md").read_text()
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
    (line,) = re.findall(r"^KEY=.*$", RUNBOOK, re.M)
    shown = subprocess.run(["bash", "-c", f'{line}; printf %s "$KEY"'], capture_output=True, text=True, check=True)
    assert shown.stdout == str(job_key("onejob", "default", "job-001"))


def test_the_shell_reads_the_outputs(tmp_path: Path) -> None:
    (line,) = re.findall(r"^out\(\) .*$", DEPLOY, re.M)
    outputs = tmp_path / "cdk-outputs.json"
    outputs.write_text(json.dumps({"LambdaIdempotencyStack-prod": {"QueueUrl": "https://queue"}}))
    script = line.replace("cdk-outputs.json", str(outputs)) + "; out QueueUrl"
    shown = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=PROJECT)
    assert shown.stdout == "https://queue\n"


@pytest.mark.parametrize("page", [DEPLOY, RUNBOOK], ids=["deploy", "runbook"])
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


def pinned(pattern: str) -> dict[str, set[str]]:
    """What the project's own files say, by file; past decisions and releases keep what they said."""
    files = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split()
    found: dict[str, set[str]] = {}
    for name in files:
        told = name not in ("CHANGELOG.md", "uv.lock") and not name.startswith(("docs/adr/", "tests/", "benchmarks/"))
        if told and (PROJECT / name).is_file():
            found[name] = set(re.findall(pattern, (PROJECT / name).read_text(errors="replace")))
    return {name: versions for name, versions in found.items() if versions}


def test_one_version_of_the_cdk_command_line_is_used_everywhere() -> None:
    found = pinned(r"aws-cdk@[^\s`\"']+")
    assert {CDK_CLI} == set().union(*found.values()), found
    assert found.keys() >= {"justfile", ".github/workflows/deploy.yml", "docs/deploy.md", "docs/http.md", "README.md"}


def test_one_version_of_uv_is_installed_everywhere_by_its_hashes_where_there_is_a_token_or_a_test() -> None:
    (version,) = re.findall(r"^uv==(\S+)", (PROJECT / ".ci" / "uv.txt").read_text(), re.M)
    assert {version} == set().union(*pinned(r"\buv==([0-9.]+)").values())
    for path in [*WORKFLOWS, PROJECT / ".ci" / "run"]:
        for line in re.findall(r".*pip\"? install.*", path.read_text()):
            assert "--require-hashes -r .ci/uv.txt" in line, f"{path}: {line}"


def jobs(path: Path) -> dict[str, str]:
    """The text of each job of a workflow."""
    parts = re.split(r"^  (\w+):\n", path.read_text().partition("\njobs:\n")[2], flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_no_code_of_the_project_runs_beside_a_token() -> None:
    with_token = {name: text for path in WORKFLOWS for name, text in jobs(path).items() if "id-token: write" in text}
    assert with_token.keys() == {"diff", "deploy"}
    for name, text in with_token.items():
        assert "--app cdk.out" in text, name
        assert re.search(r"needs: (build|\[check, build\])\n", text), name
        for run in ("uv ", "pip ", "checkout@", "setup-python@", "python"):
            assert run not in text, f"{name}: {run}"


def test_the_role_of_the_diff_reads_templates_and_not_the_account() -> None:
    (role,) = re.findall(r"a role\n +for the diff that may (.*?) and nothing", DEPLOY, re.S)
    assert re.findall(r"`(\w+:\w+)`", role) == ["cloudformation:DescribeStacks", "cloudformation:GetTemplate"]
    assert "lookup" not in role


def test_what_a_key_leaves_out_is_told() -> None:
    (row,) = re.findall(r"^\| `key-arn` .*", DEPLOY, re.M)
    assert all(left in row for left in ("log groups", "topic", "environment"))
