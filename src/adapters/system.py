"""The machine's own time and chance: what is passed in wherever a test would want another."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from os import urandom
from random import random
from time import monotonic, sleep
from uuid import uuid4


class SystemClock:
    """The `Clock` of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> timedelta:
        return timedelta(seconds=monotonic())

    def sleep(self, duration: timedelta) -> None:
        sleep(duration.total_seconds())


def new_id() -> str:
    """32 hexadecimal digits that nobody else has."""
    return uuid4().hex


def new_secret() -> str:
    """64 hexadecimal digits that nobody can guess."""
    return urandom(32).hex()


type Jitter = Callable[[], float]


def jitter() -> float:
    """A number in [0, 1)."""
    return random()  # noqa: S311
