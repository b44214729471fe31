"""A worker's own view of its lease."""

from datetime import timedelta

from domain.lease import Lease
from domain.record import Claim
from tests.support.clock import FakeClock
from tests.support.jobs import job

CLAIM = Claim(job().key, "run-1", 1)


def test_a_lease_is_lost_at_its_end_and_held_before() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, clock.now() + timedelta(seconds=10), clock)
    clock.advance(seconds=9.999)
    assert not lease.lost()
    clock.advance(seconds=0.001)
    assert lease.lost()


def test_a_renewal_moves_the_end() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, clock.now() + timedelta(seconds=10), clock)
    lease.extend(clock.now() + timedelta(seconds=60))
    clock.advance(seconds=30)
    assert not lease.lost()


def test_a_refused_renewal_loses_it_at_once() -> None:
    clock = FakeClock()
    lease = Lease(CLAIM, clock.now() + timedelta(seconds=10), clock)
    lease.refuse()
    assert lease.lost()
