"""Threads that a test decides on: refused at its word, or never run."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from adapters.threads.seam import Running, SystemThreads, ThreadRefusedError


class _Never:
    def is_alive(self) -> bool:
        return True


class IdleThreads(SystemThreads):
    """Threads that are started and never run: the test does the work in its own."""

    def start(self, run: Callable[[], None], name: str) -> Running:
        return _Never()


@dataclass
class ScarceThreads(SystemThreads):
    """Real threads, of which some are refused: the starts with these numbers, from 1; all while `none` is set; of a
    name in `most`, those beyond its number.
    """

    refused: Iterable[int] = ()
    none: bool = False
    most: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """The name of each thread that was asked for."""
    _started: Counter[str] = field(default_factory=Counter)

    def start(self, run: Callable[[], None], name: str) -> Running:
        self.asked.append(name)
        is_beyond = name in self.most and self._started[name] >= self.most[name]
        if self.none or is_beyond or len(self.asked) in self.refused:
            raise ThreadRefusedError("can't start new thread")
        self._started[name] += 1
        return super().start(run, name)
