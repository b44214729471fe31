"""What is done to the workers of the proof, and when: each worker has faults of its own, drawn from the seed."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from tests.support.cut_proxy import Cut
from tests.support.work_proof.slot import Slot

type Kind = Literal[
    "killed", "suspended", "store cut", "queue cut", "both cut", "answers lost", "clock back", "clock forward"
]

HANDS: tuple[tuple[Kind, ...], ...] = (
    ("both cut", "clock back"),
    ("suspended", "clock forward"),
    ("store cut", "queue cut", "answers lost", "killed"),
)
"""In each round a worker gets one of these. They take about as long."""

CUTS: tuple[Cut, ...] = ("closed", "silent", "late")
STEP_SECONDS = 30


@dataclass(frozen=True)
class Fault:
    """What was done to which process, from before it was begun until after it was undone, on the monotonic clock."""

    kind: Kind
    worker: int
    start: float
    end: float

    def overlaps(self, start: float, end: float) -> bool:
        return self.start <= end and self.end >= start


@dataclass
class Faults:
    """Of one worker. `lease`, and the longest `pause` between two of them, are in seconds."""

    slot: Slot
    seed: int
    lease: float
    pause: float
    done: list[Fault] = field(default_factory=list)

    def inflict(self, is_over: Callable[[], bool]) -> None:
        """One fault after the other until `is_over` at the end of a round; each begins while the worker runs jobs."""
        turn = 0
        while True:
            for kind, random in self._hand(turn):
                self._wait_for_jobs(random)
                assert self.slot.process.poll() is None, f"seed {self.seed}: {self.slot.log.read_text()[-3000:]}"
                with self._noted(kind):
                    self._inflict(kind, random)
            turn += 1
            if is_over():
                return

    def _hand(self, turn: int) -> list[tuple[Kind, Random]]:
        shared = Random(f"{self.seed}:{turn}")
        mine = Random(f"{self.seed}:{turn}:{self.slot.number}")
        hand = list(shared.sample(HANDS, len(HANDS))[self.slot.number])
        mine.shuffle(hand)
        return [(kind, Random(mine.random())) for kind in hand]

    def _wait_for_jobs(self, random: Random) -> None:
        """A moment, and then until it runs some; after four seconds without any regardless."""
        time.sleep(random.uniform(self.pause / 5, self.pause))
        deadline = time.monotonic() + 4
        while not self.slot.is_between_effect_and_record() and time.monotonic() < deadline:
            time.sleep(0.01)

    @contextmanager
    def _noted(self, kind: Kind) -> Iterator[None]:
        worker, start = self.slot.process.pid, time.monotonic()
        try:
            yield
        finally:
            self.done.append(Fault(kind, worker, start, time.monotonic()))

    def _inflict(self, kind: Kind, random: Random) -> None:
        """The lengths are those of the faults: a lease lapses in them."""
        longer = random.uniform(self.lease * 1.1, self.lease + 1)  # than its lease
        beyond = random.uniform(self.lease + 2, self.lease + 4)  # than its messages' invisibility, too
        process = self.slot.process
        match kind:
            case "killed":
                process.kill()
                process.wait()
                self.slot.start()
            case "suspended":
                process.send_signal(signal.SIGSTOP)
                time.sleep(beyond)
                process.send_signal(signal.SIGCONT)
            case "store cut" | "queue cut" | "both cut":
                lines = [self.slot.store] * (kind != "queue cut") + [self.slot.queue] * (kind != "store cut")
                for line in lines:
                    line.cut(random.choice(CUTS))
                time.sleep(beyond if kind == "both cut" else longer)
                for line in lines:
                    line.mend()
            case "answers lost":
                for line in (self.slot.store, self.slot.queue):
                    line.cut("closed")
                    line.mend()
            case "clock back" | "clock forward":
                self.slot.set_clock(STEP_SECONDS if kind == "clock forward" else -STEP_SECONDS)
                time.sleep(random.uniform(1, 1.5))
                self.slot.set_clock(0)
