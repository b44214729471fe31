"""Many leases at once, a store that is slow or hangs, clocks that are set: none lapses, none is renewed too often."""

import time as real_time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from adapters.system import SystemClock
from adapters.threads.heartbeat import ThreadHeartbeat
from domain.errors import HeartbeatUnavailableError, LeaseLostError, StoreUnavailableError
from domain.lease import Lease
from domain.ports.clock import Moment
from domain.record import Claim
from tests.support.jobs import job
from tests.support.virtual import VirtualTime

SDK_SECONDS = 3.0
"""The longest that a request of the SDK takes."""


def no_limit() -> None:
    raise AssertionError("without a deadline no attempt is overdue")


@dataclass
class Bench:
    """Jobs in threads of virtual time, over a store that takes its time."""

    length: timedelta = timedelta(seconds=10)
    takes: Callable[[str], float] = lambda _owner: 0.02
    time: VirtualTime = field(default_factory=VirtualTime)
    lost: set[str] = field(default_factory=set)
    renewed: list[tuple[float, str, float]] = field(default_factory=list)
    """When it was asked, for whom, for how many seconds."""
    most_at_once: Counter[str] = field(default_factory=Counter)
    fails: Exception | None = None

    def __post_init__(self) -> None:
        self.under_way: Counter[str] = Counter()
        self.ended: set[str] = set()
        self.heartbeat = ThreadHeartbeat(self.renew, self.time, self.time)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        owner = claim.owner
        assert owner not in self.ended
        self.renewed.append((self.time.uptime.total_seconds(), owner, lease.total_seconds()))
        self.under_way[owner] += 1
        self.most_at_once[owner] = max(self.most_at_once[owner], self.under_way[owner])
        self.time.sleep(timedelta(seconds=self.takes(owner)))
        self.under_way[owner] -= 1
        assert owner not in self.ended, "leaving waits for a renewal that is under way"
        if self.fails is not None:
            raise self.fails

    def lease(self, owner: str) -> Lease:
        return Lease(Claim(job(owner).key, owner, 1), Moment.of(self.time), self.length, self.time)

    def run(self, owner: str, seconds: float) -> None:
        def work() -> None:
            lease = self.lease(owner)
            with self.heartbeat(lease, self.length, None, no_limit):
                end = self.time.uptime + timedelta(seconds=seconds)
                while self.time.uptime < end:
                    self.time.sleep(timedelta(seconds=0.5))
                    if lease.lost():
                        self.lost.add(owner)
            self.ended.add(owner)

        self.time.go(work)


def test_a_thousand_leases_of_10_s_outlive_a_store_that_takes_20_ms_a_renewal() -> None:
    bench = Bench()
    for number in range(1000):
        bench.run(str(number), 60)
    bench.time.pass_by(seconds=70)
    assert (bench.lost, len(bench.ended)) == (set(), 1000)
    assert max(bench.most_at_once.values()) == 1
    assert 16_000 <= len(bench.renewed) <= 18_000, "each at a third of its length, in 60 s"


def test_renewals_that_hang_as_long_as_the_sdk_lets_them_delay_no_other() -> None:
    bench = Bench(timedelta(seconds=3), lambda owner: SDK_SECONDS if owner.startswith("hangs") else 0.02)
    for number in range(15):
        bench.run(f"hangs{number}", 30)
    for number in range(20):
        bench.run(f"{number}", 30)
    bench.time.pass_by(seconds=40)
    assert not {owner for owner in bench.lost if not owner.startswith("hangs")}
    asked = [at for at, owner, _ in bench.renewed if owner == "7"]
    assert max(later - earlier for earlier, later in zip([0.0, *asked], asked, strict=False)) <= 1.5


