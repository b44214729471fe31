"""Threads that a test decides on: refused at its word, or never run."""

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
    """Real threads, of which some are refused: the starts with these numbers, from 1, or all while `none` is set."""

    refused: Iterable[int] = ()
    none: bool = False
    asked: list[str] = field(default_factory=list)
    """The name of each thread that was asked for."""

    def start(self, run: Callable[[], None], name: str) -> Running:
        self.asked.append(name)
        if self.none or len(self.asked) in self.refused:
            raise ThreadRefusedError("can't start new thread")
        return super().start(run, name)
