"""The guide "Write one" of docs/stores.md, followed to the letter with a throw-away store in a copy of the project."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.simulation.planted import ROOT, environment_of

MODULE = '''
"""A throw-away store: the records are those of the memory store, and a file says what was closed."""

from pathlib import Path

from adapters.stores.memory import MemoryIdempotencyStore

RECORDS = {}  # by clock, so that a store and its admin share them


class NotebookIdempotencyStore(MemoryIdempotencyStore):
    def __init__(self, clock, retention):
        super().__init__(clock, retention)
        _, self._records = RECORDS.setdefault(id(clock), (clock, {}))

    def close(self):
        Path("closed").write_text(type(self).__name__)


class NotebookStoreAdmin(NotebookIdempotencyStore):
    pass
'''

OPERATION = """
def charge(job, attempt):
    return {"charged": job.job_id}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the store in it: the module, the two texts of the registration, the line of test."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("src", "tests/contract", "tests/support"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    guide = (ROOT / "docs" / "stores.md").read_text().partition("## Write one\n")[2]
    builder, entry, line = (dedent(block) for block in re.findall(r"```python\n(.*?) *```", guide, re.DOTALL))
    (folder / "src/adapters/stores/notebook.py").write_text(MODULE)
    insert(folder / "src/entrypoints/store_registry.py", "class Backend(StrEnum):\n", f"{builder}\n\n", "")
    insert(folder / "src/entrypoints/store_registry.py", "    DYNAMODB = ", f"    {entry}", "")
    insert(folder / "tests/contract/harness.py", "STORES: dict[", "", f"    {line}")
    return folder


def insert(file: Path, beside: str, before: str, after: str) -> None:
    """Around the only line that begins so."""
    text = file.read_text()
    (line,) = re.findall(rf"^{re.escape(beside)}.*\n?", text, re.MULTILINE)
    file.write_text(text.replace(line, f"{before}{line}{after}"))


def run(project: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env=environment_of(project / "src"),
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_contract_runs_over_a_store_that_was_added_by_the_guide(project: Path) -> None:
    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract", "-k", "notebook")
    assert done.returncode == 0, done.stdout
    (passed,) = re.findall(r"^([0-9]+) passed", done.stdout, re.MULTILINE)
    assert int(passed) > 100


def test_the_command_line_runs_jobs_over_it_and_closes_it(project: Path) -> None:
    (project / "mine.py").write_text(OPERATION)
    (project / "jobs.jsonl").write_text('{"job_id": "1"}\n' * 2)
    command = "-c", "from entrypoints.cli.app import main; main()", "run", "jobs.jsonl", "--operation", "mine:charge"
    done = run(project, *command, "--store", "notebook")
    assert done.returncode == 0, done.stderr
    assert "store notebook" in done.stderr
    assert "skipped: done before" in done.stdout
    assert (project / "closed").read_text() == "NotebookIdempotencyStore"


def test_a_setting_that_names_no_store_is_told_its_name_too(project: Path) -> None:
    code = "from entrypoints.settings import Settings; Settings.from_environment({'IDEMPOTENCY_BACKEND': 'none'})"
    done = run(project, "-c", code)
    assert "expected one of" in done.stderr
    assert "notebook" in done.stderr
