"""A long run that is interrupted goes on where it ended, and never on another commit's numbers."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.planted import ROOT
from tests.simulation.stretches import OtherCommitError, Stretches, commit_of

KINDS = ("outcomes",)


def kept(path: Path, commit: str = "abc") -> Stretches:
    return Stretches.opened(path, commit, "memory", 0, KINDS)


def test_it_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    first = kept(path)
    assert first.next_seed == 0
    first.next_seed, first.seconds = 500, 2.5
    first.failing[7] = "broken"
    first.counts["outcomes"]["Executed"] += 3
    first.keep()
    again = kept(path)
    assert (again.next_seed, again.seconds, again.failing) == (500, 2.5, {7: "broken"})
    assert again.counts == {"outcomes": Counter({"Executed": 3})}
    assert [one.name for one in tmp_path.iterdir()] == ["run.json"]


def test_it_does_not_go_on_with_another_commits_file(tmp_path: Path) -> None:
    kept(tmp_path / "run.json").keep()
    with pytest.raises(OtherCommitError, match="abc"):
        kept(tmp_path / "run.json", "def")


def test_nor_where_files_differ_from_the_commit(tmp_path: Path) -> None:
    kept(tmp_path / "run.json", "abc+").keep()
    with pytest.raises(OtherCommitError, match="differ"):
        kept(tmp_path / "run.json", "abc+")


def test_the_commit_is_told_and_whether_files_differ(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    clean = commit_of(tmp_path)
    assert len(clean) == 40
    (tmp_path / "src" / "b.py").write_text("")
    assert commit_of(tmp_path) == f"{clean}+"


def test_an_interrupted_command_loses_only_the_chunks_under_way(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    command = [sys.executable, "-m", "tests.simulation", "--resume", str(path), "--processes", "1", "--seeds"]
    with subprocess.Popen([*command, "100000"], cwd=ROOT, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        deadline = time.monotonic() + 120
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=120)
    told = json.loads(path.read_text())
    assert told["next_seed"] >= 500
    assert told["next_seed"] % 500 == 0
    assert sum(told["counts"]["outcomes"].values()) > 0
    if told["commit"].endswith("+"):
        return  # it is not gone on with
    done = subprocess.run([*command, str(told["next_seed"])], cwd=ROOT, capture_output=True, text=True)
    assert f"{told['next_seed']} seeds over memory" in done.stdout
