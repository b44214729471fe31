"""What operators read: one line an outcome, metrics that add up, and no payload value in either."""

import io
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from adapters.error_place import MAX_FRAMES
from adapters.sqs.message import Message
from adapters.sqs.ports import QueueUnavailableError
from adapters.telemetry import PowertoolsTelemetry
from domain.answer import Answer
from domain.delivery import Delivery
from domain.errors import ForeignRecordError, LeaseLostError, PermanentError, StoreUnavailableError
from domain.outcome import Deferred, Executed, Failed, Failure, Outcome, Rejected, Skipped
from domain.ports.events import Trace
from domain.record import Claim
from tests.support.jobs import job

SERVICE = "telemetry-test"
SECRET = "4111-1111-1111-1111"
UNTIL = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
JOB = job("job-001", tenant="acme", card=SECRET)
MESSAGE = Message("m-1", "receipt", f'{{"card":"{SECRET}"}}', "arn:aws:sqs:eu-west-1:1:jobs", receives=3)

IDENTITY = {"job_id": "job-001", "tenant": "acme", "operation": "default"}
ORIGIN = {"sqs_message_id": "m-1", "receives": 3}
RUN = IDENTITY | ORIGIN | {"execution_id": "run-1", "attempt": 2, "duration_ms": 1500.25}

type Fields = dict[str, Any]
type Call = Callable[[PowertoolsTelemetry], None]


