"""Handle HTTP requests: run a job, or send it to a queue, and answer. Lambda and SQS are not known here."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol
from urllib.parse import unquote

from adapters.http.headers import KEY, prefers_async
from adapters.http.identity import ANONYMOUS, tenant_of
from adapters.http.problems import (
    BAD_REQUEST,
    FAILED,
    KEY_REUSED,
    NOT_FOUND,
    TOO_LARGE,
    UNAVAILABLE,
    UNKNOWN_OPERATION,
    HttpProblemError,
    ProblemType,
    problem_response,
)
from adapters.http.request import HttpRequest
from adapters.http.response import Response
from adapters.http.responses import (
    OUTAGE,
    accepted_response,
    answer_response,
    outcome_response,
    retry_after,
    status_response,
    store_unavailable,
)
from domain.delivery import Delivery
from domain.errors import InvalidJobError, StoreUnavailableError
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.ports.clock import Clock
from domain.ports.store import IdempotencyStore
from domain.record import Completed, Mismatch, Record, judge
from domain.service import Process
from domain.strict_json import Json

PERHAPS_SENT: Final = "The job may be in the queue all the same. Send the same request again after `Retry-After`."


class JobSender(Protocol):
    """A queue that a worker reads."""

    def body(self, message: dict[str, Json]) -> str:
        """Return the text that is sent for this message. Raises `InvalidJobError` if the queue does not take it."""
        ...

    def send(self, body: str, job: Job) -> str | None:
        """Send the message of this job, so that no tenant's jobs wait behind another's. It may arrive twice.

        Answers the error's name if it was not sent, or may not have been.
        """
        ...


class HttpEvents(Protocol):
    """What operators hear beside the jobs. Same rules as `JobEvents`."""

    def request_refused(self, status: int, reason: str, cause: str | None, error: BaseException | None) -> None:
        """A request was answered with a problem; `cause` and `error` tell what stood behind it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpHandler:
    """`grace` is added to each lease for clocks that differ. Without `sender` every request is answered at once.

    `claim` is the JWT's member that tells callers apart; `anonymous` lets in who has no identity.
    """

    factory: JobFactory
    operations: Operations
    process: Process
    store: IdempotencyStore
    sender: JobSender | None
    events: HttpEvents
    clock: Clock
    grace: timedelta
    claim: str
    anonymous: bool

    def submit(self, request: HttpRequest, *, invocation_end: datetime) -> Response:
        """`POST /jobs`. Does not raise for a request."""
        try:
            read = partial(request.message, self._tenant(request), self.factory.default_operation)
            job = self._job(read)
            if self.operations.find(job.operation) is None:
                raise HttpProblemError(UNKNOWN_OPERATION)
            if self.sender is not None and prefers_async(request.headers.get("prefer")):
                return self._enqueue(self.sender, job, read(), request.base)
            lease = invocation_end + self.grace - self.clock.now()
            outcome = self.process(job, lease=lease, deadline=invocation_end, delivery=Delivery(counts_runs=False))
            return outcome_response(outcome, self.clock.now())
        except HttpProblemError as problem:
            return self._problem(problem, request)

    def status(self, request: HttpRequest) -> Response:
        """`GET /jobs/{id}`: what is known of the caller's own job. Does not raise for a request."""
        try:
            job_id = unquote(request.path.removeprefix("/jobs/"))
            if not KEY.fullmatch(job_id):
                raise HttpProblemError(NOT_FOUND)
            operation = request.operation(self.factory.default_operation)
            tenant = self._tenant(request)
            job = self._job(lambda: {"job_id": job_id, "operation": operation, "tenant": tenant})
            record, now = self._ask_store(job), self.clock.now()
            if record is None or record.retention_is_over(now):
                raise HttpProblemError(NOT_FOUND)
            return status_response(job_id, record, now)
        except HttpProblemError as problem:
            return self._problem(problem, request)

    def refuse(self, request: HttpRequest, kind: ProblemType, headers: dict[str, str] | None = None) -> Response:
        """Answer a request that is none of these with a problem."""
        return self._problem(HttpProblemError(kind, headers=headers or {}), request)

    def failed(self, request: HttpRequest, error: Exception) -> Response:
        """What nobody foresaw broke."""
        problem = HttpProblemError(FAILED, "unexpected")
        problem.__cause__ = error
        return self._problem(problem, request)

    def _enqueue(self, sender: JobSender, job: Job, message: dict[str, Json], base: str) -> Response:
        """What is done already, or asked for otherwise, is answered at once; a worker sees to all else."""
        try:
            body = sender.body(message)
        except InvalidJobError as refused:
            raise HttpProblemError(TOO_LARGE, refused.reason, refused.detail) from None
        match judge(self._ask_store(job), job, "", self.clock.now()):
            case Completed(answer):
                return answer_response(answer, replayed=True)
            case Mismatch():
                raise HttpProblemError(KEY_REUSED)
        if error := sender.send(body, job):
            raise HttpProblemError(UNAVAILABLE, "queue_unavailable", PERHAPS_SENT, retry_after(OUTAGE), error)
        return accepted_response(job, base)

    def _ask_store(self, job: Job) -> Record | None:
        try:
            record = self.store.find(job.key)
        except StoreUnavailableError as error:
            raise store_unavailable() from error
        if record is not None and record.job_id not in (None, job.job_id):
            raise store_unavailable()
        return record

    def _tenant(self, request: HttpRequest) -> str:
        if self.anonymous and request.authorizer is None:
            return ANONYMOUS
        return tenant_of(request.authorizer, self.claim)

    def _job(self, read: Callable[[], Json]) -> Job:
        try:
            return self.factory.waiting_job(read)
        except InvalidJobError as error:
            raise HttpProblemError(BAD_REQUEST, error.reason, error.detail or None) from None

    def _problem(self, problem: HttpProblemError, request: HttpRequest) -> Response:
        reason = problem.reason or problem.type.name
        self.events.request_refused(problem.type.status, reason, problem.cause, problem.__cause__)
        return problem_response(problem, request.base)
