"""Structured logs and metrics through Powertools: one line an outcome, and no payload value anywhere.

Logging is thread-safe, Powertools' metrics are not: values wait in a queue until the handler's own thread flushes.
"""

import json
import logging
import sys
from collections.abc import Callable, Sequence
from io import TextIOBase
from queue import Empty, SimpleQueue
from threading import Lock
from typing import IO, Any, Final, Protocol, assert_never, cast

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from adapters.error_place import places
from domain.errors import StoreUnavailableError, text_of
from domain.job import Job
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.events import Trace
from domain.record import Claim

SERVER_ERROR: Final = 500
METRICS_AT_ONCE: Final = 50
"""Values in one line; at 100 Powertools would print by itself."""

_LOUD: Final = {
    Failure.STORE_UNAVAILABLE: "StoreUnavailable",
    Failure.LEASE_LOST: "LeaseLost",
    Failure.COMPLETION_LOST: "CompletionLost",
    Failure.UNEXPECTED: "Unexpected",
}
"""Failures that an operator must look at, and the metric that an alarm watches."""

_OUR_ERRORS: Final = frozenset({Failure.STORE_UNAVAILABLE, Failure.COMPLETION_LOST})
"""Failures whose error onejob raised itself: its text holds no payload value."""

_LOG_WRITER: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, default=str)
_METRICS_WRITER: Final = json.JSONEncoder(separators=(",", ":"))

type Fields = dict[str, Any]


class Received(Protocol):
    """What is told of a message."""

    @property
    def message_id(self) -> str: ...
    @property
    def receives(self) -> int: ...


class PowertoolsTelemetry:
    """`JobEvents`, and what the doors tell beside it. With `error_messages` the texts of errors are logged too:
    they may hold payload values.
    """

    def __init__(
        self, *, error_messages: bool, service: str, metrics_namespace: str, metrics_enabled: bool = True
    ) -> None:
        self._error_messages = error_messages
        self._metrics_enabled = metrics_enabled
        self._service = service
        self._metrics_namespace = metrics_namespace
        Logger(service=service, stream=cast(IO[str], _StandardOutput()), location=None, json_serializer=_line)
        self._logger = logging.getLogger(service)  # which the line above has set up
        self._values: SimpleQueue[tuple[str, MetricUnit, float]] = SimpleQueue()
        self._flushing = Lock()
        self._metrics = self._new_metrics()
        """Only for who holds the lock: making another costs as much as filling it."""

    def finished(self, trace: Trace) -> None:
        job, outcome = trace.job, trace.outcome
        milliseconds = round(trace.duration.total_seconds() * 1000, 3)
        level, event, metric, fields = _described(outcome)
        self._log(
            level,
            event,
            **_identity(job),
            execution_id=trace.execution_id,
            attempt=trace.attempt,
            sqs_message_id=trace.delivery.message_id,
            receives=trace.delivery.receives,
            duration_ms=milliseconds,
            **fields,
            **self._error(trace.error, with_cause=fields.get("reason") in _OUR_ERRORS),
        )
        self._count(metric)
        match outcome:
            case Executed(answer):
                self._values.put(("JobDuration", MetricUnit.Milliseconds, milliseconds))
                if answer.omitted:
                    self._count("AnswerOmitted")
            case Failed(Failure.COMPLETION_LOST):
                # at once: the process may not live to flush
                self._emit([("CompletionLost", MetricUnit.Count, 1)], self._new_metrics())
            case Failed(reason) if reason in _LOUD:
                self._count(_LOUD[reason])

    def fingerprint_unverified(self, job: Job) -> None:
        self._log(logging.INFO, "fingerprint_unverified", **_identity(job))
        self._count("FingerprintUnverified")

    def release_failed(self, job: Job, error: Exception) -> None:
        self._log(logging.WARNING, "release_failed", **_identity(job), **self._error(error, with_cause=True))
        self._count("ReleaseFailed")

    def overdue(self, job: Job, claim: Claim) -> None:
        told = {"execution_id": claim.owner, "attempt": claim.attempt}
        self._log(logging.ERROR, "job_overdue", **_identity(job), **told)
        self._count("JobsOverdue")

    def rejected_unread(self, message: Received, job: Job | None, rejected: Rejected) -> None:
        level, event, metric, fields = _described(rejected)
        self._log(level, event, **_identity(job), **origin_of(message), **fields)
        self._count(metric)

    def test_event(self, message: Received) -> None:
        self._log(logging.INFO, "test_event_removed", **origin_of(message))
        self._count("TestEvents")

    def dead_letter_failed(self, message: Received, error: Exception) -> None:
        self._log(logging.ERROR, "burial_failed", **origin_of(message), cause=str(error))
        self._count("BurialFailed")

    def settling_failed(self, *, deletions: Sequence[str] = (), visibilities: Sequence[str] = ()) -> None:
        errors = sorted({*deletions, *visibilities})
        counts = {"deletions": len(deletions), "visibilities": len(visibilities)}
        self._log(logging.WARNING, "settling_failed", **counts, errors=errors)
        self._count("SettlingFailed", sum(counts.values()))

    def crashed(self, message: Received, error: Exception) -> None:
        self._log(logging.ERROR, "unexpected_error", **origin_of(message), **self._error(error))
        self._count("Unexpected")

    def no_time_to_start(self, message_count: int) -> None:
        mend = "raise the function's timeout or lower DEADLINE_MARGIN_SECONDS"
        self._log(logging.ERROR, "no_time_to_start", messages=message_count, mend=mend)
        self._count("Unexpected")

    def threads_refused(self, purpose: str, had: int) -> None:
        self._log(logging.ERROR, "threads_refused", purpose=purpose, threads=had)
        self._count("ThreadsRefused")

    def request_refused(self, status: int, reason: str, cause: str | None, error: BaseException | None) -> None:
        """An HTTP request was answered with a problem; from 500 on it is no fault of its caller's."""
        level = logging.ERROR if status >= SERVER_ERROR else logging.INFO
        told = {"cause": cause, **self._error(error, with_cause=True)}
        self._log(level, "request_refused", status=status, reason=reason, **told)
        if isinstance(error, StoreUnavailableError):
            self._count("StoreUnavailable")
        elif error is not None or cause is not None:
            self._count("Unexpected")

    def purged(self, deleted: int, seen: int, after: str | None, *, is_complete: bool) -> None:
        """A clean-up ended, at the end of the records or before; `after` is where to go on."""
        level, event = (logging.INFO, "records_purged") if is_complete else (logging.WARNING, "purge_unfinished")
        self._log(level, event, purged=deleted, seen=seen, after=after)

    def flush(self) -> None:
        """Emit the metrics gathered so far."""
        with self._flushing:
            while values := self._taken():
                self._emit(values, self._metrics)
                self._metrics.clear_metrics()

    def _taken(self) -> list[tuple[str, MetricUnit, float]]:
        values: list[tuple[str, MetricUnit, float]] = []
        try:
            while len(values) < METRICS_AT_ONCE:
                values.append(self._values.get_nowait())
        except Empty:
            pass
        return values

    def _new_metrics(self) -> EphemeralMetrics:
        return EphemeralMetrics(service=self._service, namespace=self._metrics_namespace)

    def _emit(self, values: list[tuple[str, MetricUnit, float]], metrics: EphemeralMetrics) -> None:
        if not self._metrics_enabled:
            return
        for name, unit, value in values:
            metrics.add_metric(name, unit, value)
        line = _METRICS_WRITER.encode(metrics.serialize_metric_set())
        sys.stdout.write(f"{line}\n")  # one write, so that no log line gets into it
        sys.stdout.flush()

    def _count(self, metric: str, number: int = 1) -> None:
        self._values.put((metric, MetricUnit.Count, number))

    def _log(self, level: int, event: str, **fields: Any) -> None:
        if self._logger.isEnabledFor(level):
            extra = {"event": event} | {name: _encodable(value) for name, value in fields.items() if value is not None}
            # made here, since `log` would look for the calling frame, which no line names
            self._logger.handle(self._logger.makeRecord(self._service, level, "", 0, event, (), None, extra=extra))

    def _error(self, error: BaseException | None, *, with_cause: bool = False) -> Fields:
        """Type and place of an error. Its text only if asked for, or as the cause where onejob itself wrote it."""
        if error is None:
            return {}
        fields: Fields = {"error_type": type(error).__name__, "error_at": places(error)}
        if with_cause and isinstance(error, StoreUnavailableError):
            fields["cause"] = text_of(error)
        if self._error_messages:
            fields["error_message"] = text_of(error)
        return fields


