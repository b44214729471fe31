"""Held messages stay invisible, up to SQS's 12 hours, and nothing extends what was let go."""

from collections.abc import Sequence
from datetime import timedelta
from threading import Event, Thread

import pytest

from adapters.sqs.dead_letter import make_dead_letter
from adapters.sqs.message import Message
from adapters.sqs.polling.visibility_heartbeat import HeldQueue, VisibilityHeartbeat
from domain.outcome import Rejected
from domain.ports.clock import Moment
from tests.support.clock import FakeClock
from tests.support.sqs import QUEUE, RecordedPollEvents, RecordedQueue
from tests.support.threads import IdleThreads
from tests.support.virtual import VirtualTime

TIMEOUT = timedelta(seconds=30)


def message(number: int) -> Message:
    return Message(f"m{number}", f"handle-m{number}", "{}", QUEUE)


class Bench:
    def __init__(self, *errors: str | None) -> None:
        """`errors` are what the first extensions of each message fail with."""
        self.clock = FakeClock()
        self.errors = list(errors)
        self.asked: list[list[tuple[str, int]]] = []
        self.events = RecordedPollEvents()
        self.heartbeat = VisibilityHeartbeat(self.try_to_hide, self.events, self.clock, TIMEOUT, IdleThreads())

    def try_to_hide(self, timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        self.asked.append([(held.message_id, seconds) for held, seconds in timeouts])
        error = self.errors.pop(0) if self.errors else None
        if error == "raises":
            raise ZeroDivisionError
        return [(held, error) for held, _ in timeouts] if error else []

    def hold(self, *numbers: int) -> list[Message]:
        messages = [message(number) for number in numbers]
        self.heartbeat.hold(messages, Moment.of(self.clock))
        return messages

    def beats_after(self, seconds: float) -> int:
        """Requests so far, after so many more seconds."""
        self.clock.advance(seconds=seconds)
        self.heartbeat.beat()
        return len(self.asked)


def test_a_message_is_extended_at_each_third_of_its_timeout() -> None:
    bench = Bench()
    bench.hold(1)
    assert [bench.beats_after(seconds) for seconds in (9, 1, 9, 1)] == [0, 1, 1, 2]
    assert bench.asked == [[("m1", 30)]] * 2


def test_messages_are_extended_ten_in_a_request_with_those_that_would_be_due_soon() -> None:
    bench = Bench()
    bench.hold(*range(12))
    bench.clock.advance(seconds=5)
    bench.hold(12)
    bench.clock.advance(seconds=3)
    bench.hold(13)
    assert bench.beats_after(2) == 2
    assert [len(request) for request in bench.asked] == [10, 3]
    assert "m13" not in {one for request in bench.asked for one, _ in request}


def test_what_was_let_go_is_extended_no_more() -> None:
    bench = Bench()
    first, _ = bench.hold(1, 2)
    bench.heartbeat.let_go([first])
    assert bench.beats_after(10) == 1
    assert bench.asked == [[("m2", 30)]]


def test_letting_go_waits_for_the_extension_that_is_under_way() -> None:
    bench = Bench()
    asked, answered, let_go = Event(), Event(), Event()
    hide = bench.try_to_hide

    def slow(timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        asked.set()
        assert answered.wait(10)
        assert not let_go.is_set()
        return hide(timeouts)

    bench.heartbeat._try_to_hide = slow
    (held,) = bench.hold(1)
    bench.clock.advance(seconds=10)
    beating = Thread(target=bench.heartbeat.beat)
    beating.start()
    assert asked.wait(10)

    def let_it_go() -> None:
        bench.heartbeat.let_go([held])
        let_go.set()

    other = Thread(target=let_it_go)
    other.start()
    other.join(0.05)
    assert other.is_alive()
    answered.set()
    other.join(10)
    beating.join(10)
    assert let_go.is_set()
    assert bench.asked == [[("m1", 30)]]


def test_letting_go_of_several_waits_for_the_one_that_is_being_extended() -> None:
    bench = Bench()
    asked, answered = Event(), Event()
    hide = bench.try_to_hide

    def slow(timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        asked.set()
        assert answered.wait(10)
        return hide(timeouts)

    bench.heartbeat._try_to_hide = slow
    (first,) = bench.hold(1)
    bench.clock.advance(seconds=9)
    (second,) = bench.hold(2)
    bench.clock.advance(seconds=1)
    beating = Thread(target=bench.heartbeat.beat)
    beating.start()
    assert asked.wait(10)
    other = Thread(target=bench.heartbeat.let_go, args=([first, second],))
    other.start()
    other.join(0.05)
    still_waits = other.is_alive()
    answered.set()
    other.join(10)
    beating.join(10)
    assert still_waits
    assert bench.asked == [[("m1", 30)]]


def test_what_is_let_go_before_its_request_begins_is_not_in_it() -> None:
    bench = Bench()
    bench.hold(1, 2)
    bench.clock.advance(seconds=10)
    with bench.heartbeat._periodic.changed:
        taken = bench.heartbeat._take()
        bench.heartbeat._forget("handle-m1")  # what `let_go` does before it waits
    assert taken is not None
    bench.heartbeat._extend(taken)
    assert bench.asked == [[("m2", 30)]]


def test_a_failing_extension_is_told_and_tried_again_in_half_the_time() -> None:
    bench = Bench("RequestThrottled", "raises")
    bench.hold(1)
    assert [bench.beats_after(seconds) for seconds in (10, 4, 1, 5, 9, 1)] == [1, 1, 2, 3, 3, 4]
    assert bench.events.visibility_errors == ["RequestThrottled", "ZeroDivisionError"]


def test_what_sqs_will_hide_no_more_for_this_receipt_is_told_once_and_left() -> None:
    for error in ("ReceiptHandleIsInvalid", "InvalidParameterValue", "AWS.SimpleQueueService.MessageNotInflight"):
        bench = Bench(error)
        bench.hold(1)
        assert [bench.beats_after(10), bench.beats_after(100)] == [1, 1]
        assert bench.events.visibility_errors == [error]


def test_a_message_that_was_deleted_while_it_was_extended_is_no_failure() -> None:
    bench = Bench()

    def gone_meanwhile(timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        with bench.heartbeat._periodic.changed:  # what `let_go` does before it waits for this
            bench.heartbeat._forget("handle-m1")
        return [(held, "ReceiptHandleIsInvalid") for held, _ in timeouts]

    bench.heartbeat._try_to_hide = gone_meanwhile
    bench.hold(1)
    bench.beats_after(10)
    assert bench.events.visibility_errors == []


def test_after_12_hours_a_message_is_left_to_others_and_that_is_told() -> None:
    bench = Bench()
    since = bench.clock.now()
    bench.hold(1)
    while bench.clock.now() - since < timedelta(hours=12):
        bench.beats_after(10)
    ends = [number * 10 + request[0][1] for number, request in enumerate(bench.asked, start=1)]
    assert max(ends) == 12 * 3600 - 60, "never beyond what SQS allows"
    assert bench.events.held_too_long_since == [since]
    asked = len(bench.asked)
    assert bench.beats_after(100) == asked


def test_a_message_that_is_given_a_visibility_is_let_go_first() -> None:
    bench = Bench()
    (held, other) = bench.hold(1, 2)
    inner = RecordedQueue()
    queue = HeldQueue(inner, bench.heartbeat)
    assert queue.set_visibility([(held, 7)]) == []
    assert queue.delete([other]) == []
    queue.dead_letter(make_dead_letter(other, Rejected("stale"), "r"))
    assert (inner.timeouts, inner.deleted, len(inner.letters)) == ({"m1": 7}, ["m2"], 1)
    bench.beats_after(10)
    assert bench.asked == [[("m2", 30)]]


def test_a_visibility_is_set_when_nothing_extends_the_message_any_more() -> None:
    """An extension that came between would undo it: the message would be back after 30 s."""
    bench = Bench()
    first, second, _ = bench.hold(1, 2, 3)

    class SlowQueue(RecordedQueue):
        def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
            bench.beats_after(10)
            return super().set_visibility(timeouts)

    HeldQueue(SlowQueue(), bench.heartbeat).set_visibility([(first, 7), (second, 8)])
    assert bench.asked == [[("m3", 30)]]


def test_the_thread_beats_by_itself() -> None:
    from adapters.system import SystemClock

    asked = Event()

    def hide(timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        asked.set()
        return []

    clock = SystemClock()
    heartbeat = VisibilityHeartbeat(hide, RecordedPollEvents(), clock, timedelta(seconds=1.5))
    heartbeat.hold([message(1)], Moment(clock.now(), clock.monotonic() - timedelta(seconds=0.4)))
    assert asked.wait(10)
    heartbeat.let_go([message(1)])


@pytest.mark.parametrize("seconds", [-30, 3600])
def test_a_wall_clock_that_is_set_delays_no_extension(seconds: float) -> None:
    bench = Bench()
    bench.hold(1)
    bench.clock.step(seconds=seconds)
    assert [bench.beats_after(10), bench.beats_after(10)] == [1, 2]
    assert bench.asked == [[("m1", 30)]] * 2
    assert bench.events.held_too_long_since == []


def test_a_message_is_extended_no_further_than_its_attempt_may_take_and_that_is_not_called_too_long() -> None:
    bench = Bench()
    held, _ = bench.hold(1, 2)
    bench.heartbeat.bound(held, bench.clock.monotonic() + timedelta(seconds=45))
    bench.heartbeat.bound(message(3), bench.clock.monotonic())  # which is not held
    for _ in range(10):
        bench.beats_after(10)
    asked = [
        (10 * number, seconds) for number, one in enumerate(bench.asked, 1) for name, seconds in one if name == "m1"
    ]
    assert asked == [(10, 30), (20, 25), (30, 15), (40, 5)], "up to 45 s and no further"
    assert len([one for one in bench.asked if ("m2", 30) in one]) == 10
    assert bench.events.held_too_long_since == []


def test_a_request_that_hangs_holds_up_neither_other_messages_nor_those_that_are_let_go() -> None:
    time, asked, answered = VirtualTime(), list[tuple[float, str]](), list[float]()

    def hide(timeouts: Sequence[tuple[Message, int]]) -> list[tuple[Message, str]]:
        asked.extend((time.uptime.total_seconds(), held.message_id) for held, _ in timeouts)
        if timeouts[0][0].message_id == "m1":
            time.sleep(timedelta(seconds=25))
            answered.append(time.uptime.total_seconds())
        return []

    heartbeat = VisibilityHeartbeat(hide, RecordedPollEvents(), time, TIMEOUT, time)
    heartbeat.hold([message(1)], Moment.of(time))
    time.pass_by(seconds=6)
    heartbeat.hold([message(2)], Moment.of(time))
    left: list[float] = []

    def let_go() -> None:
        for number in (2, 1):
            heartbeat.let_go([message(number)])
            left.append(time.uptime.total_seconds())

    time.pass_by(seconds=24)
    time.go(let_go)
    time.pass_by(seconds=100)
    assert asked == [(10, "m1"), (16, "m2"), (26, "m2")]
    assert (answered, left) == ([35], [30, 35])
