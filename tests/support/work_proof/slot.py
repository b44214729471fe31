"""Room for one worker process of the proof at a time, with lines to the store and the queue of its own, and a clock."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.cut_proxy import CutProxy
from tests.support.work_proof.worker import CLOCK_WIDTH

ROOT = Path(__file__).resolve().parents[3]
READY_WITHIN_SECONDS = 30


@dataclass
class Slot:
    """`start` is called again after a kill. Files are in the current folder."""

    number: int
    arguments: list[str]
    environment: dict[str, str]
    store: CutProxy
    queue: CutProxy
    process: "subprocess.Popen[bytes]" = field(init=False)
    _starts: int = 0

    @property
    def log(self) -> Path:
        """Of the process that runs."""
        return Path(f"log.{self.number}.{self._starts}")

    def start(self) -> None:
        self._starts += 1
        self.set_clock(0)
        lines = {"AWS_ENDPOINT_URL_DYNAMODB": self.store.url, "AWS_ENDPOINT_URL_SQS": self.queue.url}
        clock = {"PROOF_CLOCK": str(self._clock.absolute()), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "tests.support.work_proof.worker", *self.arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.environment | lines | clock)

    def wait_until_started(self) -> None:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while '"worker_started"' not in (text := self.log.read_text()):
            assert self.process.poll() is None, text
            assert time.monotonic() < deadline, text
            time.sleep(0.05)

    def is_between_effect_and_record(self) -> bool:
        """Whether the process has a job whose effect has happened, and whose operation has not returned."""
        file = Path(f"effects.{self.process.pid}")
        text = file.read_text() if file.exists() else ""
        return text.count('"effect"') > text.count('"ended"')

    def set_clock(self, seconds: int) -> None:
        """By how much the wall clock of the process is off."""
        file = os.open(self._clock, os.O_WRONLY | os.O_CREAT)
        os.pwrite(file, str(seconds).rjust(CLOCK_WIDTH).encode(), 0)
        os.close(file)

    @property
    def _clock(self) -> Path:
        return Path(f"clock.{self.number}")

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.wait_until_started()
        self.process.terminate()
        return self.process.wait(30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.store.close()
        self.queue.close()
