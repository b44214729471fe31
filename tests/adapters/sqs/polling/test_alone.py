"""A job with which a worker died runs with nothing beside it, and holds up the others no longer than it must."""

from datetime import timedelta

import pytest

from adapters.sqs.polling import worker
from domain.attempt import Attempt
from domain.job import Job
from tests.support.polling import Gate, Poller, polling, until
from tests.support.sqs import record


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIVENESS_INTERVAL_SECONDS", 0.02)


def body(job_id: str) -> str:
    return f'{{"job_id":"{job_id}"}}'


class Beside(Gate):
    """Remembers which jobs ran beside each one, at its begin."""

    def __init__(self, *closed: str) -> None:
        super().__init__(*closed)
        self.running: set[str] = set()
        self.beside: dict[str, set[str]] = {}

    def __call__(self, job: Job, attempt: Attempt) -> object:
        self.beside[job.job_id] = set(self.running)
        for other in self.running:
            self.beside[other].add(job.job_id)
        self.running.add(job.job_id)
        try:
            return super().__call__(job, attempt)
        finally:
            self.running.discard(job.job_id)


def test_of_several_one_runs_after_another() -> None:
    lanes: dict[str, int] = {}

    def run(job: Job, attempt: Attempt) -> object:
        lanes[job.job_id] = len(poller.worker._running)
        return None

    with polling(poller := Poller(run, concurrency=3)):
        poller.behind.died_with("1", "2", "3")
        poller.queue.send(*(record(f"m{n}", body(f"{n}"), receives=2) for n in (1, 2, 3)))
        until(lambda: len(poller.queue.deleted) == 3)
    assert lanes == {"1": 1, "2": 1, "3": 1}


@pytest.mark.parametrize("receives", [1, 2])
def test_it_runs_when_the_others_have_ended_and_nothing_is_received_meanwhile(receives: int) -> None:
    gate = Beside("other")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.behind.died_with("suspect", "suspect2")
        poller.queue.send(
            record("m1", body("other")),
            *(record(f"s{one}", body(f"suspect{one}"), receives=receives) for one in ("", "2")),
        )
        until(lambda: sorted(one for one, _ in poller.events.waits) == ["s", "s2"])
        asked = len(poller.queue.asked)
        poller.queue.send(record("m2", body("late")))
        moved = poller.worker.moved_at
        until(lambda: poller.worker.moved_at > moved + timedelta(milliseconds=100))
        assert (gate.began, len(poller.queue.asked), poller.held) == (["other"], asked, 3)
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 4)
    assert gate.beside == {"other": set(), "suspect": set(), "suspect2": set(), "late": set()}
    assert (poller.given_back, poller.held) == ({}, 0)


def test_nothing_is_received_while_one_runs_alone() -> None:
    gate = Beside("suspect")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.behind.died_with("suspect")
        poller.queue.send(record("s", body("suspect"), receives=2))
        until(lambda: gate.began == ["suspect"])
        asked = len(poller.queue.asked)
        poller.queue.send(record("m", body("late")))
        moved = poller.worker.moved_at
        until(lambda: poller.worker.moved_at > moved + timedelta(milliseconds=100))
        assert (gate.began, len(poller.queue.asked)) == (["suspect"], asked)
        gate.opened.set()
        until(lambda: sorted(poller.queue.deleted) == ["m", "s"])
    assert gate.beside == {"suspect": set(), "late": set()}


def test_one_that_runs_alone_and_does_not_end_stops_the_others_no_longer_than_its_time() -> None:
    gate = Beside("suspect")
    with polling(Poller(gate, concurrency=3, longest=timedelta(seconds=100))) as poller:
        poller.behind.died_with("suspect")
        poller.queue.send(record("s", body("suspect"), receives=2))
        until(lambda: gate.began == ["suspect"])
        (lane,) = poller.worker._lanes
        lane.is_overdue = True
        poller.queue.send(record("m", body("late")))
        until(lambda: poller.queue.deleted == ["m"])
        assert gate.running == {"suspect"}
        gate.opened.set()


def test_a_worker_of_one_thread_runs_it_in_its_turn() -> None:
    with polling(Poller(concurrency=1)) as poller:
        poller.behind.died_with("suspect")
        poller.queue.send(record("s", body("suspect"), receives=2), record("m", body("other")))
        until(lambda: len(poller.queue.deleted) == 2)
    assert (poller.behind.runs, poller.events.waits) == (["suspect", "other"], [])


def test_a_group_keeps_its_order() -> None:
    gate = Beside("x")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.behind.died_with("2")
        poller.queue.send(
            record("x", body("x"), group="h"),
            *(record(f"m{n}", body(f"{n}"), receives=2, group="g") for n in (1, 2, 3)),
        )
        until(lambda: [one for one, _ in poller.events.waits] == ["m2"])
        until(lambda: poller.queue.deleted == ["m1"])
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 4)
    assert [one for one in gate.began if one != "x"] == ["1", "2", "3"]
    assert gate.beside["2"] == gate.beside["3"] == set()


