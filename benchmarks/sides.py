"""The handlers that are compared, each made as Lambda would make it, and the events that they get."""

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import Any
from uuid import uuid4

type Handle = Callable[[Any, Any], Any]

QUEUE = "arn:aws:sqs:us-east-1:000000000000:jobs"
_run = uuid4().hex[:8]
"""Of this process: several may share a table."""

_numbers = count(1)


class Context:
    """Lambda's context, as far as it is asked."""

    aws_request_id = "request-1"
    function_name = "worker"
    function_version = "$LATEST"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:worker"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def environment(url: str, concurrency: int = 10) -> dict[str, str]:
    """Of the function, in a region whose endpoint is the stand-in."""
    return {
        "AWS_ACCESS_KEY_ID": "t",
        "AWS_SECRET_ACCESS_KEY": "t",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_ENDPOINT_URL": url,
        "AWS_LAMBDA_FUNCTION_NAME": "worker",
        "IDEMPOTENCY_TABLE": "records",
        "JOB_CONCURRENCY": str(concurrency),
    }


def enter(url: str, concurrency: int = 10) -> None:
    """Make this process the function's. What handlers print goes nowhere."""
    os.environ.update(environment(url, concurrency))
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)


def onejob() -> Handle:
    """The product's handler over `work`."""
    from benchmarks.work import work
    from domain.attempt import Attempt
    from domain.job import Job
    from domain.operation import Operation, Operations
    from entrypoints.sqs_worker import make_handler

    def run(job: Job, attempt: Attempt) -> object:
        return work(job.payload)

    return make_handler(Operations(Operation("default", run)))


def bare(module: str = "bare") -> Handle:
    """A bare handler. That it raises when all records fail is how it answers."""
    from aws_lambda_powertools.utilities.batch.exceptions import BatchProcessingError

    inner: Handle = import_module(f"benchmarks.{module}").handler

    def handle(event: Any, context: Any) -> Any:
        with suppress(BatchProcessingError):
            return inner(event, context)
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in event["Records"]]}

    return handle


def side(name: str) -> Handle:
    """`onejob`, `bare` or `bare_logged`."""
    return onejob() if name == "onejob" else bare(name)


def messages(number: int, **payload: Any) -> list[dict[str, Any]]:
    """Records of new jobs, as Lambda hands them over."""
    return [_record(f"{_run}-{next(_numbers):08}", payload) for _ in range(number)]


def _record(job_id: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "messageId": job_id,
        "receiptHandle": f"handle-{job_id}",
        "body": json.dumps({"job_id": job_id, **payload}),
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "4102444800000"},
        "messageAttributes": {},
        "md5OfBody": "",
        "eventSource": "aws:sqs",
        "eventSourceARN": QUEUE,
        "awsRegion": "us-east-1",
    }


def events(records: list[dict[str, Any]], batch: int) -> Iterator[dict[str, Any]]:
    """In batches."""
    for start in range(0, len(records), batch):
        yield {"Records": records[start : start + batch]}


def redelivered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same messages, received once more."""
    return [{**record, "attributes": {**record["attributes"], "ApproximateReceiveCount": "2"}} for record in records]


def all_done(handle: Handle, batches: Iterator[dict[str, Any]]) -> None:
    """Handle, and see that nothing failed."""
    for event in batches:
        answer = handle(event, Context())
        assert answer == {"batchItemFailures": []}, answer


def fresh[T](function: Callable[..., T], *arguments: Any) -> T:
    """What a function answers in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
