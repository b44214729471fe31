"""What is done to the workers of the proof, and when: each worker has faults of its own, drawn from the seed."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event
from typing import Literal

from tests.support.cut_proxy import Cut, CutProxy
from tests.support.work_proof.worker import CLOCK_WIDTH

type Kind = Literal[
    "killed", "suspended", "store cut", "queue cut", "both cut", "answers lost", "clock back", "clock forward"
]

HANDS: tuple[tuple[Kind, ...], ...] = (
    ("both cut", "clock back"),
    ("suspended", "clock forward"),
    ("store cut", "queue cut", "answers lost", "killed"),
)
"""In each round a worker gets one of these, so that rounds take each of them about as long."""

ROOT = Path(__file__).resolve().parents[3]
CUTS: tuple[Cut, ...] = ("closed", "silent", "late")
STEP_SECONDS = 30
READY_WITHIN_SECONDS = 30


@dataclass(frozen=True)
class Fault:
    """What was done to which process, from before it was begun until after it was undone, on the monotonic clock."""

    kind: Kind
    worker: int
    start: float
    end: float


@dataclass
class Slot:
    """Room for one worker process at a time, its lines to store and queue, and its clock. `start` is called again after
    a kill.
    """

    number: int
    lease: float
    seed: int
    arguments: list[str]
    environment: dict[str, str]
    store: CutProxy
    queue: CutProxy
    faults: list[Fault] = field(default_factory=list)
    process: "subprocess.Popen[bytes]" = field(init=False)
    _starts: int = 0

    @property
    def log(self) -> Path:
        """Of the process that runs."""
        return Path(f"log.{self.number}.{self._starts}")

    def start(self) -> None:
        self._starts += 1
        self._set_clock(0)
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

    def suffer(self, is_over: Callable[[], bool]) -> None:
        """One fault after the other until `is_over` at the end of a round; each begins while the worker runs jobs."""
        turn = 0
        while True:
            for kind, random in self._hand(turn):
                self._wait_for_jobs(random)
                assert self.process.poll() is None, self.log.read_text()[-3000:]
                with self._noted(kind):
                    self._suffer(kind, random)
            turn += 1
            if is_over():
                return

    def _hand(self, turn: int) -> list[tuple[Kind, Random]]:
        shared = Random(f"{self.seed}:{turn}")
        mine = Random(f"{self.seed}:{turn}:{self.number}")
        hand = list(shared.sample(HANDS, len(HANDS))[self.number])
        mine.shuffle(hand)
        return [(kind, Random(mine.random())) for kind in hand]

    def _suffer(self, kind: Kind, random: Random) -> None:
        pause = Event().wait
        longer = random.uniform(self.lease * 1.1, self.lease + 1)  # than its lease
        beyond = random.uniform(self.lease + 2, self.lease + 4)  # than its messages' invisibility, too
        match kind:
            case "killed":
                self.process.kill()
                self.process.wait()
                self.start()
            case "suspended":
                self.process.send_signal(signal.SIGSTOP)
                pause(beyond)
                self.process.send_signal(signal.SIGCONT)
            case "store cut" | "queue cut" | "both cut":
                lines = [self.store] * (kind != "queue cut") + [self.queue] * (kind != "store cut")
                for line in lines:
                    line.cut(random.choice(CUTS))
                pause(beyond if kind == "both cut" else longer)
                for line in lines:
                    line.mend()
            case "answers lost":
                for line in (self.store, self.queue):
                    line.cut("closed")
                    line.mend()
            case "clock back" | "clock forward":
                self._set_clock(STEP_SECONDS if kind == "clock forward" else -STEP_SECONDS)
                pause(random.uniform(1, 1.5))
                self._set_clock(0)

    @contextmanager
    def _noted(self, kind: Kind) -> Iterator[None]:
        worker, start = self.process.pid, time.monotonic()
        try:
            yield
        finally:
            self.faults.append(Fault(kind, worker, start, time.monotonic()))

    def _wait_for_jobs(self, random: Random) -> None:
        """A moment, and then until it runs some; after four seconds without any regardless."""
        deadline = time.monotonic() + 4
        Event().wait(random.uniform(0.1, 0.5))
        file = Path(f"effects.{self.process.pid}")
        while time.monotonic() < deadline:
            text = file.read_text() if file.exists() else ""
            if text.count('"effect"') > text.count('"ended"'):
                return
            time.sleep(0.01)

    @property
    def _clock(self) -> Path:
        return Path(f"clock.{self.number}")

    def _set_clock(self, seconds: int) -> None:
        file = os.open(self._clock, os.O_WRONLY | os.O_CREAT)
        os.pwrite(file, str(seconds).rjust(CLOCK_WIDTH).encode(), 0)
        os.close(file)

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
