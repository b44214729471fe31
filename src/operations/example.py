"""The operation of jobs that name none: replace it with yours."""

from domain.attempt import Attempt
from domain.job import Job


def run_business_operation(job: Job, attempt: Attempt) -> object:
    """Do the work of one job and return its answer. Runs once; every later delivery gets the stored answer.

    Raise `PermanentError` before any effect for what no retry can mend; any other exception is tried again.
    """
    return {"job_id": job.job_id, "execution_id": attempt.execution_id}
