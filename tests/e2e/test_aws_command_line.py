"""The AWS command line on the deployed stack: each `aws` line that we print or document is typed as it stands.

Version 1 comes from the package index. Its upgrade debug mode warns of what version 2 does otherwise, and no line may
cause a warning that matters. Version 2 is not in the package index: it is typed where the machine has it.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import boto3
import pytest
from typer.testing import CliRunner

from entrypoints.cli.app import app
from entrypoints.cli.commands.local import command as local_app
from entrypoints.cli.commands.local.local import Local
from entrypoints.cli.commands.local.view import how_to_use
from entrypoints.emulator.deployment import DeployedWorker
from entrypoints.emulator.launcher import Emulator, only_environment
from infra.bundle import PROJECT
from tests.support.aws_cli import version_1, version_2
from tests.support.cli import objects, onejob
from tests.support.deployed import Watched
from tests.support.documents import aws_lines, pages_with_aws_lines
from tests.support.shell import Shell, shell

THEIRS = {
    "AWS_PROFILE": "theirs",
    "AWS_DEFAULT_OUTPUT": "table",
    "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9",
    "AWS_SESSION_TOKEN": "theirs",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "http_proxy": "http://127.0.0.1:9",
}
"""Of a user who works with AWS, behind a proxy: nothing of it may reach the emulator's lines."""
CONFIG = "[profile theirs]\noutput = table\nregion = eu-west-1\ncli_pager = false\n"
STACK = "LambdaIdempotencyStack"

ONLY_PARSED = {"start-message-move-task": "no emulator has it"}
"""By command, why the line is not sent: the command line still has to know every option of it."""
UPGRADE_WARNING = "AWS CLI v2 UPGRADE WARNING"
HARMLESS = {
    "timestamp response values": "",  # written otherwise, and no line reads a time
    "blob-type parameter": "fileb://",  # which both versions take as it is
    "a prefix of `http://`": "fileb://",  # warned of for every value that is read from a file
}
"""By a part of the warning: what a line must contain so that it means the same in both versions nevertheless."""


