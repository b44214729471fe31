"""A worker that polls: what it takes, that a long job holds up nobody, and what becomes of messages when it stops."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence
from datetime import timedelta
from threading import Thread

import pytest

from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.message import Message
from adapters.sqs.polling import worker
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from tests.support.polling import Gate, Poller, polling, until
from tests.support.sqs import record


def body(job_id: object) -> str:
    return f'{{"job_id":"{job_id}"}}'


def test_a_long_job_keeps_neither_the_finished_from_being_deleted_nor_others_from_starting() -> None:
    gate = Gate("long")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.queue.send(record("m0", body("long")), *(record(f"m{n}", body(n)) for n in range(1, 30)))
        until(lambda: len(poller.queue.deleted) == 29, lambda: poller.queue.deleted)
        assert "m0" not in poller.queue.deleted
        gate.opened.set()
        until(lambda: "m0" in poller.queue.deleted)
        until(lambda: poller.held == 0)


def test_no_more_is_received_than_can_start_and_nothing_while_nothing_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIVENESS_INTERVAL_SECONDS", 0.02)
    gate = Gate("0", "1", "2")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.queue.send(*(record(f"m{n}", body(n)) for n in range(20)))
        until(lambda: len(gate.began) == 3)
        assert poller.queue.asked == [3]
        moved = poller.worker.moved_at
        until(lambda: poller.worker.moved_at > moved)
        assert poller.queue.asked == [3], "it shows that it lives, and asks for nothing"
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 20)
        assert max(poller.queue.asked) <= 3


def test_at_most_ten_are_received_at_a_time() -> None:
    with polling(Poller(concurrency=25)) as poller:
        poller.queue.send(*(record(f"m{n}", body(n)) for n in range(40)))
        until(lambda: len(poller.queue.deleted) == 40)
        assert max(poller.queue.asked) == 10


def test_what_is_done_is_held_until_it_is_deleted() -> None:
    with polling(Poller()) as poller:
        poller.queue.may_delete.clear()
        poller.queue.send(record("m1", body(1)))
        until(lambda: poller.behind.runs == ["1"] and not poller.worker._lanes)
        held = poller.held
        poller.queue.may_delete.set()
        assert held == 1
        until(lambda: poller.held == 0)


def test_a_fifo_group_is_one_lane_and_each_message_is_deleted_as_it_is_done() -> None:
    gate = Gate("2")
    with polling(Poller(gate)) as poller:
        poller.queue.send(*(record(f"m{n}", body(n), group="g") for n in range(1, 4)), record("x", body(9), group="h"))
        until(lambda: sorted(poller.queue.deleted) == ["m1", "x"])
        assert sorted(gate.began) == ["1", "2", "9"]
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 4)
        assert [one for one in gate.began if one != "9"] == ["1", "2", "3"]


def test_after_a_failure_the_tail_of_its_lane_goes_back_with_it_and_is_held_no_more() -> None:
    def fail(job: Job, attempt: Attempt) -> object:
        if job.job_id == "2":
            raise OSError
        return None

    with polling(Poller(fail)) as poller:
        poller.queue.send(*(record(f"m{n}", body(n), group="g") for n in range(1, 5)))
        until(lambda: len(poller.given_back) == 3)
        assert poller.given_back == {"m2": 5, "m3": 5, "m4": 5}
        until(lambda: poller.queue.deleted == ["m1"])
        until(lambda: poller.held == 0)
        assert poller.behind.runs == ["1", "2"]


def test_duplicates_that_came_together_run_one_after_another() -> None:
    with polling(Poller()) as poller:
        poller.queue.send(*(record(f"m{n}", body("same")) for n in range(5)))
        until(lambda: len(poller.queue.deleted) == 5)
        assert poller.behind.runs == ["same"]
        assert poller.given_back == {}


def test_a_rejected_message_is_buried_and_deleted() -> None:
    def refuse(job: Job, attempt: Attempt) -> object:
        raise PermanentError("refused")

    with polling(Poller(refuse)) as poller:
        poller.queue.send(record("m", body(1)))
        until(lambda: poller.queue.deleted == ["m"])
        (letter,) = poller.behind.queue.letters
        assert '"refused"' in letter.attributes["onejob"]["StringValue"]
        assert '"request-1"' in letter.attributes["onejob"]["StringValue"]


def test_a_stop_finishes_what_runs_and_gives_back_at_once_what_has_not_started() -> None:
    gate = Gate("1")
    poller = Poller(gate)
    with polling(poller):
        poller.queue.send(*(record(f"m{n}", body(n), group="g") for n in range(1, 4)))
        until(lambda: gate.began == ["1"])
        poller.worker.stop()
        assert poller.given_back == {"m2": 0, "m3": 0}
        assert poller.queue.deleted == []
        gate.opened.set()
        assert poller.stop() == []
        assert poller.queue.deleted == ["m1"]
        assert gate.began == ["1"]
        assert poller.held == 0


def test_what_a_poll_brings_after_the_stop_is_given_back() -> None:
    poller = Poller()
    poller.queue.poll_seconds = 20
    with polling(poller):
        until(lambda: bool(poller.queue.asked))
        poller.worker.stop()
        poller.queue.send(record("late", body(1)))
        assert poller.stop() == []
        assert poller.given_back == {"late": 0}
        assert poller.behind.runs == []
        assert len(poller.queue.asked) == 1


def test_what_still_runs_when_the_time_to_stop_is_over_is_named_and_left() -> None:
    gate = Gate("1")
    with polling(Poller(gate)) as poller:
        poller.queue.send(record("m1", body(1)), record("m2", body(2)))
        until(lambda: "m2" in poller.queue.deleted)
        assert poller.stop(seconds=0) == ["m1"]
        assert poller.given_back == {}
        gate.opened.set()


def test_a_queue_that_fails_is_asked_again_after_pauses_that_double(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", timedelta(milliseconds=8))
    monkeypatch.setattr(worker, "LONGEST_PAUSE", timedelta(milliseconds=32))
    poller = Poller()
    poller.queue.failures = 4
    with polling(poller):
        poller.queue.send(record("m", body(1)))
        until(lambda: poller.queue.deleted == ["m"])
        pauses = [pause / timedelta(milliseconds=1) for pause in poller.events.receive_pauses]
        assert pauses == [4, 8, 16, 16]
        poller.queue.failures = 1
        until(lambda: len(poller.events.receive_pauses) == 5)
        assert poller.events.receive_pauses[-1] == timedelta(milliseconds=4), "it begins anew"


def test_a_stop_does_not_wait_for_the_pause_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", timedelta(minutes=10))
    monkeypatch.setattr(worker, "LONGEST_PAUSE", timedelta(minutes=10))
    poller = Poller()
    poller.queue.failures = 1000
    with polling(poller):
        until(lambda: bool(poller.events.receive_pauses))
        poller.stop(seconds=5)
        assert not poller.worker._receiving
        assert len(poller.queue.asked) == 1


def test_a_stop_waits_for_what_is_done_to_be_deleted() -> None:
    poller = Poller()
    poller.queue.may_delete.clear()
    with polling(poller):
        poller.queue.send(record("m", body(1)))
        until(lambda: poller.behind.runs == ["1"])
        stopping = Thread(target=poller.stop)
        stopping.start()
        stopping.join(0.2)
        assert stopping.is_alive()
        poller.queue.may_delete.set()
        stopping.join(10)
        assert poller.queue.deleted == ["m"]


def test_a_lane_that_ends_while_its_rest_is_given_back_does_not_tell_the_queue_again() -> None:
    gate = Gate("1")
    poller = Poller(gate)
    tell = poller.behind.queue.set_visibility

    def after_the_lane(timeouts: Sequence[tuple[Message, int]]) -> list[str]:
        gate.opened.set()
        until(lambda: not poller.worker._lanes)
        return tell(timeouts)

    poller.behind.queue.set_visibility = after_the_lane  # type: ignore[method-assign]
    with polling(poller):
        poller.queue.send(record("m1", body(1), group="g"), record("m2", body(2), group="g"))
        until(lambda: gate.began == ["1"])
        assert poller.stop() == []
        assert poller.given_back == {"m2": 0}
        assert poller.events.broken == [], "it is told once"


def test_what_nobody_foresaw_of_a_receive_is_told_and_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", timedelta(milliseconds=1))
    poller = Poller()
    receive, breaks = poller.worker.receive, [True]

    def broken(number: int) -> object:
        if breaks and breaks.pop():
            raise ZeroDivisionError
        return receive(number)

    poller.worker.receive = broken  # type: ignore[assignment]
    with polling(poller):
        poller.queue.send(record("m", body(1)))
        until(lambda: poller.queue.deleted == ["m"])
        assert poller.events.broken == [([], "ZeroDivisionError")]


def test_what_could_not_be_cut_into_lanes_is_held_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would be kept invisible for as long as this worker lives, up to 12 hours, and nobody would run it."""
    monkeypatch.setattr(worker, "FIRST_PAUSE", timedelta(milliseconds=1))
    poller = Poller()
    right = SqsBatchProcessor.lanes

    def lanes(self: SqsBatchProcessor, messages: Sequence[Message]) -> object:
        if messages[0].message_id == "m1":
            raise MemoryError
        return right(self, messages)

    monkeypatch.setattr(SqsBatchProcessor, "lanes", lanes)
    with polling(poller):
        poller.queue.send(record("m1", body(1)))
        until(lambda: poller.events.broken == [([], "MemoryError")])
        until(lambda: poller.held == 0)
        poller.queue.send(record("m2", body(2)))
        until(lambda: poller.queue.deleted == ["m2"])


