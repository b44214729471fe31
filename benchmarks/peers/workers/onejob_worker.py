"""onejob: the handler that is deployed, with the operation of the comparison. Runs in the project's own environment."""

import os
from typing import Any

from dependency_injector.providers import Object

from benchmarks.peers.workers.operation import RefusedError, note_answer, operate
from benchmarks.peers.workers.runtime import serve
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.operation import Operation, Operations
from domain.outcome import Executed, Outcome, Skipped
from entrypoints.container import Container
from entrypoints.sqs_worker import make_handler

os.environ |= {
    "IDEMPOTENCY_BACKEND": "dynamodb",
    "IDEMPOTENCY_TABLE": os.environ["PEER_TABLE"],
    "DEAD_LETTER_QUEUE_URL": os.environ["PEER_DEAD_LETTER_URL"],
    "DEADLINE_MARGIN_SECONDS": "3",
    "LEASE_GRACE_SECONDS": "0",
    "POWERTOOLS_LOG_LEVEL": "CRITICAL",
    "POWERTOOLS_METRICS_DISABLED": "true",
}


def body_of(job: Job) -> dict[str, Any]:
    return {"job_id": job.job_id, **job.payload}


def run(job: Job, attempt: Attempt) -> object:
    try:
        return operate(body_of(job), lost=attempt.lost)
    except RefusedError as error:
        raise PermanentError("refused") from error


class Watched:
    """The service, and what it answered."""

    def __init__(self, service: Any) -> None:
        self._service = service

    def process(self, job: Job, **delivery: Any) -> Outcome:
        outcome: Outcome = self._service.process(job, **delivery)
        if isinstance(outcome, Executed | Skipped):
            note_answer(body_of(job), outcome.answer.value)
        return outcome


if __name__ == "__main__":
    operations, container = Operations(Operation("default", run)), Container()
    container.operations.override(operations)
    container.service.override(Object(Watched(container.service())))
    serve(make_handler(operations, container), "onejob", "aws-lambda-powertools", "boto3")
