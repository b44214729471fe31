"""A pool starts its threads before it gives them work, so that a refused start loses none of it."""

from threading import Barrier, Event, get_ident

import pytest

from adapters.threads.pool import ThreadPool
from tests.support.polling import until
from tests.support.threads import ScarceThreads
from tests.support.virtual import VirtualTime

LONG = 10


def test_tasks_run_side_by_side_in_threads_that_are_kept() -> None:
    threads, ran_in = ScarceThreads(), set[int]()
    pool = ThreadPool(3, threads)
    assert [pool.ensure(wanted) for wanted in (0, 2, 3, 9)] == [0, 2, 3, 3]
    for _ in range(3):
        meeting = Barrier(4, timeout=LONG)

        def meet(meeting: Barrier = meeting) -> None:
            ran_in.add(get_ident())
            meeting.wait()

        for _ in range(3):
            pool.submit(meet)
        meeting.wait()
    assert (len(threads.asked), len(ran_in)) == (3, 3)


def test_a_refused_thread_leaves_the_others_and_can_be_had_later() -> None:
    threads, ran = ScarceThreads(refused=[2]), Event()
    pool = ThreadPool(4, threads)
    assert pool.ensure(3) == 1
    pool.submit(ran.set)
    assert ran.wait(LONG)
    assert pool.ensure(3) == 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_died_is_replaced_and_what_waits_is_run() -> None:
    pool, ran = ThreadPool(1, ScarceThreads()), Event()

    def die() -> None:
        raise SystemExit

    assert pool.ensure(1) == 1
    pool.submit(die)
    pool.submit(ran.set)
    until(lambda: not pool._members[0].is_alive())
    assert not ran.is_set()
    assert pool.ensure(1) == 1
    assert ran.wait(LONG)


def test_tasks_wait_for_a_thread_in_their_order() -> None:
    time, ran = VirtualTime(), list[int]()
    pool = ThreadPool(1, time)
    pool.ensure(1)
    for number in range(3):
        pool.submit(lambda number=number: ran.append(number))  # type: ignore[misc]
    time.pass_by(seconds=1)
    assert ran == [0, 1, 2]
