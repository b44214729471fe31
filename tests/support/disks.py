"""Disks that are full or read-only, for real where the tests may mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: str = "1m") -> Iterator[Path]:
    """A file system of that size. Without the right to mount, the test is skipped."""
    folder.mkdir(exist_ok=True)
    if os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)):
        pytest.skip("needs the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    """For a folder of `small_disk`: no mode stops root, a read-only mount does."""
    assert _mount("-o", "remount,ro", str(folder))


def grow(folder: Path) -> None:
    """Make room on a `small_disk`."""
    assert _mount("-o", "remount,size=100m", str(folder))


def fill(folder: Path) -> Path:
    """Leave no room; delete the answer to make some."""
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        try:
            while True:
                file.write(b"x" * 4096)
                file.flush()
        except OSError:
            pass
    return ballast


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True).returncode == 0
