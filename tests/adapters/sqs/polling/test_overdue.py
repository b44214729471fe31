"""An operation that hangs holds its job no longer than it may, nor those behind it; and health tells when all hang."""

from datetime import timedelta
from threading import Event

import pytest

from adapters.sqs.polling import worker
from adapters.system import SystemClock
from domain.attempt import Attempt
from domain.job import Job
from tests.support.polling import LEASE, Poller, polling, until
from tests.support.sqs import record

MARGIN = timedelta(seconds=5)
"""Of `tests.support.sqs.Worker`: it follows the longest time, to write an answer."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "LIVENESS_INTERVAL_SECONDS", 0.02)


class Hangs:
    """An operation that hangs, for jobs named so, until it is let go."""

    def __init__(self) -> None:
        self.go = Event()
        self.left: dict[str, timedelta] = {}

    def __call__(self, job: Job, attempt: Attempt) -> object:
        assert attempt.deadline is not None
        self.left[job.job_id] = attempt.deadline - SystemClock().now()
        if job.job_id.startswith("hangs"):
            assert self.go.wait(20)
        return None


def body(job_id: str) -> str:
    return f'{{"job_id":"{job_id}"}}'


def test_an_attempt_is_told_its_end_from_the_start_and_its_lease_and_message_end_with_it() -> None:
    hangs = Hangs()
    poller = Poller(hangs, longest=timedelta(seconds=10))
    with polling(poller):
        poller.queue.send(record("m1", body("hangs")))
        until(lambda: "hangs" in hangs.left)
        assert timedelta(seconds=9) < hangs.left["hangs"] <= timedelta(seconds=10)
        (held,) = poller.visibility._held.values()
        clock = poller.worker.clock
        assert held.end - clock.monotonic() <= timedelta(seconds=10) + MARGIN + worker.BEYOND_DEADLINE
        claimed = poller.behind.record_of("hangs")
        assert claimed is not None
        assert claimed.lease_until is not None
        assert claimed.lease_until - clock.now() <= timedelta(seconds=10) + MARGIN < LEASE
        hangs.go.set()


def test_each_attempt_of_a_lane_has_its_own_time() -> None:
    hangs = Hangs()
    with polling(Poller(hangs, longest=timedelta(seconds=100))) as poller:
        poller.queue.send(*(record(f"m{number}", body(str(number)), group="g") for number in range(3)))
        until(lambda: len(poller.queue.deleted) == 3)
    assert all(timedelta(seconds=98) < left <= timedelta(seconds=100) for left in hangs.left.values())


def test_without_a_longest_time_it_is_sqs_s_12_hours() -> None:
    hangs = Hangs()
    with polling(Poller(hangs)) as poller:
        poller.queue.send(record("m1", body("1")))
        until(lambda: poller.queue.deleted == ["m1"])
    assert timedelta(hours=11.9) < hangs.left["1"] < timedelta(hours=12)


def test_what_waits_behind_an_overdue_attempt_goes_back_and_others_are_received() -> None:
    hangs = Hangs()
    poller = Poller(hangs, concurrency=3, longest=timedelta(seconds=100))
    with polling(poller):
        poller.queue.send(*(record(f"m{number}", body(f"hangs{number}"), group="g") for number in range(3)))
        until(lambda: bool(hangs.left))
        assert poller.given_back == {}
        for lane in poller.worker._lanes:
            lane.ends_at = poller.worker.clock.monotonic()
        until(lambda: poller.given_back == {"m1": 0, "m2": 0})
        assert poller.worker.is_healthy(), "there is another thread"
        poller.queue.send(record("other", body("other")))
        until(lambda: poller.queue.deleted == ["other"])
        hangs.go.set()
        until(lambda: "m0" in poller.queue.deleted)
        assert list(hangs.left) == ["hangs0", "other"]


def test_a_worker_whose_threads_all_hang_is_not_healthy_until_one_comes_back() -> None:
    hangs = Hangs()
    poller = Poller(hangs, concurrency=2, longest=timedelta(seconds=100))
    with polling(poller):
        poller.queue.send(record("m1", body("hangs1")), record("m2", body("hangs2")))
        until(lambda: len(hangs.left) == 2)
        first, second = poller.worker._lanes
        first.ends_at = poller.worker.clock.monotonic()
        until(lambda: first.is_overdue)
        assert poller.worker.is_healthy()
        second.ends_at = poller.worker.clock.monotonic()
        until(lambda: not poller.worker.is_healthy())
        hangs.go.set()
        until(poller.worker.is_healthy)
