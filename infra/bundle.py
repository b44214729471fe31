"""The Lambda bundle: `src/` beside the lock file's run-time packages, installed by uv for the function's own platform.

    uv run python -m infra.bundle --architecture arm64

No Docker, no compiler. The same input gives the same bytes, so the asset's hash changes when, and only when, what runs
changes; CDK gets a finished folder, since for a bundling of its own it would hash the sources alone.
boto3 is the runtime's (docs/adr/0007-bundle.md).
"""

import argparse
import compileall
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.worker_props import Architecture

PROJECT: Final = Path(__file__).resolve().parents[1]
PYTHON: Final = (3, 13)
"""The function's. Its bytecode is in the bundle: a function cannot write any, and would compile at each cold start."""

_PLATFORMS: Final = {Architecture.ARM64: "aarch64-manylinux_2_28", Architecture.X86_64: "x86_64-manylinux_2_28"}
"""Of Amazon Linux 2023, on which Lambda's Python 3.13 runs (glibc 2.34)."""

_IN_THE_RUNTIME: Final = ("boto3", "botocore", "s3transfer")
_NOT_FOR_LAMBDA: Final = ("entrypoints/cli/", "entrypoints/emulator/")
_DROPPED: Final = ("*.c", "*.cpp", "*.h", "*.pyx", "*.pxd", "*.pyc", ".lock")
_DROPPED_METADATA: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class BundleError(Exception):
    """The bundle cannot be built; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A finished bundle."""

    folder: Path
    architecture: Architecture

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())

    def zipped(self) -> bytes:
        """As it is uploaded: the same bytes for the same files."""
        output = io.BytesIO()
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in self.files:
                entry = zipfile.ZipInfo(path.relative_to(self.folder).as_posix(), _EPOCH)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o100644 << 16
                archive.writestr(entry, path.read_bytes())
        return output.getvalue()

    def size(self) -> str:
        """For people."""
        files = self.files
        unpacked, zipped = sum(path.stat().st_size for path in files), len(self.zipped())
        return (
            f"bundle for {self.architecture}: {len(files)} files, {unpacked / 1e6:.1f} MB, {zipped / 1e6:.1f} MB zipped"
        )


def build(architecture: Architecture, project: Path = PROJECT) -> Bundle:
    """The bundle of that project, built unless it is there already. Raises `BundleError`.

    It lies under `build/`, in a folder named after everything that went into it.
    """
    if sys.version_info[:2] != PYTHON:
        told = ".".join(map(str, PYTHON))
        raise BundleError(
            f"the function runs Python {told} and so must what builds its bundle: uv run --python {told} ..."
        )
    requirements = _requirements(project)
    folder = project / "build" / f"bundle-{architecture}-{_hash(requirements, architecture, project)}"
    if not folder.exists():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as scratch:
            made = Path(scratch) / "bundle"
            _install(requirements, architecture, made, project)
            _clean(made)
            _compile(made, made)
            ours = _copy_sources(project / "src", made)
            if errors := _compile(made, *ours):  # of others' files, templates say, not all are meant to be compiled
                raise BundleError(f"the sources cannot be compiled:\n{errors}")
            _set_modes(made)
            try:
                made.rename(folder)
            except OSError:
                if not folder.exists():  # else another process was as quick
                    raise
    return Bundle(folder, architecture)


def _requirements(project: Path) -> str:
    """The lock file's run-time packages with their hashes, without what the runtime brings."""
    pruned = [part for name in _IN_THE_RUNTIME for part in ("--prune", name)]
    return _uv(project, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-header", *pruned)


def _install(requirements: str, architecture: Architecture, target: Path, project: Path) -> None:
    listed = target.parent / "requirements.txt"
    listed.write_text(requirements)
    _uv(
        project,
        *("pip", "install", "--no-deps", "--only-binary", ":all:", "--require-hashes"),
        *("--link-mode", "copy", "--python-platform", _PLATFORMS[architecture]),
        *("--python-version", ".".join(map(str, PYTHON)), "--target", str(target), "--requirements", str(listed)),
    )


def _uv(project: Path, *arguments: str) -> str:
    uv = shutil.which(os.environ.get("UV") or "uv") or shutil.which("uv")
    if uv is None:
        raise BundleError("uv is not on the PATH: install it with `pip install uv`, then try again")
    done = subprocess.run([uv, "--color", "never", *arguments], cwd=project, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise BundleError(f"`uv {' '.join(arguments[:2])}` failed:\n{done.stderr.strip()}")
    return done.stdout


def _copy_sources(sources: Path, target: Path) -> list[Path]:
    """What lies at the top of them, in its new place."""
    for path in _sources(sources):
        copied = target / path.relative_to(sources)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copied)
    return sorted({target / path.relative_to(sources).parts[0] for path in _sources(sources)})


def _sources(sources: Path) -> Iterator[Path]:
    for path in sorted(sources.rglob("*")):
        name = path.relative_to(sources).as_posix()
        if path.is_file() and "__pycache__" not in path.parts and not name.startswith(_NOT_FOR_LAMBDA):
            yield path


def _clean(folder: Path) -> None:
    for pattern in (*_DROPPED, *(f"*.dist-info/{name}" for name in _DROPPED_METADATA)):
        for path in folder.rglob(pattern):
            path.unlink()
    for name in ("bin", "include", "share"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _compile(folder: Path, *what: Path) -> str:
    """What could not be compiled, and why. In a process of its own: what the compiler writes depends on what else its
    process holds. `-P`: nothing is imported from the current folder.
    """
    command = [sys.executable, "-P", "-s", "-S", "-m", compileall.__name__, "-q", "-j", "1"]
    names = ["-s", str(folder), "-p", "/var/task", "--invalidation-mode", "unchecked-hash"]
    done = subprocess.run(  # noqa: S603
        [*command, *names, *map(str, what)], env={"PYTHONHASHSEED": "0"}, capture_output=True, text=True
    )
    return done.stdout.strip() if done.returncode else ""


def _set_modes(folder: Path) -> None:
    """Lambda's user must be able to read it, whatever the umask here."""
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    folder.chmod(0o755)


def _hash(requirements: str, architecture: Architecture, project: Path) -> str:
    digest = hashlib.sha256(f"{architecture}\0{sys.version}\0{requirements}\0".encode())
    for path in (Path(__file__), *_sources(project / "src")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{path.parent.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:20]


def main() -> None:
    """Build it and print where it is, and how big."""
    parser = argparse.ArgumentParser(prog="python -m infra.bundle", description="Build the Lambda bundle with uv.")
    parser.add_argument("--architecture", type=Architecture, choices=list(Architecture), default=Architecture.ARM64)
    parser.add_argument("--zip", type=Path, metavar="FILE", help="write it as a zip file, too")
    options = parser.parse_args()
    try:
        bundle = build(options.architecture)
    except BundleError as error:
        sys.exit(f"bundle: {error}")
    if options.zip:
        options.zip.write_bytes(bundle.zipped())
    print(f"{bundle.size()}\n{bundle.folder}")  # noqa: T201


if __name__ == "__main__":
    main()
