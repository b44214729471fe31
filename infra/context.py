"""The command line's `-c name=value`, and `cdk.json`'s context, as `WorkerProps`. An unknown name is an error."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from infra.http_props import HttpProps
from infra.worker_props import Architecture, Stage, WorkerProps, WorkerPropsError

EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
STACK_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,90}")
KEY_ARN: Final = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/([0-9a-f-]{36}|mrk-[0-9a-f]{32})")

NOT_OURS: Final = re.compile(r"@aws-cdk|aws:|aws-cdk:|cdk:|[a-z-]+:account=|(tree-metadata|cli-telemetry)$")
"""CDK keeps feature flags and looked-up values beside ours."""

_OF_THE_STACK: Final = ("stack_name", "key_arn", "own_credentials", "clean_up_hours")
MOST_CLEAN_UP_HOURS: Final = 744


@dataclass(frozen=True, slots=True)
class Deployment:
    """What `cdk deploy` was told: the worker, and what concerns the stack alone."""

    props: WorkerProps
    stack_name: str | None = None
    key_arn: str | None = None
    own_credentials: bool = False
    http: HttpProps | None = None
    clean_up_hours: int | None = None


def deployment(context: Mapping[str, object]) -> Deployment:
    """Raises `WorkerPropsError`."""
    values = {name: value for name, value in context.items() if not NOT_OURS.match(name)}
    for name in values:
        if name not in _READERS:
            near = get_close_matches(name, _READERS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(_READERS))}"
            raise WorkerPropsError(f"unknown context value {name!r}: {hint}")
    told: dict[str, Any] = {}
    for name, value in values.items():
        field, read = _READERS[name]
        told[field] = read(name, str(value).strip())
    of_the_stack = {name: told.pop(name) for name in _OF_THE_STACK if name in told}
    http = _http(told)
    return Deployment(WorkerProps(**told), http=http, **of_the_stack)


def _http(told: dict[str, Any]) -> HttpProps | None:
    """Takes what concerns the HTTP API out of it."""
    wanted = told.pop("http", False)
    of_the_door = {
        name: told.pop(f"http_{name}") for name in ("timeout", "caller", "concurrency") if f"http_{name}" in told
    }
    if of_the_door and not wanted:
        raise WorkerPropsError(f"http-{min(of_the_door)} without http=true: there is no HTTP API")
    return HttpProps(**of_the_door) if wanted else None


def _whole(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise WorkerPropsError(f"{name}={text!r}: expected a whole number")
    return int(text)


def _text(_: str, text: str) -> str:
    return text


def _clean_up_hours(name: str, text: str) -> int:
    hours = _whole(name, text)
    if not 1 <= hours <= MOST_CLEAN_UP_HOURS:
        raise WorkerPropsError(f"{name}={text!r}: expected hours, 1 to {MOST_CLEAN_UP_HOURS}")
    return hours


def _flag(name: str, text: str) -> bool:
    known = {"true": True, "false": False}
    if text.lower() not in known:
        raise WorkerPropsError(f"{name}={text!r}: expected true or false")
    return known[text.lower()]


def _one_of(kind: type[Stage] | type[Architecture]) -> Callable[[str, str], object]:
    def read(name: str, text: str) -> object:
        if text not in list(kind):
            raise WorkerPropsError(f"{name}={text!r}: expected one of {', '.join(kind)}")
        return kind(text)

    return read


def _matching(pattern: re.Pattern[str], expected: str) -> Callable[[str, str], str]:
    def read(name: str, text: str) -> str:
        if not pattern.fullmatch(text):
            raise WorkerPropsError(f"{name}={text!r}: expected {expected}")
        return text

    return read


_READERS: Final[dict[str, tuple[str, Callable[[str, str], object]]]] = {
    "stage": ("stage", _one_of(Stage)),
    "architecture": ("architecture", _one_of(Architecture)),
    "fifo": ("fifo", _flag),
    "log-error-messages": ("log_error_messages", _flag),
    "own-credentials": ("own_credentials", _flag),
    "http": ("http", _flag),
    "http-timeout": ("http_timeout", _whole),
    "http-concurrency": ("http_concurrency", _whole),
    "http-caller": ("http_caller", _text),
    "alarm-email": ("alarm_email", _matching(EMAIL, "an e-mail address")),
    "namespace": ("namespace", _matching(NAME, "1 to 64 characters of A-Z a-z 0-9 _ -")),
    "active-region": ("active_region", _text),
    "queue-name": ("queue_name", _text),
    "stack-name": ("stack_name", _matching(STACK_NAME, "a letter, then letters, digits and -, 91 in all")),
    "key-arn": ("key_arn", _matching(KEY_ARN, "the ARN of a KMS key")),
    "clean-up": ("clean_up_hours", _clean_up_hours),
    "retention": ("retention_days", _whole),
    "queue-retention": ("queue_retention_days", _whole),
    "dead-letter-retention": ("dead_letter_retention_days", _whole),
    "log-retention": ("log_retention_days", _whole),
} | {
    field.replace("_", "-"): (field, _whole)
    for field in (
        "memory",
        "timeout",
        "margin",
        "grace",
        "job_concurrency",
        "job_seconds",
        "max_attempts",
        "batch_size",
        "batch_window",
        "concurrency",
        "reserved_concurrency",
        "visibility",
        "max_receives",
    )
}
