"""The crew that runs lanes: side by side, never more than its size, and as many threads as are of use."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from threading import Barrier, Event, Lock, get_ident

import pytest

from adapters.system import SystemClock
from adapters.threads.crew import Load, ThreadCrew
from tests.support.threads import ScarceThreads

LONG = 10
"""Seconds that no sound run comes near."""


class Shares(Load):
    """Says what it was told."""

    def __init__(self, share: float) -> None:
        self._share = share

    def share(self) -> float:
        return self._share


def crew(size: int = 2, share: float = 0.0) -> ThreadCrew:
    return ThreadCrew(size, SystemClock(), lambda: Shares(share))


def soon(**amount: float) -> datetime:
    return SystemClock().now() + timedelta(**amount)


def fail(error: BaseException) -> Callable[[], None]:
    def task() -> None:
        raise error

    return task


def test_tasks_run_side_by_side() -> None:
    meeting = Barrier(3, timeout=LONG)

    def meet() -> None:
        meeting.wait()

    running = crew(3).start([meet] * 3)
    assert running.wait(soon(seconds=LONG))
    assert running.error() is None


def test_a_crew_is_never_larger_than_its_size_and_is_kept_for_the_next_batch() -> None:
    threads: set[int] = set()
    kept = crew(2)
    for _ in range(3):
        assert kept.start([lambda: threads.add(get_ident())] * 20).wait(soon(seconds=LONG))
    assert len(threads) <= 2


def test_waiting_tells_whether_all_have_ended() -> None:
    release = Event()

    def stay() -> None:
        release.wait(LONG)

    running = crew().start([lambda: None, stay])
    try:
        assert not running.wait(soon(milliseconds=10))
        assert not running.wait(soon(seconds=-1))
    finally:
        release.set()
    assert running.wait(soon(seconds=LONG))
    assert running.wait(soon(seconds=LONG))


def test_waiting_ends_with_the_last_task_and_not_with_the_time() -> None:
    before = time.monotonic()
    assert crew().start([lambda: None]).wait(soon(seconds=LONG))
    assert time.monotonic() - before < LONG


@pytest.mark.parametrize("error", [ValueError("a"), SystemExit(3), KeyboardInterrupt()])
def test_what_a_task_raises_is_kept_and_stops_no_other(error: BaseException) -> None:
    done: list[str] = []
    running = crew(1).start([fail(error), lambda: done.append("second")])
    assert running.wait(soon(seconds=LONG))
    assert running.error() is error
    assert done == ["second"]


def test_nothing_to_run_has_ended_at_once() -> None:
    running = crew().start([])
    assert running.wait(soon(seconds=LONG))
    assert running.error() is None


@pytest.mark.parametrize("can_be_had", [1, 3])
def test_threads_that_cannot_be_had_are_done_without(can_be_had: int) -> None:
    """An error of `start` would end the invocation while the threads that were had are running operations."""
    refused: list[int] = []
    kept = ThreadCrew(8, SystemClock(), threads=ScarceThreads(range(can_be_had + 1, 100)), refused=refused.append)
    ran: list[int] = []
    tasks = [partial(ran.append, number) for number in range(20)]
    assert kept.start([lambda: time.sleep(0.02), *tasks]).wait(soon(seconds=LONG))
    assert sorted(ran) == list(range(20))
    assert refused == [can_be_had], "it is told once for a batch"


def test_a_batch_that_gets_no_thread_at_all_has_ended_and_is_never_run() -> None:
    refused, ran, threads = list[int](), list[int](), ScarceThreads(none=True)
    kept = ThreadCrew(8, SystemClock(), threads=threads, refused=refused.append)
    running = kept.start([partial(ran.append, 1)] * 2)
    assert running.wait(soon(seconds=LONG))
    assert running.wait_for_next()
    assert (running.error(), refused) == (None, [0])
    threads.none = False
    assert kept.start([partial(ran.append, 2)] * 2).wait(soon(seconds=LONG))
    assert (ran, refused) == ([2, 2], [0])


def test_each_task_that_ends_is_told_until_all_have() -> None:
    gates = [Event(), Event()]
    running = crew(3).start([lambda: None, *(lambda gate=gate: gate.wait(LONG) for gate in gates)])
    assert not running.wait_for_next()
    gates[0].set()
    assert not running.wait_for_next()
    gates[1].set()
    assert running.wait_for_next()
    assert running.wait_for_next(), "nothing is left"


class Busiest:
    """A task, and how many threads were in it at once at most."""

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._lock = Lock()

    def __call__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(0.0001)  # lets another thread in, if there is one
        with self._lock:
            self._now -= 1


def at_once(kept: ThreadCrew, tasks: int = 40) -> int:
    task = Busiest()
    assert kept.start([task] * tasks).wait(soon(seconds=LONG))
    return task.most


def test_batches_that_keep_the_processor_busy_are_run_by_ever_fewer_threads() -> None:
    kept = crew(8, share=1.0)
    enough = []
    for _ in range(5):
        at_once(kept)
        enough.append(kept.enough)
    assert enough == [4, 2, 1, 1, 1]
    assert at_once(kept) == 1


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_batches_that_do_not_are_run_by_all(share: float) -> None:
    kept = crew(8, share=share)
    for _ in range(3):
        at_once(kept)
        assert kept.enough == 8


def test_a_task_that_takes_its_time_gets_help_however_busy_the_processor_is() -> None:
    kept = crew(8, share=1.0)
    kept.enough = 1
    meeting = Barrier(8, timeout=LONG)

    def meet() -> None:
        meeting.wait()

    running = kept.start([meet] * 8)
    assert running.wait(soon(seconds=LONG))
    assert running.error() is None, "all eight met"


def test_an_idle_processor_gets_help_for_tasks_that_end_quickly() -> None:
    kept = crew(8, share=0.1)
    kept.enough = 1
    assert kept.start([lambda: time.sleep(0.002)] * 40).wait(soon(seconds=LONG))
    assert kept.enough > 1


def test_a_small_batch_teaches_nothing_about_a_large_one() -> None:
    kept = crew(8)
    at_once(kept, tasks=2)
    assert kept.enough == 8


def test_the_real_load_is_the_share_of_cpu_time() -> None:
    load = Load()
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    assert load.share() > 0.05
    load = Load()
    time.sleep(0.02)
    assert load.share() < 0.9
