"""An emulator that outlives the command that started it, one a folder: a process of its own keeps it."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from entrypoints.emulator.launcher import Emulator, EmulatorError, emulator
from entrypoints.private_files import open_private, private_folder, write_private

STARTS_WITHIN_SECONDS: Final = 60
"""The first time it is installed."""
ANSWERS_WITHIN_SECONDS: Final = 2
ENDS_WITHIN_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class BackgroundEmulator:
    """What runs in a folder, if something does. Whether it does is told by a lock, which the system drops with it."""

    folder: Path

    def start(self) -> Emulator:
        """Start one, unless one runs. Raises `EmulatorError`."""
        if running := self.running():
            return running
        private_folder(self.folder)
        with open_private(self._log) as errors:
            launched = subprocess.Popen(  # noqa: S603
                [sys.executable, "-I", "-m", __name__, str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        with launched:
            try:
                line = launched.stdout.readline() if launched.stdout else ""
            except BaseException:  # interrupted: nothing is left running, whether it holds the lock already or not
                launched.kill()
                self.stop()
                raise
        if not line.strip().isdigit():
            raise EmulatorError(self._log.read_text().strip() or "the emulator did not start")
        return Emulator(int(line), str(self._told().get("key", "")))

    def running(self) -> Emulator | None:
        """Waits for one that is just starting. Raises `EmulatorError` for one that does not answer."""
        began = time.monotonic()
        while True:
            with self._locked() as is_ours:
                if is_ours:
                    return None
            told = self._told()
            port = told.get("port")
            if port and (found := Emulator(port, str(told.get("key", "")))).is_ready():
                return found
            if time.monotonic() > began + (ANSWERS_WITHIN_SECONDS if port else STARTS_WITHIN_SECONDS):
                raise EmulatorError("an emulator runs and does not answer: `onejob local down`, then try again")
            time.sleep(0.05)

    def stop(self) -> bool:
        """Whether there was one to stop. Raises `EmulatorError`."""
        began, stopped = time.monotonic(), False
        while True:
            with self._locked() as is_ours:
                if is_ours:
                    return stopped
            stopped = True
            waited = time.monotonic() - began
            if waited > 2 * ENDS_WITHIN_SECONDS:
                raise EmulatorError(f"something holds {self.folder / 'lock'} and does not end")
            if pid := self._told().get("pid"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM if waited < ENDS_WITHIN_SECONDS else signal.SIGKILL)
            time.sleep(0.05)

    def keep(self) -> NoReturn:
        """Run one until SIGTERM, in a process that stays when the one that calls this has gone."""
        with self._locked() as is_ours:
            if not is_ours:
                sys.exit(f"another emulator is being started in {self.folder}")
            if os.fork():  # which shares the lock
                os._exit(0)
            os.setsid()
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
            write_private(self._state_file, json.dumps({"pid": os.getpid()}))
            try:
                with emulator() as started:
                    told = {"pid": os.getpid(), "port": started.port, "key": started.key}
                    write_private(self._state_file, json.dumps(told))
                    print(started.port, flush=True)  # noqa: T201 - the answer to `start`
                    os.close(1)
                    while True:
                        signal.pause()
            except EmulatorError as error:
                sys.exit(str(error))
            finally:
                self._state_file.unlink(missing_ok=True)

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Whether the lock was free, and so is held here until the end."""
        if not self.folder.exists():
            yield True
            return
        with open_private(self.folder / "lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def _told(self) -> dict[str, Any]:
        """The keeper's `pid` and, once it has started, the emulator's `port` and `key`; empty before."""
        with suppress(FileNotFoundError, ValueError):
            told: dict[str, Any] = json.loads(self._state_file.read_text())
            return told
        return {}

    @property
    def _state_file(self) -> Path:
        return self.folder / "emulator.json"

    @property
    def _log(self) -> Path:
        return self.folder / "keeper.log"


if __name__ == "__main__":
    BackgroundEmulator(Path(sys.argv[1])).keep()
