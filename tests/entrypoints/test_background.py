"""An emulator in the background: one a folder, found again by the next command, gone when it is told or killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from entrypoints.emulator import background
from entrypoints.emulator.background import BackgroundEmulator
from entrypoints.emulator.launcher import EmulatorError
from tests.support.processes import processes_in

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes through Linux's /proc")

WITHIN_SECONDS = 20


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BackgroundEmulator]:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    made = BackgroundEmulator(tmp_path / "local")
    yield made
    made.stop()
    eventually(lambda: not processes_in(tmp_path / "tmp"))


def eventually(passed: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not passed():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def pid(here: BackgroundEmulator) -> int:
    return int(json.loads((here.folder / "emulator.json").read_text())["pid"])


def test_it_is_found_again_and_started_once(here: BackgroundEmulator) -> None:
    assert here.running() is None
    started = here.start()
    assert started.is_ready()
    assert here.start() == here.running() == started
    assert BackgroundEmulator(here.folder.parent / "other").running() is None


def test_nobody_else_reads_its_key(here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here.folder.parent)
    before = os.umask(0)
    try:
        started = here.start()
    finally:
        os.umask(before)
    assert started.key
    assert here.folder.stat().st_mode & 0o077 == 0
    assert {path.name for path in here.folder.iterdir() if path.stat().st_mode & 0o077} == set()


def test_it_imports_nothing_of_the_folder_that_one_stands_in(
    here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "fcntl", "subprocess", "secrets"):
        here.folder.with_name(f"{name}.py").write_text("open('imported', 'w'); raise SystemExit('imported')")
    monkeypatch.chdir(here.folder.parent)
    monkeypatch.setenv("PYTHONPATH", ":")  # whose empty entries are the current folder
    assert here.start().is_ready()
    assert not Path("imported").exists()


def test_it_outlives_the_process_that_started_it(here: BackgroundEmulator) -> None:
    code = "import sys, pathlib; from entrypoints.emulator.background import BackgroundEmulator as B; "
    code += "print(B(pathlib.Path(sys.argv[1])).start().port)"
    done = subprocess.run([sys.executable, "-c", code, str(here.folder)], capture_output=True, text=True, check=True)
    running = here.running()
    assert running is not None
    assert str(running.port) == done.stdout.strip()


def test_stopped_it_leaves_nothing(here: BackgroundEmulator, tmp_path: Path) -> None:
    here.start()
    assert here.stop()
    assert here.running() is None
    eventually(lambda: not processes_in(tmp_path / "tmp"))
    assert list((tmp_path / "tmp").glob("onejob-*")) == []
    assert not here.stop()


def test_killed_it_is_not_running_and_can_be_started_again(here: BackgroundEmulator, tmp_path: Path) -> None:
    first = here.start()
    os.kill(pid(here), signal.SIGKILL)
    eventually(lambda: here.running() is None)
    eventually(lambda: not first.is_ready())
    assert here.start().is_ready()


def test_one_that_does_not_answer_is_said_and_can_be_stopped(
    here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.start()
    os.kill(pid(here), signal.SIGSTOP)
    state = here.folder / "emulator.json"
    told = json.loads(state.read_text())
    state.write_text(json.dumps({**told, "port": 1}))
    monkeypatch.setattr(background, "ANSWERS_WITHIN_SECONDS", 0)
    with pytest.raises(EmulatorError, match="onejob local down"):
        here.running()
    os.kill(told["pid"], signal.SIGCONT)
    assert here.stop()


def test_one_that_ignores_its_end_is_killed(here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    here.start()
    os.kill(pid(here), signal.SIGSTOP)
    monkeypatch.setattr(background, "ENDS_WITHIN_SECONDS", 0.1)
    assert here.stop()
    assert here.running() is None


def test_why_it_cannot_start_is_said(here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("UV", raising=False)
    with pytest.raises(EmulatorError, match="uv is not on the PATH"):
        here.start()
    assert here.running() is None


def test_a_lock_that_nobody_explains_is_said(here: BackgroundEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    here.folder.mkdir()
    monkeypatch.setattr(background, "STARTS_WITHIN_SECONDS", 0)
    monkeypatch.setattr(background, "ENDS_WITHIN_SECONDS", 0)
    with here._locked() as is_ours:
        assert is_ours
        for ask in (here.running, here.stop):
            with pytest.raises(EmulatorError, match="does not"):
                ask()


@pytest.mark.parametrize("after", [0.02, 0.1, 0.2, 0.3])
def test_interrupted_while_it_starts_it_leaves_nothing(here: BackgroundEmulator, tmp_path: Path, after: float) -> None:
    code = """
import os, pathlib, signal, sys, threading
from entrypoints.emulator.background import BackgroundEmulator
here = BackgroundEmulator(pathlib.Path(sys.argv[1]))
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
here.start()
print("started")
"""
    command = [sys.executable, "-c", code, str(here.folder), str(after)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert "KeyboardInterrupt" in done.stderr
    assert done.stdout == ""
    assert here.running() is None
    eventually(lambda: not processes_in(tmp_path / "tmp"))
