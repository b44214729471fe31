"""The default operation, as a function: no queue, no store."""

from datetime import UTC, datetime

from domain.attempt import Attempt
from operations import OPERATIONS
from operations.example import run_business_operation
from tests.support.jobs import job


def test_the_default_operation_answers_with_job_and_execution() -> None:
    default = OPERATIONS.find("default")
    assert default is not None
    assert default.run is run_business_operation
    attempt = Attempt(1, "run-1", datetime.now(UTC), lambda: False, job().key)
    assert default.run(job("job-001"), attempt) == {"job_id": "job-001", "execution_id": "run-1"}
