"""`.onejob` is closed to other users, whoever makes it."""

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.folders import make_folder
from entrypoints.cli.commands.local.local import Local
from entrypoints.emulator.background import BackgroundEmulator


def lock(folder: Path) -> None:
    with Local(folder)._alone():
        pass


def start(folder: Path) -> None:
    with pytest.raises(OSError, match="nothing is started here"):
        BackgroundEmulator(folder).start()


@pytest.mark.parametrize("make", [make_folder, lock, start])
def test_each_folder_that_was_missing_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("nothing is started here")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    tmp_path.chmod(0o755)
    make(tmp_path / ".onejob" / "local")
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (tmp_path / ".onejob", tmp_path / ".onejob" / "local")]
    assert modes == [0o700, 0o700]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
