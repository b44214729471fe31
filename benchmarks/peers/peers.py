"""Who is compared, and how each gets an environment of its own, from a lock file."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from entrypoints.emulator.launcher import PROJECT

WORKERS: Final = Path(__file__).with_name("workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """`module` is run in its own interpreter; `key` is the partition key of its table."""

    name: str
    module: str
    key: str = "id"
    environment: Mapping[str, str] = field(default_factory=dict)
    uses_store: bool = True

    def command(self) -> list[str]:
        """Starts a worker. Makes the environment first where it is missing."""
        python = _project_python() if self.module == "onejob_worker" else _script_python(self.module)
        return [python, "-P", "-m", f"benchmarks.peers.workers.{self.module}"]


ONEJOB: Final = Peer(name="onejob", module="onejob_worker")
CONTROL: Final = Peer(name="no idempotency", module="control_worker", uses_store=False)
PEERS: Final = (
    ONEJOB,
    Peer(name="Powertools, as documented", module="powertools_worker"),
    Peer(name="Powertools, all checks on", module="powertools_worker", environment={"PEER_CHECKS": "1"}),
    Peer(name="idemkit", module="idemkit_worker", key="effective_key"),
    CONTROL,
)


def _script_python(module: str) -> str:
    script = str(WORKERS / f"{module}.py")
    _uv("sync", "--frozen", "--quiet", "--script", script)
    return _uv("python", "find", "--script", script)


def _project_python() -> str:
    """What is deployed, and nothing of development."""
    folder = PROJECT / ".venv-peer-onejob"
    _uv("sync", "--frozen", "--quiet", "--no-default-groups", UV_PROJECT_ENVIRONMENT=str(folder))
    return str(folder / "bin" / "python")


def _uv(*arguments: str, **environment: str) -> str:
    uv = os.environ.get("UV") or shutil.which("uv") or "uv"
    clean = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    done = subprocess.run(
        [uv, *arguments], cwd=PROJECT, env=clean | environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"uv {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout.strip()
