"""The SQLite store in the simulator: its own bugs are found, claims share a commit, and no file is left behind."""

import subprocess
import sys

import pytest

from tests.simulation.__main__ import chunk
from tests.simulation.plan import plan
from tests.simulation.planted import BUGS, ROOT, look_for
from tests.simulation.run import simulate
from tests.simulation.sqlite import MEMORY_DISK, counts, sqlite_backend


def test_every_rule_holds_and_commits_are_shared() -> None:
    _, shared = counts()
    assert chunk(0, 80, "sqlite").failing == {}
    assert counts()[1] > shared


def test_the_stores_give_the_same_traces() -> None:
    assert chunk(6_000, 6_040, "all").failing == {}


def test_a_seed_replays_exactly() -> None:
    told = plan(3)
    assert simulate(told, sqlite_backend).trace == simulate(told, sqlite_backend).trace != ()


@pytest.mark.parametrize(
    "name", ["SQLite: a refusal judged on rows that were rolled back", "SQLite: a claim is judged before its turn"]
)
def test_a_planted_bug_is_found(name: str) -> None:
    (bug,) = [one for one in BUGS if one.name == name]
    assert look_for(bug, 40).found_in > 0


def test_no_file_is_left_behind() -> None:
    before = set(MEMORY_DISK.glob("onejob-simulation-*")) if MEMORY_DISK.is_dir() else set()
    command = [sys.executable, "-m", "tests.simulation", "--seeds", "20", "--backend", "sqlite", "--processes", "2"]
    subprocess.run([*command, "--json"], cwd=ROOT, capture_output=True, check=True)
    after = set(MEMORY_DISK.glob("onejob-simulation-*")) if MEMORY_DISK.is_dir() else set()
    assert after <= before