class _StandardOutput(TextIOBase):
    """Whatever is standard output when a line is written; Powertools would keep what it was when it started."""

    def write(self, text: str) -> int:
        return sys.stdout.write(_encoded(text, getattr(sys.stdout, "encoding", None)))

    def flush(self) -> None:
        sys.stdout.flush()


def _described(outcome: Outcome) -> tuple[int, str, str, Fields]:
    """Log level, event, metric, fields."""
    match outcome:
        case Executed(answer):
            omitted = {"answer_omitted": answer.omitted}
            return logging.INFO, "business_operation_executed", "JobsExecuted", omitted
        case Skipped():
            return logging.INFO, "job_skipped", "JobsSkipped", {}
        case Deferred(until):
            return logging.INFO, "job_deferred", "JobsDeferred", {"until": until.isoformat()}
        case Rejected():
            fields = {"reason": outcome.reason, "detail": outcome.detail or None, "last_error": outcome.error_type}
            return logging.WARNING, "job_rejected", "JobsRejected", fields
        case Failed(reason):
            level = logging.ERROR if reason in _LOUD else logging.WARNING
            return level, "job_failed", "JobsFailed", {"reason": reason}
        case _:
            assert_never(outcome)


def _line(record: Any) -> str:
    """The JSON of a log line, in printable characters: what a terminal obeys, hides or breaks a line at is escaped, as
    JSON escapes it, so that its value stays. C0 controls alone are escaped by any writer of JSON.
    """
    text = _LOG_WRITER.encode(record)
    return text if text.isprintable() else _escaped(text, str.isprintable)


def _encoded(text: str, encoding: str | None) -> str:
    """Lines of JSON that can be written in that encoding: what it lacks is escaped in the same way."""
    if text.isascii():
        return text
    try:
        text.encode(encoding or "utf-8")
    except UnicodeEncodeError:
        return _escaped(text, str.isascii)
    return text


def _escaped(line: str, stays: Callable[[str], bool]) -> str:
    return "".join(character if stays(character) else json.dumps(character)[1:-1] for character in line)


def _encodable(value: Any) -> Any:
    """Without lone surrogates, which would cost the whole line."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _identity(job: Job | None) -> Fields:
    return {} if job is None else {"job_id": job.job_id, "tenant": job.tenant, "operation": job.operation}


def origin_of(message: Received) -> Fields:
    """What a line tells of the message that it is about."""
    return {"sqs_message_id": message.message_id, "receives": message.receives}
