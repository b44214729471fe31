"""The one place where real time and chance enter: everything else is tested with stand-ins for these."""

import time
from datetime import UTC, datetime, timedelta

from adapters.system import SystemClock, jitter, new_id

LONG = 10
"""Seconds that no sound run comes near."""


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
