"""The example does what its text says, and survives a crash between charge and record."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "invoices"
CRASH = """
import os
from invoices import charge as really_charge

def charge(job, attempt):
    answer = really_charge(job, attempt)
    if job.job_id == "inv-003" and attempt.number == 1:
        os._exit(9)
    return answer
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "invoices"))


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "from entrypoints.cli.app import main; main()", "run", *arguments, "--json"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def summary(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])["summary"]
    return {name: found[name] for name in ("executed", "skipped", "rejected", "rejected_by_reason")}


def charges(folder: Path) -> list[tuple[str, int]]:
    with closing(sqlite3.connect(folder / "provider.sqlite")) as books:
        return books.execute("SELECT customer, cents FROM charge ORDER BY customer").fetchall()


CHARGED = [("acme", 1250), ("globex", 990), ("hooli", 777), ("initech", 40000)]


def test_seven_lines_make_four_charges_whatever_is_run_again(folder: Path) -> None:
    command = ["jobs.jsonl", "--operation", "invoices:charge", "--failed", "failed.jsonl"]
    first = run(folder, *command)
    assert first.returncode == 1
    reasons = {"invalid_invoice": 1, "payload_mismatch": 1}
    assert summary(first) == {"executed": 4, "skipped": 1, "rejected": 2, "rejected_by_reason": reasons}
    assert charges(folder) == CHARGED
    assert summary(run(folder, *command))["skipped"] == 5
    assert charges(folder) == CHARGED


def test_a_corrected_invoice_runs_under_its_id_and_a_charged_one_stays_refused(folder: Path) -> None:
    run(folder, "jobs.jsonl", "--operation", "invoices:charge", "--failed", "failed.jsonl")
    failed = folder / "failed.jsonl"
    failed.write_text(failed.read_text().replace("-5", "5"))
    again = run(folder, "failed.jsonl", "--operation", "invoices:charge")
    assert summary(again)["executed"] == 1
    assert summary(again)["rejected_by_reason"] == {"payload_mismatch": 1}
    assert charges(folder) == [*CHARGED, ("umbrella", 5)]


def test_a_crash_between_charge_and_record_charges_once(folder: Path) -> None:
    (folder / "crashing.py").write_text(CRASH)
    options = ["--lease", "1", "--name", "charge"]
    crashed = run(folder, "jobs.jsonl", "--operation", "crashing:charge", "--concurrency", "1", *options)
    assert crashed.returncode == 9
    assert ("initech", 40000) in charges(folder)
    again = run(folder, "jobs.jsonl", "--operation", "invoices:charge", *options)
    assert summary(again)["executed"] + summary(again)["skipped"] == 5
    assert charges(folder) == CHARGED
