"""The one place where real time, chance and threads enter: everything else is tested with stand-ins for these."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event, get_ident

import pytest

from adapters.system import SystemClock, ThreadCrew, jitter, new_id

LONG = 10
"""Seconds that no sound run comes near."""


def crew(size: int = 2) -> ThreadCrew:
    return ThreadCrew(size, SystemClock())


def soon(**amount: float) -> datetime:
    return SystemClock().now() + timedelta(**amount)


def fail(error: BaseException) -> Callable[[], None]:
    def task() -> None:
        raise error

    return task


def test_now_is_the_present_aware_and_in_utc() -> None:
    before = datetime.now(UTC)
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert before <= now <= datetime.now(UTC)


def test_a_pause_lasts_as_long_as_it_says() -> None:
    before = time.monotonic()
    SystemClock().sleep(timedelta(milliseconds=20))
    assert 0.02 <= time.monotonic() - before < LONG


def test_ids_are_32_hexadecimal_digits_and_never_the_same() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(made) == 32 and int(made, 16) >= 0 for made in ids)


def test_jitter_is_spread_between_0_and_1() -> None:
    numbers = [jitter() for _ in range(1000)]
    assert all(0 <= number < 1 for number in numbers)
    assert max(numbers) - min(numbers) > 0.5


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


def test_each_task_that_ends_is_told_until_all_have() -> None:
    gates = [Event(), Event()]
    running = crew(3).start([lambda: None, *(lambda gate=gate: gate.wait(LONG) for gate in gates)])
    assert not running.wait_for_next()
    gates[0].set()
    assert not running.wait_for_next()
    gates[1].set()
    assert running.wait_for_next()
    assert running.wait_for_next(), "nothing is left"
