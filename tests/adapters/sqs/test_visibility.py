"""When a message comes back: soon enough to go on, late enough not to meet the same obstacle, never beyond SQS."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from adapters.sqs.visibility import FIRST_BACKOFF, LONGEST_BACKOFF, soon, timeout_seconds, visible_again
from domain import backoff as domain_backoff
from domain.outcome import Deferred, Failed, Failure

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEAST, HALF, MOST = 0.0, 0.5, 1 - 2**-53
"""Of what a jitter in [0, 1) can answer."""

BATCHING_WINDOW = timedelta(minutes=5)
"""The longest that Lambda keeps a received message before it invokes."""


def backoff(receives: int, jitter: Callable[[], float]) -> timedelta:
    """Of a failed message."""
    return domain_backoff.backoff(receives, FIRST_BACKOFF, LONGEST_BACKOFF, jitter)


@pytest.mark.parametrize(
    ("receives", "longest"),
    [(1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 640), (8, 900), (9, 900), (100, 900), (10**9, 900)],
)
def test_a_backoff_doubles_from_10_seconds_to_900(receives: int, longest: int) -> None:
    assert backoff(receives, lambda: MOST) == timedelta(seconds=longest)


@pytest.mark.parametrize("receives", [1, 2, 8, 100])
def test_jitter_spreads_a_backoff_over_its_upper_half(receives: int) -> None:
    longest = backoff(receives, lambda: MOST)
    assert backoff(receives, lambda: LEAST) == longest / 2
    assert backoff(receives, lambda: HALF) == longest * 3 / 4


@pytest.mark.parametrize("reason", sorted(set(Failure) - {Failure.STORE_UNAVAILABLE, Failure.NOT_STARTED}))
@pytest.mark.parametrize(("receives", "after"), [(1, 10), (4, 80), (50, 900)])
def test_a_failed_message_comes_back_after_its_backoff(reason: Failure, receives: int, after: int) -> None:
    assert visible_again(Failed(reason, "ValueError"), receives, NOW, lambda: MOST) == NOW + timedelta(seconds=after)


@pytest.mark.parametrize(
    ("receives", "jitter", "after"),
    [(1, LEAST, 60), (1, HALF, 75), (1, MOST, 90), (3, LEAST, 60), (4, MOST, 90), (6, LEAST, 160), (9, MOST, 900)],
)
def test_an_outage_keeps_a_message_away_for_a_minute_or_its_longer_backoff(
    receives: int, jitter: float, after: int
) -> None:
    again = visible_again(Failed(Failure.STORE_UNAVAILABLE), receives, NOW, lambda: jitter)
    assert again - NOW == timedelta(seconds=after)


FAR = timedelta(hours=12)


@pytest.mark.parametrize(("receives", "after"), [(1, 1), (2, 2), (3, 4), (4, 8), (10, 512), (14, 8192)])
def test_a_duplicate_of_a_running_job_looks_again_after_1_2_4_seconds(receives: int, after: int) -> None:
    longest = timedelta(seconds=after)
    assert visible_again(Deferred(NOW + FAR), receives, NOW, lambda: MOST) == NOW + longest
    assert visible_again(Deferred(NOW + FAR), receives, NOW, lambda: LEAST) == NOW + longest / 2


@pytest.mark.parametrize("left", [timedelta(seconds=3), timedelta(seconds=59.999999), timedelta(minutes=5)])
@pytest.mark.parametrize("receives", [11, 16, 20, 90])
@pytest.mark.parametrize("has_run", [None, timedelta(0), timedelta(minutes=15)])
def test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over(
    left: timedelta, receives: int, has_run: timedelta | None
) -> None:
    """However many receives an outage has used up."""
    since = None if has_run is None else NOW - has_run
    again = visible_again(Deferred(NOW + left, since), receives, NOW, lambda: LEAST)
    assert left < again - NOW <= left + timedelta(seconds=1)


@pytest.mark.parametrize("left", [timedelta(seconds=-60), timedelta()])
def test_a_lease_that_is_over_is_looked_at_within_a_second(left: timedelta) -> None:
    assert NOW <= visible_again(Deferred(NOW + left), 3, NOW, lambda: MOST) <= NOW + timedelta(seconds=1)


@pytest.mark.parametrize(("lease", "most"), [(30, 56), (90, 32), (300, 24), (930, 24), (3600, 22), (43_200, 18)])
@pytest.mark.parametrize("jitter", [LEAST, HALF, MOST])
def test_a_duplicate_of_a_job_of_12_hours_uses_up_few_receives(lease: int, most: int, jitter: float) -> None:
    """Its lease is renewed at each third, so that two thirds to all of it are left when it is met."""
    receives, now = 1, NOW
    while now < NOW + FAR:
        until = now + timedelta(seconds=lease) * (2 + receives % 2) / 3
        now = visible_again(Deferred(until, NOW), receives, now, lambda: jitter)
        receives += 1
    assert 15 <= receives <= most


@pytest.mark.parametrize("takes", [0.04, 1, 7, 60, 100, 3600])
@pytest.mark.parametrize("jitter", [LEAST, HALF, MOST])
def test_a_duplicate_is_answered_within_about_twice_the_time_of_the_job(takes: float, jitter: float) -> None:
    """Both are received at once; the lease is a Lambda's, or a worker's that renews it."""
    receives, now, end = 1, NOW, NOW + timedelta(seconds=takes)
    while now < end:
        again = visible_again(Deferred(now + timedelta(seconds=300), NOW), receives, now, lambda: jitter)
        now = now + timedelta(seconds=timeout_seconds(again, now, now))
        receives += 1
    assert now - NOW <= timedelta(seconds=2 * takes + 1)


FRACTIONS = [timedelta(microseconds=amount) for amount in (0, 1, 499_999, 500_000, 999_999)]


@pytest.mark.parametrize(("lease", "settling"), list(product(FRACTIONS, FRACTIONS)))
@pytest.mark.parametrize("receives", [7, 9, 20])
def test_a_deferred_message_is_received_when_the_lease_is_strictly_over(
    lease: timedelta, settling: timedelta, receives: int
) -> None:
    """However the fractions of a second fall: too early by one costs a receive and another deferral."""
    until = NOW + timedelta(seconds=30) + lease
    settled_at = NOW + timedelta(seconds=20) + settling
    again = visible_again(Deferred(until), receives, NOW, lambda: LEAST)
    assert settled_at + timedelta(seconds=timeout_seconds(again, settled_at, NOW)) > until


@pytest.mark.parametrize(("jitter", "after"), [(LEAST, 1), (0.1, 2), (HALF, 6), (0.89, 9), (MOST, 10)])
def test_a_message_that_was_not_started_comes_back_within_1_to_10_seconds(jitter: float, after: int) -> None:
    assert soon(NOW, lambda: jitter) == NOW + timedelta(seconds=after)
    assert visible_again(Failed(Failure.NOT_STARTED), 9, NOW, lambda: jitter) == NOW + timedelta(seconds=after)
    assert timeout_seconds(soon(NOW, lambda: jitter), NOW, NOW) == after


@pytest.mark.parametrize(
    ("left", "timeout"),
    [(0.000001, 1), (0.5, 1), (1, 1), (1.000001, 2), (9.999, 10), (900, 900), (0, 0), (-0.5, 0), (-3600, 0)],
)
def test_a_timeout_is_whole_seconds_never_too_early_never_negative(left: float, timeout: int) -> None:
    answer = timeout_seconds(NOW + timedelta(seconds=left), NOW, NOW - timedelta(seconds=20))
    assert (answer, type(answer)) == (timeout, int)


@pytest.mark.parametrize("running", [0, 0.4, 20, 899.999999, 3600, 11 * 3600])
@pytest.mark.parametrize("ahead", [timedelta(hours=11), timedelta(hours=12), timedelta(days=28)])
def test_a_message_is_never_invisible_for_more_than_12_hours_from_its_receive(ahead: timedelta, running: float) -> None:
    invoked_at = NOW - timedelta(seconds=running)
    timeout = timedelta(seconds=timeout_seconds(NOW + ahead, NOW, invoked_at))
    received_at = invoked_at - BATCHING_WINDOW
    assert NOW + timeout - received_at <= timedelta(hours=12)


def test_the_12_hours_are_used_nearly_to_their_end() -> None:
    assert timeout_seconds(NOW + timedelta(days=28), NOW, NOW) >= timedelta(hours=11, minutes=45).total_seconds()


def test_what_has_been_invisible_for_12_hours_already_comes_back_at_once() -> None:
    assert timeout_seconds(NOW + timedelta(hours=1), NOW, NOW - timedelta(hours=12)) == 0
