"""Situations reported in public, by their ids: batches, envelopes, deadlines, dead letters."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.operation import Operation
from domain.outcome import Executed, Skipped
from entrypoints.settings import Backend
from tests.support.jobs import answer_ok
from tests.support.notes import signed
from tests.support.sqs import Context, Worker, event, record
from tests.support.worker import handler


def body(job_id: str, **payload: Any) -> str:
    return json.dumps({"job_id": job_id, **payload})


def failing(*job_ids: str) -> Callable[[Job, Attempt], object]:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id in job_ids:
            raise OSError
        return None

    return run


def reasons(worker: Worker) -> list[dict[str, Any]]:
    return [json.loads(letter.attributes["onejob"]["StringValue"]) for letter in worker.queue.letters]


def test_D01_the_answer_has_the_members_that_lambda_reads() -> None:
    handle = handler(failing("2", "4"), backend=Backend.MEMORY)
    answer = handle(event(*(record(f"id{n}", body(str(n)), queue="arn:aws:sqs:x:1:q") for n in range(1, 5))), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "id2"}, {"itemIdentifier": "id4"}]}


def test_D03_a_batch_in_which_all_fail_is_answered_and_not_raised_cold_and_warm() -> None:
    handle = handler(failing("1"), backend=Backend.MEMORY)
    answers = [handle(event(record("a", body("1"))), Context()) for _ in range(2)]
    assert answers == [{"batchItemFailures": [{"itemIdentifier": "a"}]}] * 2


def test_D05_one_unreadable_message_does_not_take_its_batch_with_it() -> None:
    worker = Worker()
    bodies = ['{"job_id":"1"}', '{"job_id":5}', '{"job_id":"3"}']
    assert worker.handle(*(record(f"m{n}", text) for n, text in enumerate(bodies, 1))) == []
    assert worker.runs == ["1", "3"]
    (letter,) = worker.queue.letters
    assert letter.message.message_id == "m2"
    assert reasons(worker)[0]["reason"] == "invalid_payload"


def test_D07_a_notification_of_sns_is_the_same_job_as_a_raw_message() -> None:
    worker = Worker()
    wrapped = {
        "Type": "Notification",
        "MessageId": "x",
        "TopicArn": "arn:aws:sns:us-east-1:1:t",
        "Message": '{"job_id":"1"}',
    }
    worker.handle(record("a", json.dumps(wrapped)))
    worker.handle(record("b", '{"job_id":"1"}'))
    assert worker.runs == ["1"]


def test_D08_an_event_of_eventbridge_is_the_job_in_its_detail() -> None:
    worker = Worker()
    wrapped = {"version": "0", "detail-type": "Job", "source": "app", "detail": {"job_id": "1"}}
    assert worker.handle(record("a", json.dumps(wrapped))) == []
    assert worker.runs == ["1"]


def test_D09_each_kind_of_wrong_body_has_a_reason_of_its_own() -> None:
    worker = Worker()
    bodies = ["", "null", "[]", '"s"', "not json", "{}"]
    assert worker.handle(*(record(f"m{n}", text) for n, text in enumerate(bodies)), record("ok", body("1"))) == []
    assert worker.runs == ["1"]
    assert len({(reason["reason"], reason["detail"]) for reason in reasons(worker)}) == len(bodies)


@pytest.mark.parametrize("threads", [1, 8])
def test_D11_a_job_that_is_twice_in_one_batch_runs_once(threads: int) -> None:
    worker = Worker(threads=threads)
    assert worker.handle(record("a", body("1")), record("b", body("1"))) == []
    assert [type(trace.outcome) for trace in worker.events.traces] == [Executed, Skipped]


def test_D12_a_batch_that_is_too_long_for_its_time_returns_the_rest_unstarted() -> None:
    def slow(job: Job, attempt: Attempt) -> object:
        worker.clock.advance(seconds=1)
        return None

    worker = Worker(slow)
    left = {f"m{n}": record(f"m{n}", body(str(n))) for n in range(50)}
    receives = 0
    while left:
        receives += 1
        began = worker.clock.now()
        for delivery in left.values():
            delivery["attributes"]["ApproximateReceiveCount"] = str(receives)
        failed = worker.handle(*left.values(), seconds=30)
        assert worker.clock.now() - began < timedelta(seconds=30), "no time-out"
        left = {message_id: left[message_id] for message_id in failed}
    assert receives == 2
    assert set(Counter(worker.runs).values()) == {1}


def test_D13_after_the_first_failure_the_rest_of_a_fifo_group_is_reported_too() -> None:
    worker = Worker(failing("r3"))
    assert worker.handle(*(record(f"r{n}", body(f"r{n}"), group="g") for n in range(1, 6))) == ["r3", "r4", "r5"]
    assert worker.runs == ["r1", "r2", "r3"]


def test_D18_a_retry_is_a_visibility_and_never_a_message_sent_again() -> None:
    worker = Worker(failing("1"), max_attempts=100)
    for receives in range(1, 21):
        assert worker.handle(record("m", body("1"), receives=receives)) == ["m"]
        assert worker.queue.timeouts["m"] > 0
    assert len(worker.runs) == 20
    assert worker.queue.letters == []


def test_D20_a_redriven_failed_job_runs_again() -> None:
    outcomes = iter([OSError(), OSError(), None])

    def run(job: Job, attempt: Attempt) -> object:
        if (error := next(outcomes)) is not None:
            raise error
        return "at last"

    worker = Worker(run, max_attempts=2)
    for receives in range(1, 4):
        worker.handle(record("m", body("1"), receives=receives))
    assert reasons(worker)[0]["reason"] == "attempts_exhausted"
    assert worker.handle(record("redriven", body("1"), receives=1)) == []
    assert isinstance(worker.events.traces[-1].outcome, Executed)


def test_D20_a_redriven_completed_job_is_answered() -> None:
    worker = Worker()
    worker.handle(record("m", body("1")))
    worker.handle(record("redriven", body("1")))
    assert isinstance(worker.events.traces[-1].outcome, Skipped)


@pytest.mark.parametrize(("days", "runs"), [(27, ["1"]), (29, [])])
def test_D20_a_redriven_job_without_a_record_runs_only_while_one_would_still_be_kept(
    days: int, runs: list[str]
) -> None:
    worker = Worker()
    first_sent = round((worker.clock.now() - timedelta(days=days)).timestamp() * 1000)
    burial = signed({"first_sent": first_sent}, body("1"), worker.batches.notes)
    worker.handle(record("m", body("1"), sent_at=worker.clock.now(), attributes=burial))
    assert worker.runs == runs
    assert [reason["reason"] for reason in reasons(worker)] == ([] if runs else ["stale"])


def test_D22_a_permanent_error_is_buried_at_once_with_its_cause_and_a_transient_one_retried() -> None:
    errors: dict[str, Exception] = {
        "400": PermanentError("invalid_payload"),
        "403": PermanentError("forbidden"),
        "429": ConnectionError(),
        "503": TimeoutError(),
    }

    def run(job: Job, attempt: Attempt) -> object:
        raise errors[job.job_id]

    worker = Worker(run)
    sent = worker.clock.now()
    failed = worker.handle(*(record(status, body(status), sent_at=sent) for status in errors))
    assert failed == ["429", "503"]
    assert set(worker.queue.timeouts) == {"429", "503"}
    for reason, code in zip(reasons(worker), ["invalid_payload", "forbidden"], strict=True):
        assert reason["reason"] == code
        assert reason["error_type"] == "PermanentError"
        assert (reason["attempts"], reason["receives"]) == (1, 1)
        assert reason["first_sent"] == round(sent.timestamp() * 1000)
        assert reason["request_id"] == "request-1"


def test_D23_an_exhausted_message_reaches_the_dead_letter_queue_before_it_is_done() -> None:
    worker = Worker(failing("1"), max_attempts=3)
    worker.queue.burying_fails = True
    for receives in range(1, 6):
        assert worker.handle(record("m", body("1"), receives=receives)) == ["m"]
    worker.queue.burying_fails = False
    assert worker.handle(record("m", body("1"), receives=6)) == []
    assert len(worker.queue.letters) == 1


async def asynchronous(job: Job, attempt: Attempt) -> object:
    return None


def test_D27_an_async_function_is_refused_when_it_is_registered() -> None:
    with pytest.raises(TypeError, match="async"):
        Operation("default", asynchronous)


def test_D29_a_job_sent_again_after_fifo_forgot_it_runs_once() -> None:
    worker = Worker()
    worker.handle(record("a", body("1"), group="g"))
    worker.clock.advance(seconds=360)
    assert worker.handle(record("b", body("1"), group="g")) == []
    assert worker.runs == ["1"]


def test_D30_expected_duplicates_are_no_errors(capsys: pytest.CaptureFixture[str]) -> None:
    handle = handler(answer_ok, backend=Backend.MEMORY)
    for receives in range(1, 6):
        handle(event(record("m", body("1"), receives=receives)), Context())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["level"] for line in lines if "level" in line} == {"INFO"}
    metrics: Counter[str] = Counter()
    for line in lines:
        metrics.update({name: sum(line[name]) for name in ("JobsExecuted", "JobsSkipped") if name in line})
    assert metrics == {"JobsExecuted": 1, "JobsSkipped": 4}


def test_D31_330_deliveries_of_one_fifo_message_make_one_effect() -> None:
    worker = Worker()
    for receives in range(1, 331):
        assert worker.handle(record("m", body("1"), group="g", receives=receives)) == []
    counts = Counter(type(trace.outcome) for trace in worker.events.traces)
    assert counts == {Executed: 1, Skipped: 329}
