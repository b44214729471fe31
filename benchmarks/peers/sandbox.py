"""A worker process as Lambda's sandbox: started, invoked, killed at the time-out, stopped and continued."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


class SandboxDiedError(Exception):
    """The process ended; nobody knows what it did."""


class TimedOutError(SandboxDiedError):
    """It was killed at the time-out."""


class Sandbox:
    """One process. `versions` are what it told when it was ready."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment
            )
        self._buffer = b""
        try:
            self.versions: dict[str, str] = self._read(60)["versions"]
        except SandboxDiedError as error:
            raise RuntimeError(f"{command[-1]} did not start:\n{log.read_text()[-2000:]}") from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def invoke(self, event: Any, script: Mapping[str, Any], *, seconds: float, limit: float) -> dict[str, Any]:
        """What the handler returned or raised. It is told `seconds`; after `limit` it is killed."""
        assert self._process.stdin
        request = json.dumps({"event": event, "script": script, "seconds": seconds}) + "\n"
        with suppress(BrokenPipeError):
            self._process.stdin.write(request.encode())
            self._process.stdin.flush()
        return self._read(limit)

    def go_on(self) -> None:
        if self.is_alive:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout
        file, deadline = self._process.stdout.fileno(), time.monotonic() + seconds
        while b"\n" not in self._buffer:
            ready = select.select([file], [], [], max(0, deadline - time.monotonic()))[0]
            read = os.read(file, 65536) if ready else b""
            if not read:
                self.kill()
                raise SandboxDiedError if ready else TimedOutError
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer
