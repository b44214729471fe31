"""Processes by their temporary folder: an emulator, and what it runs. Looks through Linux's /proc."""

from contextlib import suppress
from pathlib import Path


def environment_of(process: int) -> dict[str, str]:
    pairs = Path(f"/proc/{process}/environ").read_text(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def processes_in(folder: Path) -> list[int]:
    """Those whose temporary folder lies in this one."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if environment_of(int(process.name)).get("TMPDIR", "").startswith(f"{folder}/"):
                found.append(int(process.name))
    return found
