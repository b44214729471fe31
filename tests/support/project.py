"""A copy of the project, as a user has it who cloned it, to change and deploy."""

import shutil
from pathlib import Path

from infra.bundle import PROJECT

PARTS = ("src", "infra", "cdk.json", "pyproject.toml", "uv.lock", ".python-version", "README.md", "LICENSE")


def copied_project(folder: Path, operations: Path | None = None) -> Path:
    """With `operations` in place of `src/operations/__init__.py`, in the one folder that a user edits."""
    for name in PARTS:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(source, folder / name)
    if operations is not None:
        shutil.copyfile(operations, folder / "src" / "operations" / "__init__.py")
    return folder
