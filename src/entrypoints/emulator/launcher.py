"""Starts and stops the guarded emulator.

It lives in an environment of its own, made from the project's lock file, since it pins its own boto and would lend
its packages to the functions that it runs.
"""

import fcntl
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from typing import Any, Final

from entrypoints.emulator import guarded

PROJECT: Final = Path(__file__).resolve().parents[3]
READY_WITHIN_SECONDS: Final = 30
REGION: Final = "us-east-1"


class EmulatorError(Exception):
    """The emulator cannot be had; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: what an emulator shows who connects, and whom its clients trust."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator. `key` is what it knows its own user by; with `authority` it speaks TLS, and that is whom to
    trust.
    """

    port: int
    key: str = field(repr=False)
    authority: Path | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        """What makes the AWS SDKs and tools talk to it; no other `AWS_*` may stand beside it (`only_environment`)."""
        return _trust(self.authority) | {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def reset(self) -> None:
        """Forget everything, in milliseconds."""
        self._request("/_ministack/reset", "POST")

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            self._request("/_ministack/health", "GET")
        except OSError:
            return False
        return True

    def _request(self, path: str, method: str) -> None:
        request = urllib.request.Request(f"{self.url}{path}", method=method, headers={guarded.KEY_HEADER: self.key})  # noqa: S310
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if self.authority:
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=self.authority)))
        direct = urllib.request.build_opener(*handlers)
        direct.open(request, timeout=5).read()


@contextmanager
def only_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Until the end, the process has PATH and this for its environment, and boto3 has forgotten what it knew."""
    import boto3

    before = dict(os.environ)
    os.environ.clear()
    os.environ.update({"PATH": before.get("PATH", os.defpath)} | dict(environment))
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        boto3.DEFAULT_SESSION = None


@contextmanager
def emulator(tls: Tls | None = None, **options: str) -> Iterator[Emulator]:
    """An emulator on 127.0.0.1 and a free port, for the length of the context; `options` are ministack's settings.

    Whatever it runs sees no credentials of yours, no HOME, and a temporary folder of its own. It does what it is told
    with an access key that is drawn for this start, and nothing else. It ends with this process, however that ends.
    Raises `EmulatorError`.
    """
    python = locked_environment("emulator") / "bin" / "python"
    key = f"ONEJOB{secrets.token_hex(20).upper()}"
    with tempfile.TemporaryDirectory(prefix=guarded.FOLDER_PREFIX, ignore_cleanup_errors=True) as folder:
        with (Path(folder) / "stderr").open("w") as errors:
            process = _started(
                [str(python), "-I", guarded.__file__, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=_scrubbed(folder) | _speaking(tls) | options | {guarded.KEY_VARIABLE: key},
                start_new_session=True,
                text=True,
            )
        try:
            yield _ready(process, Path(folder), key, tls.authority if tls else None)
        finally:
            _end(process)


def _started(command: list[str], **options: Any) -> "subprocess.Popen[str]":
    try:
        return subprocess.Popen(command, **options)  # noqa: S603
    except OSError as error:
        raise EmulatorError(f"{command[0]}: {error.strerror}") from error


def _end(process: "subprocess.Popen[str]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _scrubbed(folder: str) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "LANG": "C.UTF-8",
        "TMPDIR": folder,
        "BIND_HOST": "127.0.0.1",
        "MINISTACK_HOST": "localhost",
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
    }


def _speaking(tls: Tls | None) -> dict[str, str]:
    """The functions that it runs inherit whom to trust."""
    if tls is None:
        return {}
    files = {"MINISTACK_SSL_CERT": str(tls.certificate), "MINISTACK_SSL_KEY": str(tls.key)}
    return {"USE_SSL": "1"} | files | _trust(tls.authority)


def _trust(authority: Path | None) -> dict[str, str]:
    return {name: str(authority) for name in ("AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")} if authority else {}


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Two processes that make an environment at once leave half of one. The lock is on the lock file itself."""
    descriptor = os.open(PROJECT / "uv.lock", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locked_environment(group: str) -> Path:
    """The virtual environment `.venv-GROUP`, with a dependency group and nothing else, synchronised with the lock file.

    Raises `EmulatorError`.
    """
    if not (PROJECT / "uv.lock").exists():
        raise EmulatorError(f"the {group} is installed from the project's lock file, and {PROJECT} has no uv.lock")
    uv = shutil.which(os.environ.get("UV") or "uv") or shutil.which("uv")
    if uv is None:
        raise EmulatorError("uv is not on the PATH: install it with `pip install uv`, then try again")
    folder = PROJECT / f".venv-{group}"
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    with _one_at_a_time():
        made = subprocess.run(  # noqa: S603
            [uv, "sync", "--frozen", "--quiet", "--only-group", group, "--project", str(PROJECT)],
            env=environment | {"UV_PROJECT_ENVIRONMENT": str(folder)},
            capture_output=True,
            text=True,
        )
    if made.returncode:
        raise EmulatorError(f"`uv sync --only-group {group}` failed:\n{made.stderr.strip()}")
    return folder


def _ready(process: "subprocess.Popen[str]", folder: Path, key: str, authority: Path | None) -> Emulator:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    line = ""
    if process.stdout and select([process.stdout], [], [], READY_WITHIN_SECONDS)[0]:
        line = process.stdout.readline().strip()
    if line.isdigit():
        started = Emulator(int(line), key, authority)
        while process.poll() is None and time.monotonic() < deadline:
            if started.is_ready():
                return started
            time.sleep(0.02)
    _end(process)
    raise EmulatorError(f"the emulator did not start:\n{(folder / 'stderr').read_text()[-2000:].strip()}")
