"""How long to wait before the next try: doubling, bounded, and spread so that a fleet does not come back as one."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

MOST_DOUBLINGS: Final = 20


def backoff(tries: int, first: timedelta, longest: timedelta, jitter: Callable[[], float]) -> timedelta:
    """After so many tries (from 1): `first`, doubled for each, at most `longest`; in the upper half of that."""
    return min(longest, first * (1 << min(tries - 1, MOST_DOUBLINGS))) * (0.5 + jitter() / 2)
