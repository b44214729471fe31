"""Operator commands where something else answers for AWS, or the SDK raises what nobody knows: a line, no traceback."""

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.credentials import Credentials

from entrypoints.emulator.launcher import only_environment
from tests.support.cli import file_of, onejob
from tests.support.portal import BODIES, portal

KEYS = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_DEFAULT_REGION": "us-east-1"}
URL = "http://127.0.0.1:1/000000000000/jobs"
DEAD = "http://127.0.0.1:1/000000000000/dead"

COMMANDS: dict[str, list[str]] = {
    "show": ["show", "job-001", "--table", "records"],
    "list": ["list", "--table", "records"],
    "forget": ["forget", "job-001", "--table", "records", "--yes"],
    "purge": ["purge", "--table", "records"],
    "dlq list": ["dlq", "list", "--dead-letter-url", DEAD],
    "dlq redrive": ["dlq", "redrive", "--dead-letter-url", DEAD, "--all", "--queue-url", URL, "--table", "records"],
    "doctor": ["doctor", "--table", "records", "--queue-url", URL, "--dead-letter-url", DEAD],
    "doctor function": ["doctor", "--function", "worker"],
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is purged is asked again after pauses."""
    monkeypatch.setattr("adapters.system.SystemClock.sleep", lambda *_: None)


def is_one_line_of_an_error(result: Any) -> None:
    assert result.exit_code == 1, result.output
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output


@pytest.mark.parametrize("body", ["html", "{}", "empty", "truncated"])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_command_that_something_else_answers_says_so(command: str, body: str) -> None:
    with portal(BODIES[body]) as server, only_environment({**KEYS, "AWS_ENDPOINT_URL": server.url}):
        result = onejob(*COMMANDS[command])
    is_one_line_of_an_error(result)
    assert "what answered is not AWS" in result.output.replace("\n", " ")
    assert "AWS_ENDPOINT_URL" in result.output


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_command_whose_answers_have_an_id_and_nothing_else_ends_with_a_line(command: str) -> None:
    with portal(b"{}", with_id=True) as server, only_environment({**KEYS, "AWS_ENDPOINT_URL": server.url}):
        is_one_line_of_an_error(onejob(*COMMANDS[command]))


@pytest.mark.parametrize("error", [RuntimeError("the token is old"), OSError(13, "the token is old")])
@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_command_whose_credentials_fail_in_an_unknown_way_says_so(
    command: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: object) -> Any:
        raise error

    with portal(b"{}") as server, only_environment({**KEYS, "AWS_ENDPOINT_URL": server.url}):
        monkeypatch.setattr(Credentials, "get_frozen_credentials", fail)
        result = onejob(*COMMANDS[command])
    is_one_line_of_an_error(result)
    assert "the token is old" in result.output
    assert server.requests.total() == 0


@pytest.mark.parametrize("body", list(BODIES))
@pytest.mark.parametrize("with_id", [False, True])
def test_nothing_is_sent_where_something_else_answers(tmp_path: Path, body: str, with_id: bool) -> None:
    jobs = file_of(tmp_path, '{"job_id":"1"}', '{"job_id":"2"}')
    with portal(BODIES[body], with_id=with_id) as server, only_environment({**KEYS, "AWS_ENDPOINT_URL": server.url}):
        result = onejob("send", jobs, "--queue-url", URL, "--json")
    is_one_line_of_an_error(result)
    told = json.loads(result.stdout)
    assert told["sent"] == 0
    assert told["uncertain"] == [1, 2]


def test_a_worker_whose_client_cannot_be_made_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> Any:
        raise RuntimeError("the token is old")

    with only_environment({**KEYS, "IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": "records"}):
        monkeypatch.setattr(boto3, "client", fail)
        result = onejob("work", "--queue-url", "https://sqs.us-east-1.amazonaws.com/000000000000/jobs")
    assert result.exit_code == 2, result.output
    assert "the token is old" in result.output
    assert "Traceback" not in result.output