def test_it_is_put_off_where_the_others_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PATIENCE", timedelta(milliseconds=10))
    gate = Beside("other")
    with polling(Poller(gate, concurrency=3)) as poller:
        poller.behind.died_with("suspect")
        poller.queue.send(record("m1", body("other")), record("s", body("suspect"), receives=3))
        until(lambda: poller.events.put_offs == ["s"])
        assert (poller.events.waits, poller.given_back) == ([("s", timedelta(milliseconds=40))], {"s": 20})
        poller.queue.send(record("m2", body("late")))
        until(lambda: poller.queue.deleted == ["m2"])
        assert (gate.began, poller.held) == (["other", "late"], 1)
        gate.opened.set()


def test_patience_doubles_with_each_receive_and_has_an_end() -> None:
    gate = Beside("other")
    with polling(Poller(gate, concurrency=4)) as poller:
        poller.behind.died_with("suspect0", "suspect1", "suspect2")
        receives = (1, 2, 1_000_000)
        poller.queue.send(record("m", body("other")))
        until(lambda: gate.began == ["other"])
        poller.queue.send(*(record(f"s{n}", body(f"suspect{n}"), receives=times) for n, times in enumerate(receives)))
        until(lambda: len(poller.events.waits) == 3)
        assert dict(poller.events.waits) == {
            "s0": timedelta(seconds=30),
            "s1": timedelta(seconds=60),
            "s2": timedelta(hours=1),
        }
        gate.opened.set()


def test_it_is_put_off_at_once_where_an_attempt_beside_it_does_not_end() -> None:
    gate = Beside("hangs")
    poller = Poller(gate, concurrency=3, longest=timedelta(seconds=100))
    with polling(poller):
        poller.behind.died_with("suspect")
        poller.queue.send(record("m", body("hangs")))
        until(lambda: gate.began == ["hangs"])
        (lane,) = poller.worker._lanes
        lane.is_overdue = True
        poller.queue.send(record("s", body("suspect"), receives=2))
        until(lambda: poller.events.put_offs == ["s"])
        gate.opened.set()


def test_its_message_stays_hidden_while_it_waits_longer_than_an_attempt_may_take() -> None:
    gate = Beside("other")
    poller = Poller(gate, concurrency=3, longest=timedelta(seconds=100))
    with polling(poller):
        poller.behind.died_with("suspect")
        poller.queue.send(record("m", body("other")), record("s", body("suspect"), receives=2))
        until(lambda: len(poller.events.waits) == 1)
        held = {one.message.message_id: one for one in poller.visibility._held.values()}
        assert (held["m"].bound is None, held["s"].bound) == (False, None)
        (waiting,) = poller.worker._waiting
        assert waiting.ends_at is None
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 2)


def test_a_stop_gives_back_what_waits() -> None:
    gate = Beside("other")
    poller = Poller(gate, concurrency=3)
    with polling(poller):
        poller.behind.died_with("suspect")
        poller.queue.send(record("m", body("other")), record("s", body("suspect"), receives=2))
        until(lambda: len(poller.events.waits) == 1)
        poller.worker.stop()
        assert (poller.given_back, len(poller.worker._lanes)) == ({"s": 0}, 1)
        gate.opened.set()
        assert poller.stop() == []
    assert (gate.began, poller.held) == (["other"], 0)


def test_what_is_found_to_be_one_while_the_worker_stops_is_given_back() -> None:
    poller = Poller(concurrency=3)
    find = poller.behind.memory.find

    def stopping(key: object) -> object:
        poller.worker.stop()
        return find(key)  # type: ignore[arg-type]

    poller.behind.memory.find = stopping  # type: ignore[method-assign,assignment]
    with polling(poller):
        poller.behind.died_with("suspect")
        poller.queue.send(record("s", body("suspect"), receives=2))
        until(lambda: poller.given_back == {"s": 0})
        assert poller.stop() == []
    assert (poller.behind.runs, poller.events.waits, poller.held) == ([], [], 0)


def test_it_waits_where_no_thread_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Beside("other")
    poller = Poller(gate, concurrency=3)
    with polling(poller):
        poller.behind.died_with("suspect")
        poller.queue.send(record("m", body("other")), record("s", body("suspect"), receives=2))
        until(lambda: len(poller.events.waits) == 1)
        threads = poller.worker._staff.threads
        answers = [0, 0]
        monkeypatch.setattr(
            poller.worker._staff, "threads", lambda wanted: answers.pop() if answers else threads(wanted)
        )
        gate.opened.set()
        until(lambda: len(poller.queue.deleted) == 2)
        assert answers == []
