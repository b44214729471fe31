"""What operators are told of a batch, and of which message: enough to find it, and nothing twice."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from adapters.sqs.message import Message
from domain.answer import Answer
from domain.job import Job
from domain.outcome import Executed, Failed, Failure, Outcome, Rejected
from tests.adapters.sqs.test_batch import body, buried, failing
from tests.support.sqs import RecordedBatchEvents, RecordedQueue, Worker, record


@dataclass
class WholeEvents(RecordedBatchEvents):
    """Remembers what it was told whole."""

    def rejected_unread(self, message: Message, job: Job | None, rejected: Rejected) -> None:
        self.told.append(("rejected_unread", (message.message_id, job and job.job_id, rejected)))

    def dead_letter_failed(self, message: Message, error: Exception) -> None:
        self.told.append(("dead_letter_failed", (message.message_id, str(error))))

    def crashed(self, message: Message, error: Exception) -> None:
        self.told.append(("crashed", (message.message_id, str(error))))


def watched(worker: Worker) -> list[tuple[str, Any]]:
    events = WholeEvents()
    worker.batches = replace(worker.batches, events=events)
    return events.told


def test_a_message_that_is_no_job_is_told_with_its_reason_and_detail() -> None:
    worker = Worker()
    told = watched(worker)
    worker.handle(record("a", '{"job_id":7}'))
    rejected = Rejected("invalid_payload", "job_id: expected string")
    assert told == [("rejected_unread", ("a", None, rejected))]
    assert [letter["detail"] for letter in buried(worker)] == ["job_id: expected string"]


def test_a_stale_message_is_told_with_its_job() -> None:
    worker = Worker()
    told = watched(worker)
    worker.handle(record("a", body("1"), sent_at=worker.clock.now() - timedelta(days=29)))
    assert told == [("rejected_unread", ("a", "1", Rejected("stale")))]


def test_a_burial_that_fails_is_told_with_its_error_and_comes_back_after_its_backoff() -> None:
    worker = Worker()
    told = watched(worker)
    worker.queue.burying_fails = True
    assert worker.handle(record("a", "not json", receives=3)) == ["a"]
    assert told[-1] == ("dead_letter_failed", ("a", "told to fail"))
    assert worker.queue.timeouts == {"a": 20}


def test_what_nobody_foresaw_is_told_with_its_message_and_comes_back_after_its_backoff() -> None:
    worker = Worker()
    told = watched(worker)

    def broken(job: Job, **rest: Any) -> Outcome:
        raise KeyError("bug")

    worker.batches = replace(worker.batches, process=broken)
    assert worker.handle(record("a", body(), receives=3)) == ["a"]
    assert told == [("crashed", ("a", "'bug'"))]
    assert worker.queue.timeouts == {"a": 20}


def test_a_record_that_ran_keeps_its_end_whatever_stops_its_lane() -> None:
    """Of three in a lane the second stops it: the first stays done."""
    worker = Worker()
    outcomes: Iterator[Outcome] = iter([Executed(Answer("1")), Failed(Failure.OPERATION_RAISED)])
    worker.batches = replace(worker.batches, process=lambda job, **rest: next(outcomes))
    assert worker.handle(*(record(name, body()) for name in "abc")) == ["b", "c"]


def test_the_queue_is_not_asked_for_nothing() -> None:
    class Asked(RecordedQueue):
        def set_visibility(self, timeouts: Sequence[tuple[Message, int]]) -> list[str]:
            assert timeouts
            return super().set_visibility(timeouts)

    worker = Worker(failing("2"))
    worker.batches = replace(worker.batches, queue=Asked())
    assert worker.handle(record("a", body("1"))) == []
    assert worker.handle(record("b", body("2"))) == ["b"]
