"""A copy of the project, as a user has it who cloned it, to change and deploy."""

import shutil
from pathlib import Path

from infra.bundle import PROJECT

PARTS = ("src", "infra", "cdk.json", "pyproject.toml", "uv.lock", ".python-version", "README.md", "LICENSE")


def copied_project(folder: Path, business: Path | None = None) -> Path:
    """With `business` in place of `src/domain/business.py`, the one file that a user edits."""
    for name in PARTS:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, folder / name)
    if business is not None:
        shutil.copyfile(business, folder / "src" / "domain" / "business.py")
    return folder
