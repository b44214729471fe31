"""A worker process whose job `hung` never ends; run by test_sqs_worker.py and killed by it, as Lambda's time-out would.

Reads an SQS event from standard input; the environment holds its settings.
"""

import json
import sys
from threading import Event

from domain.attempt import Attempt
from domain.job import Job
from domain.operation import Operation, Operations
from entrypoints.sqs_worker import make_handler
from tests.support.sqs import Context


def run(job: Job, attempt: Attempt) -> object:
    if job.job_id == "hung":
        Event().wait()
    return {"done": job.job_id}


if __name__ == "__main__":
    make_handler(Operations(Operation("default", run)))(json.load(sys.stdin), Context(seconds=float(sys.argv[1])))
