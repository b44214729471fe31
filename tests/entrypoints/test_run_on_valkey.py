"""`onejob run --store valkey`: a file of jobs that machines share."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from entrypoints.cli.app import app
from tests.support.valkey import Server, emptied

OPERATION = """
def ok(job, attempt):
    with open("effects", "a") as file:
        file.write(job.job_id)
"""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    sys.modules.pop("on_valkey", None)
    (tmp_path / "on_valkey.py").write_text(OPERATION)
    (tmp_path / "jobs").write_text('{"job_id":"1"}\n{"job_id":"2"}\n')
    with emptied() as running:
        monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", running.url)
        yield running


def run(*options: str) -> Result:
    return CliRunner().invoke(app, ["run", "jobs", "--store", "valkey", "--operation", "on_valkey:ok", *options])


def test_a_file_of_jobs_runs_once_and_its_records_are_not_kept_for_ever(server: Server, tmp_path: Path) -> None:
    first = run()
    assert first.exit_code == 0, first.output
    assert "store valkey" in first.output
    again = run("--json")
    assert json.loads(again.output.splitlines()[-1])["summary"]["skipped"] == 2
    assert sorted((tmp_path / "effects").read_text()) == ["1", "2"]
    keys = server.client.keys("onejob:*")
    assert [server.client.pttl(key) for key in keys] == [-1, -1], "the server deletes none by itself"
    days = [(int(server.client.hget(key, "expires_at")) / 1e6 - time.time()) / 86_400 for key in keys]
    assert days == [pytest.approx(28, abs=0.1)] * 2


def test_a_server_that_cannot_be_reached_is_named_with_its_setting_and_nothing_runs(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IDEMPOTENCY_VALKEY_URL", "redis://:hunter2@127.0.0.1:1")
    refused = run()
    assert refused.exit_code == 2
    assert "IDEMPOTENCY_VALKEY_URL: ConnectionError" in refused.output
    assert "hunter2" not in refused.output
    assert not (tmp_path / "effects").exists()
