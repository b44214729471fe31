"""The pause before the next try: it doubles, has a bound, and is spread so that a fleet does not come back at once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

MOST_DOUBLINGS: Final = 20


def backoff(tries: int, first: timedelta, longest: timedelta, jitter: Callable[[], float]) -> timedelta:
    """Exponential backoff with equal jitter: uniform in [d/2, d), where d = min(longest, first * 2**(tries - 1)).

    `tries` counts from 1. `jitter` returns a number in [0, 1).
    """
    return min(longest, first * (1 << min(tries - 1, MOST_DOUBLINGS))) * (0.5 + jitter() / 2)