def exits(raised: BaseException) -> Callable[[Job, Attempt], object]:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id == "1":
            raise raised
        return None

    return run


@pytest.mark.parametrize("error", [CancelledError(), GeneratorExit(), KeyboardInterrupt(), SystemExit(1)])
def test_what_ends_no_process_is_a_failure_of_its_job(error: BaseException) -> None:
    with polling(Poller(exits(error), concurrency=2)) as poller:
        poller.queue.send(record("m1", body(1)), record("m2", body(2)))
        until(lambda: poller.given_back == {"m1": 5} and poller.queue.deleted == ["m2"])
        failed = poller.behind.record_of("1")
        assert failed is not None
        assert (failed.owner, failed.last_error) == (None, type(error).__name__)
        assert poller.events.broken == []


def test_what_a_signal_raises_leaves_its_message_and_takes_no_thread_away() -> None:
    with polling(Poller(exits(KeyboardInterrupt()), concurrency=2, ends_process=lambda error: True)) as poller:
        poller.queue.send(record("m1", body(1), group="g"), record("behind", body(2), group="g"))
        until(lambda: poller.events.broken == [(["m1"], "KeyboardInterrupt")])
        poller.queue.send(record("m3", body(3), group="h"))
        until(lambda: poller.queue.deleted == ["m3"])
        until(lambda: poller.queue.asked[-1] == 2)
        assert set(poller.given_back) == {"behind"}, "m1 comes back when its visibility ends: its lease must lapse"
        until(lambda: poller.held == 0)


def test_a_lease_is_as_long_as_told_and_not_as_the_12_hours() -> None:
    gate = Gate("1")
    with polling(Poller(gate)) as poller:
        poller.queue.send(record("m1", body(1)))
        until(lambda: gate.began == ["1"])
        held = poller.behind.record_of("1")
        assert held is not None
        assert held.lease_until is not None
        assert timedelta(seconds=50) < held.lease_until - poller.worker.clock.now() <= timedelta(seconds=60)
        gate.opened.set()


def test_stopping_twice_at_once_tells_the_queue_once() -> None:
    gate = Gate("1")
    with polling(Poller(gate)) as poller:
        poller.queue.send(*(record(f"m{n}", body(n), group="g") for n in range(1, 9)))
        until(lambda: gate.began == ["1"])
        stops = [Thread(target=poller.worker.stop) for _ in range(4)]
        for stop in stops:
            stop.start()
        gate.opened.set()
        for stop in stops:
            stop.join()
        assert poller.stop() == []
        assert poller.given_back == {f"m{n}": 0 for n in range(2, 9)}
