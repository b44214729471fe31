"""Which operations run: this project's, or those of a module that `ONEJOB_OPERATIONS` names in another repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from entrypoints.registered import registered_operations
from entrypoints.settings import SettingError
from tests.support.cli import objects, onejob

JOBS = """
import shop.stock
from domain.operation import Operation, Operations

OPERATIONS = Operations(Operation("default", shop.stock.count))
"""
STOCK = "def count(job, attempt): return {'counted': job.payload['n'] + 1}\n"
SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another repository, with a package `shop` of its own."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "stock.py").write_text(STOCK)
    (package / "jobs.py").write_text(JOBS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [one for one in sys.modules if one.partition(".")[0] == "shop"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def run(code: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    told = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "AWS_DEFAULT_REGION": "us-east-1", **environment}
    return subprocess.run([sys.executable, "-P", "-c", code], cwd=folder, env=told, capture_output=True, text=True)


def test_without_the_setting_they_are_this_project_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEJOB_OPERATIONS", raising=False)
    import operations

    assert registered_operations() is operations.OPERATIONS


def test_a_module_of_another_repository_runs_by_the_command_line(repository: Path) -> None:
    (repository / "jobs.jsonl").write_text('{"job_id":"1","n":41}\n')
    code = "from entrypoints.cli.app import main; main()"
    argv = "import sys; sys.argv = ['onejob', 'run', 'jobs.jsonl', '--json']; "
    done = run(argv + code, repository, ONEJOB_OPERATIONS="shop.jobs")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["executed"] == 1


def test_and_in_lambda(repository: Path) -> None:
    code = "from entrypoints import sqs_worker; print(sqs_worker.handler.__name__)"
    deployed = {"IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": "records", "ONEJOB_OPERATIONS": "shop.jobs"}
    for module in ("sqs_worker", "http_api"):
        done = run(code.replace("sqs_worker", module), repository, **deployed)
        assert (done.stdout, done.stderr) == ("handle\n", ""), module


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (None, "No module named 'shop.jobs', searched in"),
        ("import no_such_package", "No module named 'no_such_package'"),
        ("", "has no OPERATIONS"),
        ("OPERATIONS = [1]", "OPERATIONS is list, expected Operations"),
        ("OPERATIONS = 1 / 0", "importing it failed: ZeroDivisionError: division by zero .*jobs.py:1 <module>"),
        (
            "from domain.operation import *\nasync def f(j, a): ...\nOPERATIONS = Operations(Operation('a', f))",
            "TypeError: operation a: an async or generator function runs nothing",
        ),
    ],
)
def test_what_is_wrong_about_the_module_is_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch, source: str | None, why: str
) -> None:
    monkeypatch.setenv("ONEJOB_OPERATIONS", "shop.jobs")
    if source is None:
        (repository / "shop" / "jobs.py").unlink()
    else:
        (repository / "shop" / "jobs.py").write_text(source)
    with pytest.raises(SettingError, match=rf"(?s)^ONEJOB_OPERATIONS=shop\.jobs: .*{why}"):
        registered_operations()
    (repository / "jobs.jsonl").write_text('{"job_id":"1"}\n')
    for command in (
        ("run", "jobs.jsonl"),
        ("send", "jobs.jsonl", "--queue-url", "http://localhost/1/jobs", "--dry-run"),
    ):
        result = onejob(*command)
        assert (result.exit_code, "ONEJOB_OPERATIONS=shop.jobs: " in result.stderr) == (2, True), command


def test_an_operation_that_is_not_registered_is_told_with_the_module(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEJOB_OPERATIONS", "shop.jobs")
    (repository / "jobs.jsonl").write_text('{"job_id":"1"}\n')
    result = onejob("run", "jobs.jsonl", "--operation", "charge")
    assert (result.exit_code, "--operation charge: not in OPERATIONS of shop.jobs" in result.stderr) == (2, True)


def test_their_from_body_reads_what_is_sent(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEJOB_OPERATIONS", "shop.jobs")
    text = (
        (repository / "shop" / "jobs.py")
        .read_text()
        .replace("count))", "count), from_body=lambda body: {'job_id': body['id']})")
    )
    (repository / "shop" / "jobs.py").write_text(text)
    (repository / "jobs.jsonl").write_text('{"id":"1"}\n')
    sent = onejob("send", "jobs.jsonl", "--queue-url", "http://localhost/1/jobs", "--dry-run", "--json")
    assert (sent.exit_code, objects(sent)[-1]["jobs"]) == (0, 1)


def test_without_its_library_the_command_says_what_to_add(repository: Path) -> None:
    done = run("import sys; sys.modules['typer'] = None; from entrypoints.cli.start import main; main()", repository)
    assert (done.returncode, done.stdout) == (2, "")
    assert "onejob: typer is not installed" in done.stderr
    assert "uv add 'onejob[cli]'" in done.stderr
