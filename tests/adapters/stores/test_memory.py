"""The memory store's lock: without it, threads tread on one another. Needs pytest and nothing else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from os import sched_yield
from threading import Barrier, Lock, Thread

import pytest

from adapters.stores.memory import MemoryIdempotencyStore
from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.record import Acquired
from tests.support.clock import FakeClock
from tests.support.jobs import job

THREADS = 4
ROUNDS = 60
LEASE = timedelta(seconds=60)


class YieldingClock(FakeClock):
    """Hands the interpreter to another thread whenever it is asked: between a store's reading and its writing."""

    def now(self) -> datetime:
        sched_yield()
        for _ in range(50):
            pass
        return super().now()


@pytest.fixture(autouse=True)
def _hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(tasks: list[Callable[[], None]]) -> None:
    barrier = Barrier(len(tasks))

    def run(task: Callable[[], None]) -> None:
        barrier.wait()
        task()

    threads = [Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def double_claims(lock: AbstractContextManager[object]) -> int:
    """Rounds in which more than one of simultaneous claims was acquired."""
    store = MemoryIdempotencyStore(YieldingClock(), timedelta(days=1), lock)
    doubled = 0
    for number in range(ROUNDS):
        acquired: list[str] = []

        def claim(owner: str, job_id: str = str(number), acquired: list[str] = acquired) -> None:
            if isinstance(store.claim(job(job_id), owner=owner, lease=LEASE), Acquired):
                acquired.append(owner)

        together([lambda owner=str(owner): claim(owner) for owner in range(THREADS)])  # type: ignore[misc]
        doubled += len(acquired) > 1
    return doubled


def overwritten_claims(lock: AbstractContextManager[object]) -> int:
    """Rounds in which a late completion and a takeover both landed."""
    clock = YieldingClock()
    store = MemoryIdempotencyStore(clock, timedelta(days=1), lock)
    both = 0
    for number in range(ROUNDS):
        late = store.claim(job(str(number)), owner="late", lease=LEASE)
        assert isinstance(late, Acquired)
        clock.advance(seconds=61)
        landed: list[str] = []

        def complete(late: Acquired = late, landed: list[str] = landed) -> None:
            try:
                store.complete(late.claim, Answer("1"))
            except LeaseLostError:
                return
            landed.append("completion")

        def take_over(job_id: str = str(number), landed: list[str] = landed) -> None:
            if isinstance(store.claim(job(job_id), owner="next", lease=LEASE), Acquired):
                landed.append("takeover")

        together([complete, take_over])
        both += len(landed) > 1
    return both


@pytest.mark.parametrize("violations", [double_claims, overwritten_claims])
def test_under_its_lock_the_store_is_atomic(violations: Callable[[AbstractContextManager[object]], int]) -> None:
    assert violations(Lock()) == 0


@pytest.mark.parametrize("violations", [double_claims, overwritten_claims])
def test_without_its_lock_this_very_test_goes_red(violations: Callable[[AbstractContextManager[object]], int]) -> None:
    assert any(violations(nullcontext()) for _ in range(20))
