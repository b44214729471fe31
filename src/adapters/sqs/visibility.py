"""When a message that is not done comes back."""

from collections.abc import Callable
from datetime import datetime, timedelta
from math import ceil
from typing import Final, assert_never

from domain.backoff import backoff
from domain.outcome import Deferred, Failed, Failure

FIRST_BACKOFF: Final = timedelta(seconds=10)
LONGEST_BACKOFF: Final = timedelta(seconds=900)
"""After the first receive 5 to 10 s, doubling with each up to 900 s."""

OUTAGE_BACKOFF: Final = timedelta(seconds=60)
"""The least after the store could not answer: the whole fleet meets the same outage."""

FIRST_LOOK: Final = timedelta(seconds=1)
"""How soon a duplicate of a running job looks whether it is done. The wait doubles with each receive."""

LONGEST_INVOCATION: Final = timedelta(minutes=16)
"""Of Lambda, with a grace: a lease that is held for longer is renewed."""

LONGEST_INVISIBLE: Final = timedelta(hours=12)
"""SQS counts it from the receive, extensions included."""

RECEIVED_BEFORE: Final = timedelta(minutes=10)
"""How long before the invocation a message may have been received: a batching window is at most five minutes."""


def visible_again(outcome: Deferred | Failed, receives: int, now: datetime, jitter: Callable[[], float]) -> datetime:
    """When a message that is not done comes back.

    A deferred one after 1, 2, 4, ... s by its receives, so that it is answered within about twice the time of the job
    that it met, and no later than that job's lease ends. Where the job has run for longer than a Lambda may, its lease
    is renewed, and a look may be later by half of that time: each end of a lease would else use up a receive.
    A failed one comes back after its backoff.
    """
    again = now + backoff(receives, FIRST_BACKOFF, LONGEST_BACKOFF, jitter)
    match outcome:
        case Deferred(until, since):
            doubled = backoff(receives, FIRST_LOOK, LONGEST_INVISIBLE, jitter)
            has_run = timedelta(0) if since is None else now - since
            latest = until + timedelta(seconds=1) - now
            if has_run > LONGEST_INVOCATION:
                latest = max(latest, has_run / 2)
            return now + min(doubled, max(latest, timedelta(0)))
        case Failed(Failure.NOT_STARTED):
            return soon(now, jitter)
        case Failed(Failure.STORE_UNAVAILABLE):
            return max(again, now + OUTAGE_BACKOFF * (1 + jitter() / 2))
        case Failed():
            return again
        case _:
            assert_never(outcome)


def soon(now: datetime, jitter: Callable[[], float]) -> datetime:
    """For a message that was not started: within 1 to 10 seconds."""
    return now + timedelta(seconds=1 + int(jitter() * 10))


def timeout_seconds(visible_at: datetime, now: datetime, invoked_at: datetime) -> int:
    """The visibility timeout to set now, in whole seconds, never beyond SQS's 12 hours in all."""
    longest = LONGEST_INVISIBLE - RECEIVED_BEFORE - (now - invoked_at)
    return max(0, ceil(min(visible_at - now, longest).total_seconds()))
