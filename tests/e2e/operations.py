"""Stands in the place of `src/operations/__init__.py` in the deployed project: operations that behave and misbehave."""

from threading import Event

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.operation import DEFAULT_OPERATION, Operation, Operations


def run_business_operation(job: Job, attempt: Attempt) -> object:
    return {"job_id": job.job_id, "execution_id": attempt.execution_id}


def slow(job: Job, attempt: Attempt) -> object:
    """Long enough for a duplicate to meet it, short enough for the time-out."""
    Event().wait(2)
    return "slow"


def hangs_once(job: Job, attempt: Attempt) -> object:
    """The first attempt is ended by Lambda's time-out."""
    if attempt.number == 1:
        Event().wait()
    return {"attempt": attempt.number}


def fails_once(job: Job, attempt: Attempt) -> object:
    if attempt.number == 1:
        raise ConnectionError("not today")
    return {"attempt": attempt.number}


def refuses(job: Job, attempt: Attempt) -> object:
    raise PermanentError("account_closed", "account: closed")


OPERATIONS = Operations(
    Operation(DEFAULT_OPERATION, run_business_operation),
    Operation("slow", slow),
    Operation("hangs_once", hangs_once),
    Operation("fails_once", fails_once),
    Operation("refuses", refuses),
)
