"""A long run in stretches: what was done is kept in a file beside, and the next command goes on where it ended."""

import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class OtherCommitError(Exception):
    """The file is of another commit, or of other files than those of a commit: its seeds say nothing of these."""


@dataclass(slots=True)
class Stretches:
    """The file. `commit` is what it runs on: a commit, with `+` where files differ from it."""

    path: Path
    commit: str
    backend: str
    first: int
    next_seed: int
    seconds: float
    failing: dict[int, str]
    counts: dict[str, Counter[str]]

    @classmethod
    def opened(cls, path: Path, commit: str, backend: str, first: int, kinds: tuple[str, ...]) -> "Stretches":
        """What the file says, or a new one. Raises `OtherCommitError`."""
        if not path.exists():
            return cls(path, commit, backend, first, first, 0.0, {}, {kind: Counter() for kind in kinds})
        told: dict[str, Any] = json.loads(path.read_text())
        was, now = (told["commit"], told["backend"], told["first"]), (commit, backend, first)
        if was != now:
            raise OtherCommitError(f"{path}: is of {was} (commit, backend, first seed), and this is {now}")
        if commit.endswith("+"):
            raise OtherCommitError(f"{path}: files differ from commit {commit[:-1]}: nobody knows what it ran on")
        failing = {int(seed): violation for seed, violation in told["failing"].items()}
        counts = {kind: Counter(told["counts"].get(kind, {})) for kind in kinds}
        return cls(path, commit, backend, first, told["next_seed"], told["seconds"], failing, counts)

    def keep(self) -> None:
        """Replace the file whole: an interruption leaves the one or the other."""
        beside = self.path.with_name(f"{self.path.name}.new")
        told = {
            "commit": self.commit,
            "backend": self.backend,
            "first": self.first,
            "next_seed": self.next_seed,
            "seconds": round(self.seconds, 1),
            "failing": self.failing,
            "counts": self.counts,
        }
        beside.write_text(json.dumps(told, indent=1))
        os.replace(beside, self.path)


def commit_of(root: Path = ROOT) -> str:
    """The commit of `src` and `tests`, with `+` where they differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    differs = git("status", "--porcelain", "--untracked-files=all", "--", "src", "tests")
    return git("rev-parse", "HEAD") + ("+" if differs else "")
