"""A thread that is refused costs a worker nothing for good: no lane, no deletion, no renewal; and health tells."""

from datetime import timedelta

import pytest

from adapters.sqs.polling import worker
from adapters.threads import asking
from domain.attempt import Attempt
from domain.job import Job
from tests.support.polling import Poller, polling, until
from tests.support.sqs import record
from tests.support.threads import ScarceThreads


@pytest.fixture(autouse=True)
def _no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "FIRST_PAUSE", timedelta(milliseconds=20))
    monkeypatch.setattr(asking, "LONGEST_PAUSE", timedelta(milliseconds=40))
    monkeypatch.setattr(worker, "FIRST_PAUSE", timedelta(milliseconds=20))
    monkeypatch.setattr(worker, "LONGEST_PAUSE", timedelta(milliseconds=40))
    monkeypatch.setattr(worker, "LIVENESS_INTERVAL_SECONDS", 0.02)


def messages(number: int) -> list[dict[str, object]]:
    return [record(f"m{one}", f'{{"job_id":"{one}"}}') for one in range(number)]


@pytest.mark.parametrize("refused", range(1, 12))
def test_whichever_one_thread_is_refused_every_message_is_done_and_deleted(refused: int) -> None:
    """Receiver, helpers, and each of those that run lanes."""
    threads = ScarceThreads(refused=[refused])
    poller = Poller(concurrency=4, threads=threads)
    with polling(poller):
        poller.queue.send(*messages(30))
        poller.worker.supervise()

        def all_done() -> bool:
            poller.worker.supervise()
            return len(poller.queue.deleted) == 30

        until(all_done, lambda: poller.queue.deleted)
        assert sorted(poller.behind.runs, key=int) == [str(one) for one in range(30)]
        assert poller.given_back == {}, "nothing was received that no thread could run"
        until(lambda: poller.worker.is_healthy())
        until(lambda: poller.held == 0)


def test_with_one_thread_of_four_the_worker_goes_on_and_takes_no_more_than_that_one_can_run() -> None:
    poller = Poller(concurrency=4, threads=ScarceThreads(most={"onejob": 1}))
    with polling(poller):
        poller.queue.send(*messages(10))
        until(lambda: len(poller.queue.deleted) == 10)
        assert set(poller.queue.asked) == {1}
        assert ("threads_refused", ("jobs", 1)) in poller.events.told
        assert poller.worker.is_healthy(), "it works, if slowly"


@pytest.mark.parametrize("missing", ["jobs", "visibility", "deletions", "receiver"])
def test_while_a_thread_that_it_needs_is_missing_nothing_is_received_health_tells_and_it_heals(missing: str) -> None:
    name = {"jobs": "onejob"}.get(missing, f"onejob-{missing}")
    threads = ScarceThreads(most={name: 0})
    poller = Poller(concurrency=2, threads=threads)
    with polling(poller):
        poller.queue.send(*messages(3))
        until(lambda: ("threads_refused", (missing, 0)) in poller.events.told)
        until(lambda: not poller.worker.is_healthy())
        assert poller.queue.asked == []
        threads.most.clear()

        def healed() -> bool:
            poller.worker.supervise()
            return len(poller.queue.deleted) == 3

        until(healed)
        until(poller.worker.is_healthy)


def test_a_stop_before_the_receiver_could_be_started_waits_for_nothing() -> None:
    poller = Poller(threads=ScarceThreads(none=True))
    poller.worker.start()
    assert not poller.worker.is_healthy()
    assert poller.stop(seconds=5) == []
    assert poller.worker.is_healthy(), "when it stops, nothing is missing"


def test_a_worker_is_not_called_sick_before_it_starts() -> None:
    assert Poller(threads=ScarceThreads(none=True)).worker.is_healthy()


def test_a_batch_of_a_lambda_that_gets_no_thread_goes_back_within_10_s_and_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    from adapters.threads.crew import ThreadCrew
    from tests.support.sqs import Worker

    ran: list[str] = []

    def run(job: Job, attempt: Attempt) -> object:
        ran.append(job.job_id)
        return None

    threads = ScarceThreads(none=True)
    behind = Worker(run, threads=4)
    events = behind.events
    crew = ThreadCrew(4, behind.batches.clock, threads=threads, refused=lambda had: events.threads_refused("jobs", had))
    behind.batches = replace(behind.batches, crew=crew)
    assert behind.handle(*messages(5)) == [f"m{one}" for one in range(5)]
    assert set(behind.queue.timeouts.values()) <= set(range(1, 11))
    assert len(behind.queue.timeouts) == 5
    assert events.told == [("threads_refused", ("jobs", 0))]
    threads.none = False
    assert behind.handle(record("other", '{"job_id":"other"}'), record("more", '{"job_id":"more"}')) == []
    assert sorted(ran) == ["more", "other"]
