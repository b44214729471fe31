"""A worker's own view of its lease."""

from datetime import timedelta

from domain.lease import Lease
from domain.ports.clock import Moment
from domain.record import Claim
from tests.support.clock import FakeClock
from tests.support.jobs import job

CLAIM = Claim(job().key, "run-1", 1)


def test_a_lease_is_lost_at_its_end_and_held_before() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    clock.advance(seconds=9.999)
    assert not lease.lost()
    clock.advance(seconds=0.001)
    assert lease.lost()


def test_a_renewal_moves_the_end() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    lease.extend(Moment.of(clock), timedelta(seconds=60))
    clock.advance(seconds=30)
    assert not lease.lost()


def test_a_refused_renewal_loses_it_at_once() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    lease.refuse()
    assert lease.lost()


def test_a_renewal_counts_from_when_it_was_asked_for() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    asked = Moment.of(clock)
    clock.advance(seconds=3)
    lease.extend(asked, timedelta(seconds=10))
    clock.advance(seconds=7)
    assert lease.lost()


def test_a_clock_that_is_set_back_prolongs_no_lease() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    clock.step(seconds=-30)
    clock.advance(seconds=10)
    assert lease.lost()


def test_a_clock_that_runs_on_while_the_machine_sleeps_ends_the_lease() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, Moment.of(clock), timedelta(seconds=10), clock)
    clock.step(seconds=10)
    assert lease.lost()