@pytest.fixture(autouse=True)
def _no_settings_of_powertools(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POWERTOOLS_DEV", "POWERTOOLS_METRICS_DISABLED", "POWERTOOLS_LOG_LEVEL", "LOG_LEVEL"):
        monkeypatch.delenv(name, raising=False)


def telemetry(*, error_messages: bool = False, metrics_enabled: bool = True) -> PowertoolsTelemetry:
    return PowertoolsTelemetry(
        error_messages=error_messages,
        service=SERVICE,
        metrics_namespace="onejob-test",
        metrics_enabled=metrics_enabled,
    )


def trace(outcome: Outcome, error: BaseException | None = None, attempt: int | None = 2) -> Trace:
    duration = timedelta(seconds=1.50025)
    return Trace(JOB, Delivery(MESSAGE.receives, MESSAGE.message_id), "run-1", attempt, outcome, duration, error)


def told(capsys: pytest.CaptureFixture[str]) -> tuple[list[Fields], Counter[str]]:
    """The log lines, and the sum of each metric."""
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    sums: Counter[str] = Counter()
    for line in lines:
        for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"] if "_aws" in line else ():
            sums[metric["Name"]] += sum(line[metric["Name"]])
    return [line for line in lines if "_aws" not in line], sums


def raised(error: BaseException) -> Any:
    """The same, as caught: with a stack, a cause, and the secret in every place that a traceback would print."""
    try:
        card = SECRET
        try:
            raise KeyError(card)
        except KeyError as cause:
            error.add_note(card)
            raise error from cause
    except BaseException as caught:
        return caught


STACK_OF_RAISED = [f"{__file__}:{raised(ValueError()).__traceback__.tb_lineno} raised"]

OUTCOMES: list[tuple[Outcome, str, str, Fields, Fields]] = [
    (Executed(Answer('"x"')), "INFO", "business_operation_executed", {}, {"JobsExecuted": 1, "JobDuration": 1500.25}),
    (
        Executed(Answer("null", "too_large: 9 bytes")),
        "INFO",
        "business_operation_executed",
        {"answer_omitted": "too_large: 9 bytes"},
        {"JobsExecuted": 1, "JobDuration": 1500.25, "AnswerOmitted": 1},
    ),
    (Skipped(Answer('"x"')), "INFO", "job_skipped", {}, {"JobsSkipped": 1}),
    (Skipped(Answer("null", "too_large: 9 bytes")), "INFO", "job_skipped", {}, {"JobsSkipped": 1}),
    (Deferred(UNTIL), "INFO", "job_deferred", {"until": "2026-11-01T12:30:00+00:00"}, {"JobsDeferred": 1}),
    (Rejected("payload_mismatch"), "WARNING", "job_rejected", {"reason": "payload_mismatch"}, {"JobsRejected": 1}),
    (
        Rejected("attempts_exhausted", "killed or timed out", "KeyError", 6),
        "WARNING",
        "job_rejected",
        {"reason": "attempts_exhausted", "detail": "killed or timed out", "last_error": "KeyError"},
        {"JobsRejected": 1},
    ),
    *(
        (Failed(reason), level, "job_failed", {"reason": reason.value}, {"JobsFailed": 1} | metric)
        for reason, level, metric in (
            (Failure.OPERATION_RAISED, "WARNING", {}),
            (Failure.UNKNOWN_OPERATION, "WARNING", {}),
            (Failure.STORE_UNAVAILABLE, "ERROR", {"StoreUnavailable": 1}),
            (Failure.LEASE_LOST, "ERROR", {"LeaseLost": 1}),
            (Failure.COMPLETION_LOST, "ERROR", {"CompletionLost": 1}),
            (Failure.UNEXPECTED, "ERROR", {"Unexpected": 1}),
        )
    ),
]

OTHERS: list[tuple[str, Call, str, str, Fields, Fields]] = [
    (
        "fingerprint_unverified",
        lambda told: told.fingerprint_unverified(JOB),
        "INFO",
        "fingerprint_unverified",
        IDENTITY,
        {"FingerprintUnverified": 1},
    ),
    (
        "release_failed",
        lambda told: told.release_failed(JOB, raised(LeaseLostError(SECRET))),
        "WARNING",
        "release_failed",
        IDENTITY | {"error_type": "LeaseLostError", "error_at": STACK_OF_RAISED},
        {"ReleaseFailed": 1},
    ),
    (
        "overdue",
        lambda told: told.overdue(JOB, Claim(JOB.key, "run-1", 3)),
        "ERROR",
        "job_overdue",
        IDENTITY | {"execution_id": "run-1", "attempt": 3},
        {"JobsOverdue": 1},
    ),
    (
        "threads_refused",
        lambda told: told.threads_refused("jobs", 2),
        "ERROR",
        "threads_refused",
        {"purpose": "jobs", "threads": 2},
        {"ThreadsRefused": 1},
    ),
    (
        "rejected_unread",
        lambda told: told.rejected_unread(MESSAGE, JOB, Rejected("stale")),
        "WARNING",
        "job_rejected",
        IDENTITY | ORIGIN | {"reason": "stale"},
        {"JobsRejected": 1},
    ),
    (
        "rejected_unread",
        lambda told: told.rejected_unread(MESSAGE, None, Rejected("not_json", "at character 19")),
        "WARNING",
        "job_rejected",
        ORIGIN | {"reason": "not_json", "detail": "at character 19"},
        {"JobsRejected": 1},
    ),
    (
        "purged",
        lambda told: told.purged(3, 9, None, is_complete=True),
        "INFO",
        "records_purged",
        {"purged": 3, "seen": 9},
        {},
    ),
    (
        "purged",
        lambda told: told.purged(3, 9, "KEY", is_complete=False),
        "WARNING",
        "purge_unfinished",
        {"purged": 3, "seen": 9, "after": "KEY"},
        {},
    ),
    (
        "request_refused",
        lambda told: told.request_refused(422, "key_reused", None, None),
        "INFO",
        "request_refused",
        {"status": 422, "reason": "key_reused"},
        {},
    ),
    (
        "request_refused",
        lambda told: told.request_refused(503, "queue_unavailable", "AccessDenied", None),
        "ERROR",
        "request_refused",
        {"status": 503, "reason": "queue_unavailable", "cause": "AccessDenied"},
        {"Unexpected": 1},
    ),
    (
        "request_refused",
        lambda told: told.request_refused(503, "store_unavailable", None, raised(StoreUnavailableError("Throttled"))),
        "ERROR",
        "request_refused",
        {
            "status": 503,
            "reason": "store_unavailable",
            "cause": "Throttled",
            "error_type": "StoreUnavailableError",
            "error_at": STACK_OF_RAISED,
        },
        {"StoreUnavailable": 1},
    ),
    (
        "request_refused",
        lambda told: told.request_refused(500, "unexpected", None, raised(RuntimeError(SECRET))),
        "ERROR",
        "request_refused",
        {"status": 500, "reason": "unexpected", "error_type": "RuntimeError", "error_at": STACK_OF_RAISED},
        {"Unexpected": 1},
    ),
    (
        "test_event",
        lambda told: told.test_event(MESSAGE),
        "INFO",
        "test_event_removed",
        ORIGIN,
        {"TestEvents": 1},
    ),
    (
        "dead_letter_failed",
        lambda told: told.dead_letter_failed(MESSAGE, raised(QueueUnavailableError("SQS SendMessage: Throttled"))),
        "ERROR",
        "burial_failed",
        ORIGIN | {"cause": "SQS SendMessage: Throttled"},
        {"BurialFailed": 1},
    ),
    (
        "settling_failed",
        lambda told: told.settling_failed(deletions=["B", "A"], visibilities=["A"] * 3),
        "WARNING",
        "settling_failed",
        {"deletions": 2, "visibilities": 3, "errors": ["A", "B"]},
        {"SettlingFailed": 5},
    ),
    (
        "crashed",
        lambda told: told.crashed(MESSAGE, raised(RuntimeError(SECRET))),
        "ERROR",
        "unexpected_error",
        ORIGIN | {"error_type": "RuntimeError", "error_at": STACK_OF_RAISED},
        {"Unexpected": 1},
    ),
    (
        "no_time_to_start",
        lambda told: told.no_time_to_start(7),
        "ERROR",
        "no_time_to_start",
        {"messages": 7, "mend": "raise the function's timeout or lower DEADLINE_MARGIN_SECONDS"},
        {"Unexpected": 1},
    ),
]


def line(level: str, event: str, fields: Fields) -> Fields:
    return {"level": level, "message": event, "event": event, "service": SERVICE} | fields


# Lines and metrics.


@pytest.mark.parametrize(("outcome", "level", "event", "fields", "metrics"), OUTCOMES)
def test_an_outcome_is_one_line_and_its_metrics(
    outcome: Outcome, level: str, event: str, fields: Fields, metrics: Fields, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = telemetry()
    telling.finished(trace(outcome))
    telling.flush()
    (logged,), counted = told(capsys)
    assert logged.pop("timestamp")
    assert logged == line(level, event, RUN | fields)
    assert counted == metrics


@pytest.mark.parametrize(("_name", "call", "level", "event", "fields", "metrics"), OTHERS)
def test_whatever_else_happens_is_one_line_and_its_metric(
    _name: str,
    call: Call,
    level: str,
    event: str,
    fields: Fields,
    metrics: Fields,
    capsys: pytest.CaptureFixture[str],
) -> None:
    telling = telemetry()
    call(telling)
    telling.flush()
    (logged,), counted = told(capsys)
    assert logged.pop("timestamp")
    assert logged == line(level, event, fields)
    assert counted == metrics


def test_where_nothing_was_claimed_there_is_no_attempt(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry().finished(trace(Failed(Failure.UNKNOWN_OPERATION), attempt=None))
    (logged,), _ = told(capsys)
    assert "attempt" not in logged


def test_a_field_does_not_outlive_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    telling.finished(trace(Failed(Failure.OPERATION_RAISED), raised(ValueError())))
    telling.test_event(MESSAGE)
    (_, logged), _ = told(capsys)
    assert logged.keys() == {"level", "message", "timestamp", "service", "event", *ORIGIN}


def test_two_of_one_service_do_not_double_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry()
    telemetry().test_event(MESSAGE)
    logs, _ = told(capsys)
    assert len(logs) == 1


def test_a_standard_output_that_is_replaced_later_is_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    with redirect_stdout(io.StringIO()) as replaced:
        telling.test_event(MESSAGE)
        telling.flush()
    assert [("_aws" in json.loads(line)) for line in replaced.getvalue().splitlines()] == [False, True]
    assert capsys.readouterr() == ("", "")


HOSTILE = {
    "a C1 control": "\u009b2J",
    "delete": "\x7f",
    "a bidi override": "a\u202etxt.exe",
    "a bidi isolate": "\u2066x\u2069",
    "a mark of direction": "\u200f",
    "a zero-width character": "a\u200bb",
    "line separators": "a\u2028{}\u2029\u0085",
    "controls": "\x1b[2J\r\n\x00",
    "a tag beyond 16 bits": "\U000e0041",
    "a lone surrogate": "\ud800",
    "a blank that is none": "\u00a0",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nothing_that_a_terminal_obeys_or_hides_gets_into_a_line_and_its_value_stays(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = telemetry(error_messages=True)
    told_of = Message(text, "receipt", "{}", "arn:aws:sqs:eu-west-1:1:jobs")
    telling.finished(trace(Failed(Failure.OPERATION_RAISED), raised(ValueError(text))))
    telling.finished(trace(Rejected(text, text)))
    telling.test_event(told_of)
    telling.settling_failed(deletions=[text])
    telling.request_refused(500, text, text, None)
    lines = capsys.readouterr().out.split("\n")
    assert all(line.isprintable() for line in lines)
    failed, rejected, test_event, settling, refused = map(json.loads, lines[:-1])
    readable = text.encode(errors="backslashreplace").decode()
    assert (failed["error_message"], rejected["reason"], rejected["detail"]) == (readable,) * 3
    assert (test_event["sqs_message_id"], refused["reason"], refused["cause"]) == (readable,) * 3
    assert settling["errors"] == [text]


def test_letters_of_all_languages_stay_letters(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry().finished(trace(Rejected("größe: 量 😀")))
    assert '"reason":"größe: 量 😀"' in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_a_line_is_whole_on_an_output_that_cannot_show_it(encoding: str) -> None:
    output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with redirect_stdout(output):
        telemetry().finished(trace(Rejected("größe: 量 😀")))
        telemetry().flush()
    output.seek(0)
    assert json.loads(output.readline())["reason"] == "größe: 量 😀"


# Errors, and what is never told.


def test_an_error_is_told_by_its_type_and_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry().finished(trace(Failed(Failure.OPERATION_RAISED, "ValueError"), raised(ValueError(SECRET))))
    (logged,), _ = told(capsys)
    assert (logged["error_type"], logged["error_at"]) == ("ValueError", STACK_OF_RAISED)
    assert not {"error_message", "cause", "exception", "stack_trace"} & logged.keys()


def test_a_deep_stack_is_told_from_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        raise RecursionError

    with pytest.raises(RecursionError) as caught:
        deep(30)
    telemetry().crashed(MESSAGE, caught.value)
    (logged,), _ = told(capsys)
    places = [place.rpartition(" ") for place in logged["error_at"]]
    assert [name for _, _, name in places] == ["deep"] * MAX_FRAMES
    assert places[-1][0] == f"{__file__}:{deep.__code__.co_firstlineno + 3}"


@pytest.mark.parametrize("error", [StoreUnavailableError, ForeignRecordError])
def test_the_cause_of_an_unavailable_store_is_told_since_onejob_wrote_it(
    error: type[StoreUnavailableError], capsys: pytest.CaptureFixture[str]
) -> None:
    cause = error("DynamoDB UpdateItem: Throttled")
    telemetry().finished(trace(Failed(Failure.STORE_UNAVAILABLE, error.__name__), cause))
    (logged,), _ = told(capsys)
    assert (logged["error_type"], logged["cause"]) == (error.__name__, "DynamoDB UpdateItem: Throttled")


@pytest.mark.parametrize("asked", [True, False])
def test_the_text_of_an_error_is_told_only_if_asked_for(asked: bool, capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry(error_messages=asked)
    telling.finished(trace(Failed(Failure.OPERATION_RAISED), raised(ValueError("out of stock"))))
    telling.crashed(MESSAGE, raised(ValueError("out of stock")))
    telling.release_failed(JOB, raised(ValueError("out of stock")))
    logs, _ = told(capsys)
    assert [logged.get("error_message") for logged in logs] == ["out of stock" if asked else None] * 3


def test_no_payload_value_is_ever_told(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    kinds = (ValueError, OSError, SystemExit, PermanentError, LeaseLostError)
    errors = (None, *(raised(kind(SECRET)) for kind in kinds))
    try:
        raise ValueError(SECRET)
    except ValueError:  # where a logger would find it by itself
        for outcome, *_ in OUTCOMES:
            for error in errors:
                telling.finished(trace(outcome, error))
        for kind in (Executed, Skipped):
            telling.finished(trace(kind(Answer(f'"{SECRET}"'))))
        for _, call, *_ in OTHERS:
            call(telling)
        telling.flush()
    output = capsys.readouterr()
    assert SECRET not in output.out
    assert output.err == ""
    assert len(output.out.splitlines()) > len(OUTCOMES) * len(errors)


def test_these_tests_call_every_method() -> None:
    public = {name for name in vars(PowertoolsTelemetry) if not name.startswith("_")}
    assert public == {"finished", "flush", *(name for name, *_ in OTHERS)}


# Metrics.


def test_metrics_are_in_the_embedded_format_under_namespace_and_service(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    telling.finished(trace(Executed(Answer("1"))))
    capsys.readouterr()
    telling.flush()
    (emitted,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert emitted["_aws"]["CloudWatchMetrics"] == [
        {
            "Namespace": "onejob-test",
            "Dimensions": [["service"]],
            "Metrics": [{"Name": "JobsExecuted", "Unit": "Count"}, {"Name": "JobDuration", "Unit": "Milliseconds"}],
        }
    ]
    assert emitted["service"] == SERVICE


def test_metrics_wait_for_the_flush_and_are_emitted_once(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    telling.test_event(MESSAGE)
    assert told(capsys)[1] == {}
    telling.flush()
    assert told(capsys)[1] == {"TestEvents": 1}
    telling.flush()
    assert capsys.readouterr() == ("", "")


def test_nothing_counted_emits_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry().flush()
    assert capsys.readouterr() == ("", "")


def test_a_lost_completion_is_emitted_at_once_since_the_process_may_not_live_to_flush(
    capsys: pytest.CaptureFixture[str],
) -> None:
    telling = telemetry()
    telling.finished(trace(Failed(Failure.COMPLETION_LOST)))
    assert told(capsys)[1] == {"CompletionLost": 1}
    telling.flush()
    assert told(capsys)[1] == {"JobsFailed": 1}


def test_metrics_from_many_threads_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    done, lost = trace(Executed(Answer("null", "too_large"))), trace(Failed(Failure.COMPLETION_LOST))
    with ThreadPoolExecutor(16) as threads:
        for number in range(700):
            threads.submit(telling.finished, lost if number % 7 == 0 else done)
            if number % 50 == 0:
                threads.submit(telling.flush)
    telling.flush()
    logs, counted = told(capsys)
    assert len(logs) == 700
    assert counted == {
        "JobsExecuted": 600,
        "AnswerOmitted": 600,
        "JobDuration": 600 * 1500.25,
        "JobsFailed": 100,
        "CompletionLost": 100,
    }


def test_a_line_holds_no_more_values_than_cloudwatch_takes(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry()
    for _ in range(250):
        telling.test_event(MESSAGE)
    capsys.readouterr()
    telling.flush()
    numbers = [len(json.loads(line)["TestEvents"]) for line in capsys.readouterr().out.splitlines()]
    assert sum(numbers) == 250
    assert max(numbers) <= 100


def test_metrics_can_be_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry(metrics_enabled=False)
    telling.finished(trace(Failed(Failure.COMPLETION_LOST)))
    telling.flush()
    logs, counted = told(capsys)
    assert len(logs) == 1
    assert counted == {}


def test_a_store_error_that_an_operation_raised_is_not_ours_and_keeps_its_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    telemetry().finished(
        trace(Failed(Failure.OPERATION_RAISED, "StoreUnavailableError"), StoreUnavailableError(SECRET))
    )
    assert SECRET not in capsys.readouterr().out


class Mute(Exception):  # noqa: N818
    def __str__(self) -> str:
        raise RuntimeError(SECRET)


def test_an_error_without_a_text_does_not_break_the_telling(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry(error_messages=True)
    telling.finished(trace(Failed(Failure.OPERATION_RAISED, "Mute"), Mute()))
    telling.crashed(MESSAGE, Mute())
    logs, _ = told(capsys)
    assert [line["error_message"] for line in logs] == ["no text: RuntimeError"] * 2


def test_a_lone_surrogate_costs_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    telling = telemetry(error_messages=True)
    telling.finished(trace(Rejected("a\ud800", "b\udfff"), ValueError("c\ud800")))
    (logged,), _ = told(capsys)
    assert (logged["reason"], logged["detail"], logged["error_message"]) == ("a\\ud800", "b\\udfff", "c\\ud800")
