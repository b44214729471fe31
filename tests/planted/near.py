"""Plants each bug in a copy of the source, runs its near tests against that copy, and requires them red.

uv run just planted            both tables
uv run just planted-near       this one; with words only the bugs whose names have them
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Final

import pytest

from tests.planted import of_messages, of_runs, of_stores
from tests.planted.bug import Near
from tests.simulation.planted import ROOT, Bug, environment_of, source_with

NEAR: Final = (*of_stores.NEAR, *of_messages.NEAR, *of_runs.NEAR)
LONGEST_SECONDS: Final = 60
SOME_FAILED: Final = 1
"""Of pytest's exit statuses. Another says that the tests could not be run, which finds nothing."""

_forks = get_context("forkserver")
_forks.set_forkserver_preload(["pytest", "hypothesis", "boto3", "moto", "valkey"])


@dataclass(frozen=True, slots=True)
class Ran:
    """How the tests ended, and what they wrote."""

    status: int | None
    """pytest's; None where they hung."""
    text: str

    @property
    def is_red(self) -> bool:
        return self.status == SOME_FAILED

    @property
    def failed(self) -> str:
        """The first test that failed."""
        lines = (line for line in self.text.splitlines() if line.startswith("FAILED "))
        return next(lines, "").removeprefix("FAILED ").partition(" - ")[0]


class Run:
    """These tests against a source with that bug, or with none, in a process of their own. It is forked from one that
    has imported what takes long, and nothing of ours.
    """

    def __init__(self, bug: Bug | None, tests: Iterable[str]) -> None:
        self._until = time.monotonic() + LONGEST_SECONDS
        self._open = ExitStack()
        source = self._open.enter_context(source_with(bug))
        self._output = source.with_name("output")
        self._process = _forks.Process(target=_run, args=(source, tuple(tests), self._output))
        self._process.start()
        self.sentinel = self._process.sentinel

    def ended(self) -> Ran | None:
        """None while it runs."""
        if self._process.is_alive() and time.monotonic() < self._until:
            return None
        hung = self._process.is_alive()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid or 0, signal.SIGKILL)  # and what its tests have started
        self._process.join()
        ran = Ran(None if hung else self._process.exitcode, self._output.read_text(errors="replace"))
        self._open.close()
        return ran


def _run(source: Path, tests: tuple[str, ...], output: Path) -> None:
    os.setsid()
    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment_of(source))
    sys.dont_write_bytecode = True
    sys.path[:] = [path for path in sys.path if Path(path) != ROOT / "src"]
    options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-rf", "--rootdir", str(ROOT)]
    already = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
    sys.exit(int(pytest.main([*options, *already, "-o", f"pythonpath={source} {ROOT}", *tests])))


def run_all[T](chosen: Iterable[tuple[T, Bug | None, Iterable[str]]], processes: int) -> Iterator[tuple[T, Ran]]:
    """As they end; so many at a time."""
    waiting, running = list(chosen), dict[T, Run]()
    while waiting or running:
        while waiting and len(running) < processes:
            which, bug, tests = waiting.pop(0)
            running[which] = Run(bug, tests)
        connection.wait([run.sentinel for run in running.values()], timeout=1)
        for which, ran in [(which, run.ended()) for which, run in running.items()]:
            if ran is not None:
                del running[which]
                yield which, ran


def main() -> int:
    """0 if every bug was found, and nothing without one."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted.near", description=__doc__)
    parser.add_argument("words", nargs="*", help="only bugs whose names have one of these")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    chosen = [one for one in NEAR if not options.words or any(word in one.bug.name for word in options.words)]
    missed = []
    all_tests = sorted({test for one in chosen for test in one.tests})
    tasks: list[tuple[Near | None, Bug | None, Iterable[str]]] = [(one, one.bug, one.tests) for one in chosen]
    for one, ran in run_all([(None, None, all_tests), *tasks], options.processes):
        found = ran.status == 0 if one is None else ran.is_red
        name = "no bug: every near test is green" if one is None else one.bug.name
        print(f"{'found' if found else 'MISSED':6} {name:66} {ran.failed}", flush=True)
        if not found:
            missed.append(name)
            if ran.status != 0:
                print(ran.text[-2000:])
    count = len([name for name in missed if not name.startswith("no bug")])
    print(f"{len(chosen) - count} of {len(chosen)} planted bugs found by their near tests")
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