@pytest.mark.parametrize("seconds", [-30, 30])
def test_a_wall_clock_that_is_set_and_set_back_delays_no_renewal(seconds: float) -> None:
    bench = Bench()
    bench.run("a", 60)
    bench.time.pass_by(seconds=3)
    bench.time.step(seconds=seconds)
    bench.time.pass_by(seconds=1)
    bench.time.step(seconds=-seconds)
    bench.time.pass_by(seconds=60)
    asked = [at for at, _, _ in bench.renewed]
    assert asked[:3] == pytest.approx([10 / 3, 20 / 3, 10], abs=0.1)
    assert len(asked) == 18


def test_an_ended_context_waits_for_its_renewal_and_is_renewed_no_more() -> None:
    bench = Bench(takes=lambda _owner: 2.0)
    bench.run("a", 4)
    bench.time.pass_by(seconds=4.5)
    assert not bench.ended
    bench.time.pass_by(seconds=60)
    assert bench.ended == {"a"}
    assert len(bench.renewed) == 1


def test_a_first_thread_that_is_refused_is_an_error_before_anything_runs_and_heals() -> None:
    bench = Bench()
    bench.time.refuses = True
    lease, ran = bench.lease("a"), list[str]()
    with pytest.raises(HeartbeatUnavailableError), bench.heartbeat(lease, bench.length, None, no_limit):
        ran.append("a")
    assert not ran
    assert not bench.heartbeat.is_healthy()
    assert not bench.heartbeat.supervise()
    bench.time.refuses = False
    assert bench.heartbeat.supervise()
    assert bench.heartbeat.is_healthy()
    bench.run("b", 20)
    bench.time.pass_by(seconds=30)
    assert {owner for _, owner, _ in bench.renewed} == {"b"}, "what could not be renewed is not renewed later either"
    assert bench.lost == set()


class Overdue(Bench):
    """One attempt that outlasts its deadline."""

    def hang(self, seconds: float, deadline: float) -> list[float]:
        told: list[float] = []

        def work() -> None:
            until = self.time.wall + timedelta(seconds=deadline)
            with self.heartbeat(self.lease("a"), self.length, until, lambda: told.append(self.time.uptime.seconds)):
                self.time.sleep(timedelta(seconds=seconds))
            self.ended.add("a")

        self.time.go(work)
        self.time.pass_by(seconds=seconds + 100)
        assert self.ended == {"a"}
        return told


def test_no_renewal_reaches_beyond_the_deadline_and_what_hangs_is_told_once() -> None:
    bench = Overdue()
    assert bench.hang(1000, deadline=25) == [25]
    assert len(bench.renewed) == 7
    ends = [at + seconds for at, _, seconds in bench.renewed]
    assert max(ends) == pytest.approx(25, abs=0.001), "then another may take it over"
    assert ends[0] == pytest.approx(10 / 3 + 10)


def test_an_attempt_that_ends_before_its_deadline_is_not_told() -> None:
    assert Overdue().hang(24, deadline=25) == []


@pytest.mark.parametrize("error", [LeaseLostError(), StoreUnavailableError()])
def test_an_attempt_whose_lease_is_lost_is_told_when_it_is_overdue_too(error: Exception) -> None:
    bench = Overdue(fails=error)
    assert bench.hang(1000, deadline=25) == [25]
    assert len(bench.renewed) == (1 if isinstance(error, LeaseLostError) else 13)


def test_real_threads_keep_sixty_leases_of_a_second_over_a_store_that_takes_20_ms() -> None:
    """One renewal after another, a round would take 1.2 s."""
    clock, length = SystemClock(), timedelta(seconds=1)
    heartbeat = ThreadHeartbeat(lambda _claim, _lease: real_time.sleep(0.02), clock)
    lost: set[str] = set()
    with ExitStack() as stack:
        leases = []
        for number in range(60):
            lease = Lease(Claim(job(str(number)).key, str(number), 1), Moment.of(clock), length, clock)
            stack.enter_context(heartbeat(lease, length, None, no_limit))
            leases.append(lease)
        deadline = real_time.monotonic() + 3
        while real_time.monotonic() < deadline:
            real_time.sleep(0.01)
            lost |= {lease.claim.owner for lease in leases if lease.lost()}
    assert lost == set()