@dataclass(frozen=True)
class Up:
    """What `onejob local up` printed, and the stack."""

    printed: str
    watched: Watched

    @property
    def aws_block(self) -> list[str]:
        """The lines for the AWS command line."""
        _, _, block = self.printed.partition("aws command line")
        return [line.strip() for line in block.splitlines()[1:] if line.startswith("  ")]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    local = Local(tmp_path_factory.mktemp("local"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_app, "Local", lambda: local)
        result = CliRunner().invoke(app, ["local", "up", "-c", "clean-up=24"])
        try:
            assert result.exit_code == 0, result.stderr
            aws = local.background.running()
            assert isinstance(aws, Emulator)
            worker = DeployedWorker.from_outputs(local.folder / "cdk-outputs.json")
            yield Up(result.stdout, Watched(aws, worker))
        finally:
            local.down()


@pytest.fixture(scope="module", params=["version-1", "version-2"])
def version(request: pytest.FixtureRequest) -> tuple[str, Path]:
    """Its name, and the folder of its `aws`."""
    folder = version_1() if request.param == "version-1" else version_2()
    if folder is None:
        pytest.skip("this machine has no version 2 of the AWS command line, and the package index neither")
    return request.param, folder


@pytest.fixture
def typing(version: tuple[str, Path], tmp_path: Path) -> Iterator[Shell]:
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(CONFIG)
    path = f"{version[1]}:{os.environ['PATH']}"
    with shell({"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8"} | THEIRS, tmp_path) as opened:
        yield opened
    assert (tmp_path / ".aws" / "config").read_text() == CONFIG
    assert not (tmp_path / ".aws" / "credentials").exists()


def prepare(typing: Shell, up: Up) -> list[str]:
    """Type the lines that are for the shell itself; the rest."""
    rest = list(up.aws_block)
    while not rest[0].startswith("aws "):
        typing.type(rest.pop(0))
    typing.type("export AWS_CLI_UPGRADE_DEBUG_MODE=true AWS_MAX_ATTEMPTS=1")
    return rest


def checked(typing: Shell, line: str) -> str:
    """What it prints; no warning that version 2 would do something else."""
    told = typing.type(line).splitlines()
    for warning in (one for one in told if one.startswith(UPGRADE_WARNING)):
        assert any(part in warning and needed in line for part, needed in HARMLESS.items()), f"{line}\n{warning}"
    return "\n".join(one for one in told if not one.startswith(UPGRADE_WARNING))


def events(output: str) -> list[str]:
    told = [json.loads(line)["event"] for line in output.splitlines() if line.startswith("{")]
    return [event for event in told if event != "job_deferred"]


def test_the_lines_that_up_prints_show_that_two_messages_are_one_effect(
    up: Up, typing: Shell, version: tuple[str, Path]
) -> None:
    lines = prepare(typing, up)
    assert all(line.startswith(f"aws --endpoint-url {up.watched.aws.url} ") for line in lines)
    if version[0] == "version-2":
        lines = [line.replace("job-001", "job-002") for line in lines]
    job = "job-002" if version[0] == "version-2" else "job-001"
    first, second, logs, scan = lines
    assert json.loads(checked(typing, first))["MessageId"] != json.loads(checked(typing, second))["MessageId"]
    up.watched.until_events(job, "business_operation_executed", "job_skipped")
    assert events(checked(typing, logs)) == ["business_operation_executed", "job_skipped"]
    records = [line for line in checked(typing, scan).splitlines() if line.startswith(job)]
    assert records == [f"{job}\tCOMPLETED"]


def test_on_a_fifo_queue_up_prints_lines_that_send_two_messages(
    up: Up, typing: Shell, version: tuple[str, Path]
) -> None:
    prepare(typing, up)
    sqs = up.watched.client("sqs")
    url = sqs.create_queue(QueueName=f"{version[0]}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    fifo = replace(up, printed=how_to_use(up.watched.aws, replace(up.watched.worker, queue_url=url)))
    for line in fifo.aws_block:
        if "sqs send-message" in line:
            checked(typing, line)
    told = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    assert told["Attributes"]["ApproximateNumberOfMessages"] == "2"


def type_page(up: Up, typing: Shell, page: str, job: str) -> dict[str, str]:
    """What each line of a page showed, with the names of the emulator's stack in place of those of the page."""
    prepare(typing, up)
    (function,) = re.findall(r"^aws\(\) .*$", (PROJECT / "docs" / "deploy.md").read_text(), re.M)
    typing.type(function)
    worker = up.watched.worker
    typing.type(f"out() {{ case $1 in QueueUrl) echo {worker.queue_url};; IdempotencyTableName) echo {worker.table};; "
                f"WorkerLogGroupName) echo {worker.log_group};; esac; }}")  # fmt: skip
    shown: dict[str, str] = {}
    for line in aws_lines(page):
        if "aws logs" in line:
            up.watched.until_events(job, "business_operation_executed", "job_skipped")
        typed = line.replace(f"{STACK}-prod", STACK).replace("job-001", job)
        if any(command in line for command in ONLY_PARSED):
            typed = f"AWS_CLI_UPGRADE_DEBUG_MODE= {typed} --generate-cli-skeleton input"  # together they fail
        shown[f"{line} {len(shown)}"] = checked(typing, typed)
    return shown


def only(shown: dict[str, str], part: str) -> str:
    (output,) = [output for line, output in shown.items() if part in line]
    return output


def test_the_pages_that_have_aws_lines_are_the_ones_typed_here() -> None:
    assert pages_with_aws_lines() == ["docs/deploy.md", "docs/runbook.md"]


def test_the_lines_of_the_deploy_page(up: Up, typing: Shell, version: tuple[str, Path]) -> None:
    job = f"deploy-{version[0]}"
    shown = type_page(up, typing, "docs/deploy.md", job)
    assert events(only(shown, "aws logs")) == ["business_operation_executed", "job_skipped"]
    assert f"{job}\tCOMPLETED" in only(shown, "aws dynamodb").splitlines()


def test_the_lines_of_the_runbook(up: Up, typing: Shell, version: tuple[str, Path], tmp_path: Path) -> None:
    job = f"runbook-{version[0]}"
    up.watched.send(f'{{"job_id":"{job}"}}', malformed := f'{{"job_id":"{job}"')
    up.watched.until_events(job, "business_operation_executed")
    up.watched.dead_letter(malformed)
    shown = type_page(up, typing, "docs/runbook.md", job)
    assert json.loads(only(shown, "aws dynamodb get-item"))["Item"]["status"]["S"] == "COMPLETED"
    letters = json.loads(only(shown, "aws sqs receive-message"))["Messages"]
    assert malformed in [letter["Body"] for letter in letters]
    assert all("reason" in letter["MessageAttributes"]["onejob"]["StringValue"] for letter in letters)
    stopped, started = (json.loads(shown[line]) for line in shown if "update-event-source-mapping" in line)
    assert stopped["State"] in ("Disabled", "Disabling")
    assert started["State"] in ("Enabled", "Enabling")
    assert '"StatusCode": 200' in only(shown, "aws lambda invoke")
    assert "FunctionError" not in only(shown, "aws lambda invoke")
    assert "purged" in json.loads((tmp_path / "out.json").read_text())


def test_what_doctor_advises_mends_what_it_found(up: Up, typing: Shell) -> None:
    prepare(typing, up)
    typing.type(f'aws() {{ command aws --endpoint-url {up.watched.aws.url} "$@"; }}')
    worker = up.watched.worker
    with only_environment(up.watched.aws.environment()):
        functions, tables = boto3.client("lambda"), boto3.client("dynamodb")
        functions.put_function_concurrency(FunctionName=worker.function, ReservedConcurrentExecutions=0)
        functions.update_event_source_mapping(
            UUID=worker.event_source_mapping, Enabled=False, FunctionResponseTypes=[], ScalingConfig={}
        )
        tables.update_time_to_live(
            TableName=worker.table, TimeToLiveSpecification={"Enabled": False, "AttributeName": "expiration"}
        )
        advised = advice(worker)
        assert len(advised) >= 4
        for command in advised:
            checked(typing, command)
        assert advice(worker) == []


def advice(worker: DeployedWorker) -> list[str]:
    """The `aws` commands among what doctor says to do."""
    fixes = [one["fix"] for one in objects(onejob("doctor", "--json", "--function", worker.function)) if one.get("fix")]
    return [re.split("[;:] ", fix)[0] for fix in fixes if fix.startswith("aws ")]
