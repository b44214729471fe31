"""What bare Powertools idempotency does (3.37): the facts that the README's comparison rests on, each beside ours."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.exceptions import BatchProcessingError
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer

from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.outcome import Skipped
from tests.support.aws import TABLE, in_process
from tests.support.aws_faults import aws_requests
from tests.support.decorated import Run, decorated, items, lapse
from tests.support.sqs import Context, Worker, event, record
from tests.support.worker import handler

MESSAGE = {"job_id": "1"}
BODY = '{"job_id":"1"}'


@pytest.fixture(autouse=True)
def _aws() -> Iterator[None]:
    with in_process():
        yield


def bare(run: Run) -> Callable[..., Any]:
    return decorated(run, DynamoDBPersistenceLayer(TABLE))


@pytest.mark.parametrize("error", [None, OSError()])
def test_a_late_worker_overwrites_or_deletes_the_record_of_another(error: Exception | None) -> None:
    """Ours: test_bare_decorator.py and the stores' contract."""

    def outlived(message: dict[str, Any]) -> object:
        lapse()
        assert bare(lambda message: "theirs")(message=message) == "theirs"
        if error:
            raise error
        return "late"

    if error is None:
        bare(outlived)(message=MESSAGE)
        assert items()[0]["data"] == '"late"'
    else:
        with pytest.raises(OSError):  # noqa: PT011
            bare(outlived)(message=MESSAGE)
        assert items() == []


@pytest.mark.parametrize("falsy", [{}, [], 0, "", False])
def test_a_falsy_result_replays_as_none(falsy: object) -> None:
    function = bare(lambda message: falsy)
    assert function(message=MESSAGE) == falsy
    assert function(message=MESSAGE) is None
    worker = Worker(lambda job, attempt: falsy)
    worker.handle(record("a", BODY), record("b", BODY))
    assert worker.events.traces[1].outcome == Skipped(Answer.of(falsy, None))


def test_a_message_without_its_key_runs_unprotected_each_time() -> None:
    runs: list[object] = []
    function = bare(runs.append)
    with pytest.warns(UserWarning, match="No idempotency key value found"):
        function(message={"amount": 5})
    with pytest.warns(UserWarning, match="No idempotency key value found"):
        function(message={"amount": 5})
    assert len(runs) == 2
    worker = Worker()
    worker.handle(record("a", '{"amount":5}'))
    assert worker.runs == []


def test_another_payload_gets_the_first_result_by_default() -> None:
    function = bare(lambda message: message["amount"])
    assert function(message={"job_id": "1", "amount": 10}) == 10
    assert function(message={"job_id": "1", "amount": 9999}) == 10


def in_batch(run: Run, *records: dict[str, Any]) -> Any:
    processor = BatchProcessor(event_type=EventType.SQS)
    function = bare(run)
    return process_partial_response(
        event=event(*records),
        record_handler=lambda record: function(message=record.json_body),
        processor=processor,
        context=cast(Any, Context()),
    )


def fail(message: dict[str, Any]) -> object:
    raise OSError


def test_the_batch_processor_raises_when_all_fail() -> None:
    with pytest.raises(BatchProcessingError):
        in_batch(fail, record("a", BODY))


def test_a_duplicate_of_a_running_job_is_a_failure_that_nothing_defers() -> None:
    def beside(message: dict[str, Any]) -> object:
        with aws_requests() as requests, pytest.raises(BatchProcessingError):
            in_batch(lambda message: "x", record("b", BODY))
        assert requests.count == {"PutItem": 1}
        return "first"

    assert in_batch(beside, record("a", BODY)) == {"batchItemFailures": []}


def test_a_permanent_error_uses_up_every_receive() -> None:
    runs: list[object] = []

    def refuse(message: dict[str, Any]) -> object:
        runs.append(message)
        raise PermanentError("card_expired")

    for receives in range(1, 6):
        with pytest.raises(BatchProcessingError):
            in_batch(refuse, record("a", BODY, receives=receives))
    assert len(runs) == 5

    def reject(job: Job, attempt: Attempt) -> object:
        raise PermanentError("card_expired")

    worker = Worker(reject)
    assert worker.handle(record("a", BODY)) == []
    assert len(worker.queue.letters) == 1


def test_the_records_of_a_batch_run_past_the_deadline() -> None:
    runs: list[object] = []

    class NoTime(Context):
        def get_remaining_time_in_millis(self) -> int:
            return 0

    processor = BatchProcessor(event_type=EventType.SQS)
    process_partial_response(
        event=event(record("a", BODY)),
        record_handler=lambda record: runs.append(record),
        processor=processor,
        context=cast(Any, NoTime()),
    )
    assert len(runs) == 1
    ours: list[object] = []
    handle = handler(lambda job, attempt: ours.append(job))
    assert handle(event(record("a", BODY)), NoTime()) == {"batchItemFailures": [{"itemIdentifier": "a"}]}
    assert ours == []
