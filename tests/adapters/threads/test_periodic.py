"""Work is done when it is due, by threads that are replaced when they are missing, whatever one piece of it takes."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from adapters.threads.due import DueHeap
from adapters.threads.periodic import LATE, Periodic
from adapters.threads.seam import SYSTEM_THREADS
from tests.support.polling import until
from tests.support.virtual import VirtualTime


@dataclass
class Bench:
    most: int = 3
    takes: dict[str, float] = field(default_factory=dict)
    """Seconds that a piece of work takes."""
    time: VirtualTime = field(default_factory=VirtualTime)
    done: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.due: DueHeap[str] = DueHeap()
        self.periodic: Periodic[str] = Periodic(
            "test",
            due=self.due.first_due,
            take=lambda: self.due.pop(self.time.monotonic()),
            work=self.work,
            clock=self.time,
            threads=self.time,
            most=self.most,
        )

    def work(self, item: str) -> None:
        if item == "dies":
            raise GeneratorExit  # which ends a greenlet quietly
        self.done.append((self.time.uptime.total_seconds(), item))
        self.time.sleep(timedelta(seconds=self.takes.get(item, 0)))

    def add(self, item: str, seconds: float) -> bool:
        due = self.time.uptime + timedelta(seconds=seconds)
        with self.periodic.changed:
            self.due.push(item, due)
            return self.periodic.expect(due)


def test_work_is_done_when_it_is_due_also_what_comes_later_and_is_due_earlier() -> None:
    bench = Bench()
    assert bench.add("late", 10)
    bench.time.pass_by(seconds=1)
    assert bench.add("early", 2)
    bench.time.pass_by(seconds=20)
    assert bench.add("then", 1)
    bench.time.pass_by(seconds=20)
    assert bench.done == [(3, "early"), (10, "late"), (22, "then")]


def test_a_wall_clock_that_is_set_moves_nothing() -> None:
    bench = Bench()
    bench.add("a", 10)
    bench.time.pass_by(seconds=5)
    bench.time.step(seconds=-30)
    bench.time.pass_by(seconds=4)
    bench.time.step(hours=5)
    assert bench.done == []
    bench.time.pass_by(seconds=1)
    assert bench.done == [(10, "a")]


def test_work_that_hangs_holds_up_no_other_while_threads_can_be_had() -> None:
    bench = Bench(takes={"hangs": 1000, "hangs too": 1000})
    bench.add("hangs", 1)
    bench.add("hangs too", 1)
    for number in range(5):
        bench.add(str(number), 2 + number)
    bench.time.pass_by(seconds=10)
    assert [at for at, _ in bench.done] == [1, 1, 2, 3, 4, 5, 6]
    assert len(bench.time.started) == 3


def test_quick_work_needs_one_thread_and_one_that_watches() -> None:
    bench = Bench(most=16)
    for number in range(50):
        bench.add(str(number), number)
    bench.time.pass_by(seconds=100)
    assert [at for at, _ in bench.done] == list(range(50))
    assert len(bench.time.started) == 2


def test_work_that_comes_while_the_watching_thread_works_is_seen() -> None:
    """Two threads wait without a time; one is woken for 10 s, and when it is held up then, the other must watch."""
    bench = Bench(most=2, takes={"hangs": 1000})
    bench.add("a", 1)
    bench.add("b", 1)
    bench.time.pass_by(seconds=2)
    bench.add("hangs", 8)
    bench.time.pass_by(seconds=9)
    bench.add("c", 20)
    bench.time.pass_by(seconds=21)
    assert bench.done == [(1, "a"), (1, "b"), (10, "hangs"), (31, "c")]
    assert len(bench.time.started) == 2


def test_a_refused_thread_is_asked_for_at_the_next_use_and_by_supervision() -> None:
    bench = Bench()
    assert bench.periodic.is_healthy(), "nothing is wanted of it yet"
    bench.time.refuses = True
    assert not bench.add("a", 1)
    assert not bench.periodic.supervise()
    assert not bench.periodic.is_healthy()
    bench.time.pass_by(seconds=5)
    bench.time.refuses = False
    assert not bench.periodic.is_healthy(), "looking starts nothing"
    assert bench.periodic.supervise()
    assert bench.periodic.is_healthy()
    bench.time.pass_by(seconds=0)
    assert bench.done == [(5, "a")]
    bench.time.refuses = True
    assert bench.add("b", 1), "the thread that there is serves"


def test_a_further_thread_that_is_refused_leaves_the_work_to_those_that_there_are() -> None:
    bench = Bench(takes={"slow": 5})
    bench.add("slow", 1)
    bench.time.pass_by(seconds=0)
    bench.time.refuses = True
    bench.add("other", 1)
    bench.time.pass_by(seconds=2)
    assert bench.periodic.is_healthy(), "a thread is at work"
    bench.time.refuses = False
    assert bench.periodic.supervise()
    bench.time.pass_by(seconds=1)
    assert bench.done == [(1, "slow"), (2, "other")]


def test_a_thread_that_died_is_replaced() -> None:
    bench = Bench(most=1)
    bench.add("dies", 1)
    with pytest.raises(GeneratorExit):
        bench.time.pass_by(seconds=2)
    assert not bench.periodic.is_healthy()
    assert bench.add("a", 1)
    assert bench.periodic.is_healthy()
    bench.time.pass_by(seconds=2)
    assert [item for _, item in bench.done] == ["a"]


def test_work_that_waits_although_a_thread_is_idle_is_not_healthy() -> None:
    bench = Bench()
    bench.periodic.supervise()
    bench.time.pass_by(seconds=1)
    bench.due.push("nobody was told", bench.time.uptime)
    bench.time.pass_by(seconds=1)
    assert bench.periodic.is_healthy()
    bench.time.pass_by(seconds=LATE.total_seconds())
    assert not bench.periodic.is_healthy()


def test_real_threads_do_it_too() -> None:
    from adapters.system import SystemClock

    clock, done = SystemClock(), list[str]()
    due: DueHeap[str] = DueHeap()
    periodic: Periodic[str] = Periodic(
        "test",
        due=due.first_due,
        take=lambda: due.pop(clock.monotonic()),
        work=done.append,
        clock=clock,
        threads=SYSTEM_THREADS,
        most=2,
    )
    for number, milliseconds in enumerate((30, 10, 20)):
        with periodic.changed:
            due.push(str(number), moment := clock.monotonic() + timedelta(milliseconds=milliseconds))
            periodic.expect(moment)
    until(lambda: len(done) == 3)
    assert done == ["1", "2", "0"]
