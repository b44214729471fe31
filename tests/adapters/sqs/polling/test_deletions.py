"""What is done is deleted, ten in a request, again where it fails, and told where it is given up."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from adapters.sqs.message import Message
from adapters.sqs.polling.deletions import Deletions
from adapters.system import SystemClock
from tests.support.clock import FakeClock
from tests.support.sqs import QUEUE, RecordedPollEvents
from tests.support.threads import IdleThreads
from tests.support.virtual import VirtualTime


class Bench:
    """Deletions without their thread."""

    def __init__(self, **errors: list[str]) -> None:
        """By message id, what its first deletions fail with."""
        self.clock = FakeClock()
        self.errors = errors
        self.asked: list[list[str]] = []
        self.gone: list[str] = []
        self.events = RecordedPollEvents()
        self.deletions = Deletions(
            self.try_to_delete,
            lambda messages: self.gone.extend(one.message_id for one in messages),
            self.events,
            self.clock,
            lambda: 0.0,
            IdleThreads(),
        )

    def try_to_delete(self, messages: Sequence[Message]) -> list[tuple[Message, str]]:
        self.asked.append([one.message_id for one in messages])
        errors = [(one, self.errors[one.message_id].pop(0)) for one in messages if self.errors.get(one.message_id)]
        if any(error == "raises" for _, error in errors):
            raise ZeroDivisionError
        return errors

    def add(self, *ids: str) -> None:
        for one in ids:
            self.deletions.add(Message(one, f"handle-{one}", "{}", QUEUE))

    def after(self, seconds: float) -> list[list[str]]:
        """What was asked in that time, looked at ten times a second."""
        self.asked.clear()
        for _ in range(round(seconds * 10) + 1):
            self.deletions.work_off()
            self.clock.advance(seconds=0.1)
        return list(self.asked)


def test_ten_go_in_one_request_in_order_and_all_are_let_go() -> None:
    bench = Bench()
    ids = [f"m{number}" for number in range(12)]
    bench.add(*ids)
    assert not bench.deletions.finish(0)
    assert bench.after(1) == [ids[:10], ids[10:]]
    assert bench.gone == ids
    assert bench.deletions.finish(0)


def test_only_what_failed_is_asked_again_after_a_pause_that_doubles() -> None:
    bench = Bench(b=["InternalError", "RequestThrottled"])
    bench.add("a", "b", "c")
    assert bench.after(0) == [["a", "b", "c"]]
    assert bench.gone == ["a", "c"]
    assert not bench.deletions.finish(0)
    assert bench.after(1) == [["b"], ["b"]]
    assert bench.gone == ["a", "c", "b"]
    assert bench.events.deletion_errors == []


def test_what_is_asked_for_again_is_held_until_it_is_deleted() -> None:
    """Let go, it would be visible again, and received, before it is deleted."""
    bench = Bench(a=["InternalError"])
    bench.add("a")
    bench.deletions.work_off()
    assert (bench.asked, bench.gone) == ([["a"]], [])
    bench.after(10)
    assert bench.gone == ["a"]


def test_pauses_between_tries_double() -> None:
    bench = Bench(a=["InternalError"] * 4)
    bench.add("a")
    asked_after = [tenths for tenths in range(40) if bench.after(0)]
    assert asked_after == [0, 1, 3, 7, 15]


def test_a_request_that_breaks_is_asked_again() -> None:
    bench = Bench(a=["raises"])
    bench.add("a", "b")
    assert bench.after(1) == [["a", "b"], ["a", "b"]]
    assert bench.gone == ["a", "b"]


def test_what_keeps_failing_is_given_up_within_a_minute_and_told() -> None:
    bench = Bench(a=["RequestThrottled"] * 100)
    bench.add("a")
    assert bench.after(60) == [["a"]] * 8
    assert bench.events.deletion_errors == ["RequestThrottled"]
    assert bench.gone == ["a"], "nobody keeps it invisible any more"
    assert bench.deletions.finish(0)


def test_what_no_retry_mends_is_told_at_once() -> None:
    bench = Bench(a=["ReceiptHandleIsInvalid"])
    bench.add("a", "b")
    assert bench.after(10) == [["a", "b"]]
    assert bench.events.deletion_errors == ["ReceiptHandleIsInvalid"]
    assert bench.gone == ["a", "b"]


def test_the_thread_works_off_by_itself_and_a_stop_can_wait_for_it() -> None:
    failing = iter([["InternalError"], []])

    def delete(messages: Sequence[Message]) -> list[tuple[Message, str]]:
        return [(messages[0], error) for error in next(failing)]

    gone: list[Message] = []
    deletions = Deletions(delete, gone.extend, RecordedPollEvents(), SystemClock(), lambda: 0.0)
    deletions.add(Message("a", "h", "{}", QUEUE))
    assert deletions.finish(timedelta(seconds=10).total_seconds())
    assert [one.message_id for one in gone] == ["a"]


@pytest.mark.parametrize("seconds", [-30, 3600])
def test_a_wall_clock_that_is_set_delays_no_deletion(seconds: float) -> None:
    bench = Bench(a=["InternalError"])
    bench.add("a")
    bench.after(0)
    bench.clock.step(seconds=seconds)
    assert bench.after(1) == [["a"]]


def test_a_thread_that_is_refused_once_leaves_no_message_undeleted() -> None:
    time, deleted = VirtualTime(), list[str]()

    def delete(messages: Sequence[Message]) -> list[tuple[Message, str]]:
        deleted.extend(one.message_id for one in messages)
        return []

    deletions = Deletions(delete, lambda _gone: None, RecordedPollEvents(), time, lambda: 0.0, time)
    time.refuses = True
    deletions.add(Message("a", "h1", "{}", QUEUE))
    assert not deletions.is_healthy()
    time.refuses = False
    deletions.add(Message("b", "h2", "{}", QUEUE))
    time.pass_by(seconds=1)
    assert deleted == ["a", "b"]
    assert deletions.is_healthy()
    assert deletions.finish(0)
