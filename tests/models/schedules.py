"""Every order in which greenlets can take their steps: a run is repeated with other choices until none is left.

Between two steps of a worker lies real, unmodified, synchronous code: a step ends where that calls `pause`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from greenlet import GreenletExit, getcurrent, greenlet


def pause() -> None:
    """The end of a step: whoever is next goes on."""
    getcurrent().parent.switch()


@dataclass
class Worker:
    """Does its tasks one after another. Killed, it loses the one that it is at, and goes on with the next."""

    tasks: list[Callable[[], None]]
    _at: greenlet | None = None

    def __post_init__(self) -> None:
        self._begin_next()

    @property
    def done(self) -> bool:
        return self._at is None

    def step(self) -> None:
        assert self._at is not None
        self._at.switch()
        if self._at.dead:
            self._begin_next()

    def kill(self) -> None:
        assert self._at is not None
        self._at.throw(GreenletExit)
        assert self._at.dead
        self._begin_next()

    def _begin_next(self) -> None:
        self._at = greenlet(self.tasks.pop(0)) if self.tasks else None


class World(Protocol):
    """What a schedule runs through. It raises `AssertionError` as soon as something is wrong."""

    workers: list[Worker]

    def killed(self, worker: int) -> None:
        """Called before a worker is killed."""
        ...

    def time_jumps(self) -> None: ...

    def stepped(self) -> None:
        """Called after each step."""
        ...

    def end(self) -> None:
        """Called when all workers are done."""
        ...


@dataclass(frozen=True)
class Bounds:
    """How much may go wrong in one schedule. A preemption takes the turn from a worker that could go on; None: as many
    as there may be.
    """

    kills: int = 1
    jumps: int = 1
    preemptions: int | None = None


type Choice = tuple[str, int]


@dataclass
class _Run:
    """One schedule: the choices given, then always the first of what is possible."""

    world: World
    bounds: Bounds
    given: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    trace: list[Choice] = field(default_factory=list)

    def go(self) -> None:
        left = Bounds(self.bounds.kills, self.bounds.jumps, self.bounds.preemptions)
        last: int | None = None
        while choices := self._choices(left, last):
            index = self.given[len(self.taken)] if len(self.taken) < len(self.given) else 0
            self.taken.append((index, len(choices)))
            what, worker = choice = choices[index]
            self.trace.append(choice)
            match what:
                case "step":
                    if left.preemptions is not None and self._preempts(worker, last):
                        left = Bounds(left.kills, left.jumps, left.preemptions - 1)
                    last = worker
                    self.world.workers[worker].step()
                case "kill":
                    left = Bounds(left.kills - 1, left.jumps, left.preemptions)
                    self.world.killed(worker)
                    self.world.workers[worker].kill()
                case _:
                    left = Bounds(left.kills, left.jumps - 1, left.preemptions)
                    self.world.time_jumps()
            self.world.stepped()
        self.world.end()

    def _choices(self, left: Bounds, last: int | None) -> list[Choice]:
        alive = [number for number, worker in enumerate(self.world.workers) if not worker.done]
        steps = [each for each in alive if left.preemptions != 0 or not self._preempts(each, last)]
        choices = [("step", worker) for worker in steps]
        if left.kills:
            choices += [("kill", worker) for worker in alive]
        if left.jumps and alive:
            choices.append(("time jumps", -1))
        return choices

    def _preempts(self, worker: int, last: int | None) -> bool:
        return last is not None and worker != last and not self.world.workers[last].done


class ViolationError(Exception):
    """What went wrong, and the schedule in which it did."""


def every_schedule[W: World](make: Callable[[], W], bounds: Bounds) -> Iterator[W]:
    """The world at the end of each schedule, until all were run. Raises `ViolationError`."""
    given: list[int] | None = []
    while given is not None:
        run = _Run(world := make(), bounds, given)
        try:
            run.go()
        except Exception as error:
            steps = ", ".join(what if worker < 0 else f"{what} {'AB'[worker]}" for what, worker in run.trace)
            raise ViolationError(f"{error}\nin the schedule: {steps}") from error
        yield world
        given = _next(run.taken)


def _next(taken: list[tuple[int, int]]) -> list[int] | None:
    """The last choice that has another possibility takes it; what followed is open again."""
    while taken:
        index, of = taken.pop()
        if index + 1 < of:
            return [*(each for each, _ in taken), index + 1]
    return None
