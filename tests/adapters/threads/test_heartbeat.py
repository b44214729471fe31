"""A lease is kept while its operation runs, known to be lost when it is, and left alone afterwards."""

from datetime import timedelta
from threading import Event, Semaphore, Thread

import pytest

from adapters.stores.memory import MemoryIdempotencyStore
from adapters.system import SystemClock
from adapters.threads.heartbeat import ThreadHeartbeat
from domain.lease import Lease
from domain.ports.clock import Moment
from domain.record import Acquired, Busy, Claim
from tests.support.clock import FakeClock
from tests.support.faulty_store import FaultyStore
from tests.support.jobs import job
from tests.support.threads import IdleThreads

JOB = job()
LENGTH = timedelta(seconds=30)


def no_limit() -> None:
    raise AssertionError("without a deadline no attempt is overdue")


class Bench:
    def __init__(self, **faults: list[str]) -> None:
        self.clock = FakeClock()
        self.memory = MemoryIdempotencyStore(self.clock, timedelta(days=1))
        self.store = FaultyStore(self.memory, **faults)  # type: ignore[arg-type]
        self.heartbeat = ThreadHeartbeat(self.store.renew, self.clock, IdleThreads())
        claimed = self.memory.claim(JOB, owner="a", lease=LENGTH)
        assert isinstance(claimed, Acquired)
        self.lease = Lease(claimed.claim, Moment.of(self.clock), LENGTH, self.clock)

    def beat_after(self, seconds: float) -> int:
        """Renewals so far, after so many more seconds."""
        self.clock.advance(seconds=seconds)
        self.heartbeat.beat()
        return self.store.calls["renew"]


def test_a_lease_is_renewed_at_each_third_of_it() -> None:
    bench = Bench()
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert [bench.beat_after(seconds) for seconds in (9, 1, 9, 1, 100)] == [0, 1, 1, 2, 3]
        assert not bench.lease.lost()
        assert bench.memory.claim(JOB, owner="b", lease=LENGTH) == Busy(bench.clock.now() + LENGTH)


def test_a_claim_that_took_long_is_renewed_the_sooner() -> None:
    bench = Bench()
    bench.clock.advance(seconds=8)
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert [bench.beat_after(seconds) for seconds in (1, 1, 9, 1)] == [0, 1, 1, 2]
    bench.clock.advance(seconds=19)
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert bench.beat_after(0) == 3, "a third is over: at once"


def test_nothing_is_renewed_after_the_operation() -> None:
    bench = Bench()
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        pass
    assert bench.beat_after(1000) == 0
    with pytest.raises(ZeroDivisionError), bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        raise ZeroDivisionError
    assert bench.beat_after(1000) == 0


def test_a_refused_renewal_is_known_to_the_operation_and_not_repeated() -> None:
    bench = Bench()
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        bench.memory.release(bench.lease.claim, "Error")
        bench.memory.claim(JOB, owner="b", lease=LENGTH)
        assert bench.beat_after(10) == 1
        assert bench.lease.lost()
        assert bench.beat_after(100) == 1


def test_a_store_that_cannot_answer_is_asked_again_in_half_the_time() -> None:
    bench = Bench(renew=["fails"])
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert bench.beat_after(10) == 1
        assert not bench.lease.lost()
        assert [bench.beat_after(seconds) for seconds in (4, 1)] == [1, 2]
        bench.clock.advance(seconds=29)
        assert not bench.lease.lost(), "renewed at 15 s"


def test_a_store_that_never_answers_loses_the_lease_by_time() -> None:
    bench = Bench(renew=["fails"] * 100)
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        for _ in range(5):
            bench.beat_after(5)
        assert not bench.lease.lost()
        bench.beat_after(5)
        assert bench.lease.lost()


