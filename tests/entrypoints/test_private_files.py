"""Files that hold payloads, keys and logs: for their owner only, and no link is followed."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from entrypoints.private_files import Replacement, open_private, private_folder, write_private


@pytest.fixture(autouse=True)
def _a_umask_that_hides_nothing() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_and_what_is_missing_above_it_are_the_owners(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    private_folder(tmp_path / ".onejob" / "local")
    assert [mode(tmp_path / ".onejob"), mode(tmp_path / ".onejob" / "local")] == [0o700, 0o700]
    assert mode(tmp_path) == 0o755, "what was there stays as it was"


def test_a_folder_that_is_there_becomes_the_owners(tmp_path: Path) -> None:
    (tmp_path / "local").mkdir()
    private_folder(tmp_path / "local")
    assert mode(tmp_path / "local") == 0o700


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        private_folder(tmp_path)


@pytest.mark.parametrize("how", ["w", "a"])
def test_an_open_file_is_the_owners_also_if_it_was_there(tmp_path: Path, how: str) -> None:
    (tmp_path / "log").write_text("before")
    for name in ("log", "new"):
        with open_private(tmp_path / name, how) as file:
            file.write("after")
        assert mode(tmp_path / name) == 0o600
    assert (tmp_path / "log").read_text() == ("beforeafter" if how == "a" else "after")


def test_an_open_file_is_never_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "log").symlink_to("theirs")
    with pytest.raises(OSError, match="symbolic link"):
        open_private(tmp_path / "log")
    assert (tmp_path / "theirs").read_text() == "precious"


def test_a_written_file_takes_the_name_in_one_step(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("before")
    os.link(state, tmp_path / "seen")
    write_private(state, "after")
    assert (state.read_text(), mode(state), (tmp_path / "seen").read_text()) == ("after", 0o600, "before")
    assert {path.name for path in tmp_path.iterdir()} == {"state", "seen"}


def test_a_written_file_that_cannot_take_the_name_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(tmp_path / "state", "any")
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


def test_a_pipe_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    os.chown(tmp_path / "pipe", 4711, -1) if os.getuid() == 0 else pytest.skip("only root gives a file away")
    with pytest.raises(OSError, match="belongs to another user"):
        Replacement(tmp_path / "pipe")


def test_a_file_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    file = Replacement(tmp_path / "state")
    file.write(b"half")
    file.discard()
    file.close()
    assert list(tmp_path.iterdir()) == []
