"""Who is compared, and how each gets an environment of its own, from a lock file."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from entrypoints.emulator.launcher import PROJECT

WORKERS: Final = Path(__file__).with_name("workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`module` is run by the interpreter that `python` gives; `key` is the partition key of its table."""

    name: str
    module: str
    python: Callable[[], str]
    key: str = "id"
    environment: Mapping[str, str] = field(default_factory=dict)
    uses_store: bool = True

    def command(self) -> list[str]:
        """Starts a worker. Makes the environment first where it is missing."""
        return [self.python(), "-P", "-m", self.module]


def script_python(name: str) -> str:
    """Of the script's own environment, as its header and the lock file beside it say."""
    script = str(WORKERS / f"{name}.py")
    _uv("sync", "--frozen", "--quiet", "--script", script)
    return _uv("python", "find", "--script", script)


def project_python() -> str:
    """Of an environment with what is deployed, and nothing of development."""
    folder = PROJECT / ".venv-peer-onejob"
    _uv("sync", "--frozen", "--quiet", "--no-default-groups", UV_PROJECT_ENVIRONMENT=str(folder))
    return str(folder / "bin" / "python")


def _uv(*arguments: str, **environment: str) -> str:
    uv = os.environ.get("UV") or shutil.which("uv") or "uv"
    clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run([uv, *arguments], cwd=PROJECT, env=clean | environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout.strip()


IN: Final = "benchmarks.peers.workers"
_powertools_python: Final = partial(script_python, "powertools_worker")

ONEJOB: Final = Peer(name="onejob", module=f"{IN}.onejob_worker", python=project_python)
POWERTOOLS: Final = Peer(name="Powertools, as documented", module=f"{IN}.powertools_worker", python=_powertools_python)
CHECKED: Final = Peer(
    name="Powertools, all checks on",
    module=f"{IN}.powertools_worker",
    python=_powertools_python,
    environment={"PEER_CHECKS": "1"},
)
IDEMKIT: Final = Peer(
    name="idemkit",
    module=f"{IN}.idemkit_worker",
    python=partial(script_python, "idemkit_worker"),
    key="effective_key",
)
CONTROL: Final = Peer(
    name="no idempotency",
    module=f"{IN}.control_worker",
    python=partial(script_python, "control_worker"),
    uses_store=False,
)
PEERS: Final = (ONEJOB, POWERTOOLS, CHECKED, IDEMKIT, CONTROL)
