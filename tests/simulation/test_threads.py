"""The simulator's threads: they exclude, they wait, they end with their process, and chance decides every switch."""

from collections.abc import Callable
from random import Random
from typing import Protocol

import pytest

from adapters.threads.seam import SystemThreads, ThreadRefusedError, Threads
from tests.simulation.threads import GreenThreads
from tests.simulation.world import Process, Violation, World


class Body(Protocol):
    def __call__(self, world: World, threads: Threads) -> None: ...


def run(body: Body, seed: int = 0, refuses: Callable[[], bool] = lambda: False) -> World:
    """A world with one process, whose first thread runs this."""
    world, process = World(Random(seed), 1_000), Process()
    threads = GreenThreads(world, process, refuses)
    world.spawn(process, lambda: body(world, threads))
    world.run(lambda: False)
    return world


@pytest.mark.parametrize("seed", range(20))
def test_a_lock_excludes(seed: int) -> None:
    inside: list[int] = []
    entered: list[int] = []

    def body(world: World, threads: Threads) -> None:
        lock = threads.lock()

        def work(number: int) -> None:
            for _ in range(3):
                with lock:
                    assert inside == []
                    inside.append(number)
                    entered.append(number)
                    world.pause(1)
                    inside.clear()

        for number in range(3):
            threads.start(lambda number=number: work(number), "one")  # type: ignore[misc]

    run(body, seed)
    assert sorted(entered) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_chance_decides_who_is_first() -> None:
    def first(seed: int) -> int:
        order: list[int] = []

        def body(world: World, threads: Threads) -> None:
            lock = threads.lock()

            def work(number: int) -> None:
                with lock:
                    order.append(number)

            for number in range(3):
                threads.start(lambda number=number: work(number), "one")  # type: ignore[misc]

        run(body, seed)
        return order[0]

    assert {first(seed) for seed in range(30)} == {0, 1, 2}
    assert [first(seed) for seed in range(10)] == [first(seed) for seed in range(10)]


def test_each_acquire_is_a_place_to_switch() -> None:
    """What is read before a lock is taken may be out of date behind it."""

    def is_torn(seed: int) -> bool:
        numbers = [0]

        def body(world: World, threads: Threads) -> None:
            lock = threads.lock()

            def add() -> None:
                before = numbers[0]
                with lock:
                    numbers[0] = before + 1

            threads.start(add, "one")
            threads.start(add, "other")

        run(body, seed)
        return numbers[0] == 1

    assert any(is_torn(seed) for seed in range(20))


def test_who_waits_is_notified_or_comes_back_after_whole_ticks() -> None:
    told: list[tuple[str, bool, int]] = []

    def body(world: World, threads: Threads) -> None:
        changed = threads.condition()
        ready: list[bool] = []

        def wait(name: str, timeout: float | None) -> None:
            with changed:
                told.append((name, changed.wait(timeout), world.now))

        def wait_for(name: str, timeout: float | None) -> None:
            with changed:
                told.append((name, changed.wait_for(lambda: bool(ready), timeout), world.now))

        threads.start(lambda: wait("short", 0.005), "short")
        threads.start(lambda: wait("longer", 2.5), "longer")
        threads.start(lambda: wait("for ever", None), "for ever")
        threads.start(lambda: wait_for("in vain", 3), "in vain")
        threads.start(lambda: wait_for("ready", 100), "ready")
        world.pause(10)
        with changed:
            ready.append(True)
            changed.notify_all()

    run(body)
    assert sorted(told) == [
        ("for ever", True, 10),
        ("in vain", False, 3),
        ("longer", False, 3),
        ("ready", True, 10),
        ("short", False, 1),
    ]


def test_a_wait_of_nothing_lets_others_run_and_never_spins_for_ever() -> None:
    def patient(world: World, threads: Threads) -> None:
        changed = threads.condition()
        ready: list[bool] = []
        threads.start(lambda: ready.append(True), "other")
        with changed:
            while not ready:
                changed.wait(0)

    assert run(patient).now == 0

    def spinning(world: World, threads: Threads) -> None:
        changed = threads.condition()
        with changed:
            while True:
                changed.wait(0)

    with pytest.raises(Violation, match="waits for nothing"):
        run(spinning)


@pytest.mark.parametrize("make", [lambda world: GreenThreads(world, Process()), lambda _: SystemThreads()])
def test_a_condition_that_is_not_held_is_not_waited_on(make: Callable[[World], Threads]) -> None:
    refused: list[str] = []
    world = World(Random(0), 10)

    def body() -> None:
        changed = make(world).condition()
        for ask in (changed.notify_all, lambda: changed.wait(1)):
            try:
                ask()
            except RuntimeError:
                refused.append("refused")

    world.spawn(Process(), body)
    world.run(lambda: False)
    assert refused == ["refused", "refused"]


def test_a_start_may_be_refused_and_then_nothing_runs() -> None:
    ran: list[str] = []
    alive: list[bool] = []
    answers = iter([True, False])

    def body(world: World, threads: Threads) -> None:
        with pytest.raises(ThreadRefusedError):
            threads.start(lambda: ran.append("refused"), "one")
        thread = threads.start(lambda: ran.append("other"), "other")
        alive.append(thread.is_alive())
        world.pause(1)
        alive.append(thread.is_alive())

    run(body, refuses=lambda: next(answers))
    assert ran == ["other"]
    assert alive == [True, False]


def test_nothing_of_a_killed_process_comes_back_and_its_locks_are_its_own() -> None:
    world, one, other = World(Random(0), 100), Process(), Process()
    steps: list[str] = []

    def dies() -> None:
        lock = GreenThreads(world, one).lock()
        try:
            with lock:
                steps.append("in")
                one.died_at = world.now
                world.stop()
                steps.append("never")
        finally:
            steps.append("over" if world.is_over else "unwound")

    world.spawn(one, dies)
    world.spawn(other, lambda: world.pause(50))
    world.run(lambda: False)
    assert steps == ["in", "over"]
    assert world.now == 50


def test_a_violation_is_told_though_the_code_swallows_it() -> None:
    def body(world: World, threads: Threads) -> None:
        try:
            raise Violation("swallowed")
        except BaseException:
            world.pause(1)

    with pytest.raises(Violation, match="swallowed"):
        run(body)