def test_a_renewal_counts_from_when_it_was_asked_for_and_not_from_its_answer() -> None:
    bench = Bench()

    def slow(claim: Claim, lease: timedelta) -> None:
        bench.memory.renew(claim, lease)
        bench.clock.advance(seconds=8)

    bench.heartbeat._renew = slow
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        bench.beat_after(10)
        record = bench.memory.find(JOB.key)
        assert record is not None
        assert bench.lease.until == record.lease_until
        bench.clock.advance(seconds=22)
        assert bench.lease.lost()


def test_a_renewal_that_is_cut_at_the_deadline_is_believed_until_there() -> None:
    bench = Bench()
    with bench.heartbeat(bench.lease, LENGTH, bench.clock.now() + timedelta(seconds=35), no_limit):
        assert bench.beat_after(10) == 1
        record = bench.memory.find(JOB.key)
        assert record is not None
        assert bench.lease.until == record.lease_until
        bench.clock.advance(seconds=25)
        assert bench.lease.lost()


def test_a_renewal_that_was_due_before_the_end_is_not_asked_for_after_it() -> None:
    """A thread may have taken it, and not yet begun, when the context ends."""
    bench = Bench()
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        bench.clock.advance(seconds=10)
        taken = bench.heartbeat._beats.pop(bench.clock.monotonic())
    assert taken is not None
    bench.heartbeat._beat(taken)
    assert bench.store.calls["renew"] == 0


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_wall_clock_that_is_set_before_the_first_renewal_does_not_delay_it(seconds: float) -> None:
    bench = Bench()
    bench.clock.step(seconds=seconds)
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert [bench.beat_after(wait) for wait in (9, 1)] == [0, 1]


def test_a_lease_that_is_due_first_wakes_the_thread() -> None:
    clock = SystemClock()
    memory = MemoryIdempotencyStore(clock, timedelta(days=1))
    renewed = Semaphore(0)

    def renew(claim: Claim, lease: timedelta) -> None:
        memory.renew(claim, lease)
        renewed.release()

    heartbeat = ThreadHeartbeat(renew, clock)

    def held(job_id: str, length: timedelta) -> Lease:
        claimed = memory.claim(job(job_id), owner=job_id, lease=length)
        assert isinstance(claimed, Acquired)
        return Lease(claimed.claim, Moment.of(clock), length, clock)

    long, short = timedelta(seconds=600), timedelta(seconds=0.3)
    first, second = held("1", long), held("2", short)
    with heartbeat(first, long, None, no_limit), heartbeat(second, short, None, no_limit):
        assert all(renewed.acquire(timeout=10) for _ in range(4)), "in all longer than the short lease"
        assert not second.lost()


def test_a_renewal_that_is_slow_holds_up_its_own_operation_only() -> None:
    bench = Bench()
    begun, go = Event(), Event()

    def slow(claim: Claim, lease: timedelta) -> None:
        begun.set()
        assert go.wait(10)

    heartbeat = ThreadHeartbeat(slow, bench.clock)
    other = Lease(Claim(job("2").key, "b", 1), Moment.of(bench.clock), LENGTH, bench.clock)
    ended: list[str] = []

    def run_other() -> None:
        with heartbeat(other, LENGTH, None, no_limit):
            ended.append("other")

    def run_own() -> None:
        with heartbeat(bench.lease, LENGTH, None, no_limit):
            bench.clock.advance(seconds=10)
            beating.start()
            assert begun.wait(10)
        ended.append("own")

    beating = Thread(target=heartbeat.beat)
    own, beside = Thread(target=run_own), Thread(target=run_other)
    own.start()
    assert begun.wait(10)
    beside.start()
    beside.join(10)
    assert ended == ["other"]
    go.set()
    own.join(10)
    assert ended == ["other", "own"]


def test_what_nobody_foresaw_in_a_renewal_is_tried_again_and_harms_no_other() -> None:
    bench = Bench(renew=[RuntimeError("broken")])  # type: ignore[list-item]
    with bench.heartbeat(bench.lease, LENGTH, None, no_limit):
        assert bench.beat_after(10) == 1
        assert [bench.beat_after(seconds) for seconds in (4, 1)] == [1, 2]
