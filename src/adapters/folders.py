"""Folders for what other users may not read: records, an emulator's key."""

from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder with mode 0700, and those above it that are missing likewise. One that is there stays as it is."""
    if not path.is_dir():
        if path.parent != path:
            make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
