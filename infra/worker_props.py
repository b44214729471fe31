"""What a worker is made of, checked as a whole: a combination that would lose, delay or repeat work is refused by name.

Knows nothing of CDK. The names in the messages are the context values of `infra/context.py` (`-c timeout=60`).
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Final

from entrypoints.settings import LONGEST_REQUEST_SECONDS

DAY: Final = 86_400
VISIBILITY_PER_TIMEOUT: Final = 6
"""AWS: "at least six times the timeout that you configure on your function", plus the batching window."""
WORKER_MB: Final = 128
"""The interpreter, the SDK and the event, in MB. Measured: 68 when the handler and both clients are built."""
BODY_MB: Final = 20
"""A payload with as many values as one may have (`benchmarks/memory.py`). One more is read at a time for its key."""
BATCH_MB: Final = 150
"""The payloads of one event: Lambda's has 6 MB at most, and small values take 25 times their text."""
LEAST_RECEIVES: Final = 20
"""A receive is not an attempt: deferrals, late starts and throttled invocations use them up too."""
LONGEST_VISIBILITY: Final = 43_200
LONGEST_QUEUE_RETENTION_DAYS: Final = 14
LOG_RETENTION_DAYS: Final = frozenset(
    {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}
)
"""What CloudWatch Logs takes."""


class WorkerPropsError(ValueError):
    """A value, or a combination of two, that no worker should be deployed with. The text names them."""


class Stage(StrEnum):
    """What becomes of the data when the stack is destroyed."""

    DEV = "dev"
    PROD = "prod"


class Architecture(StrEnum):
    """The function's processor."""

    ARM64 = "arm64"
    X86_64 = "x86_64"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProps:
    """One worker. Times are whole seconds unless a name says days. Raises `WorkerPropsError`.

    `queue_name` is the source queue's, without `.fifo`: the dead-letter queue then takes what SQS moves from it alone.
    `job_seconds` is what a job usually takes; batches that cannot be worked off in time are refused by it.
    `active_region` is the one whose worker runs, where regions share a table: in any other the mapping is disabled.
    """

    stage: Stage = Stage.DEV
    service: str = "onejob"
    namespace: str = "onejob"
    fifo: bool = False
    active_region: str | None = None
    queue_name: str | None = None
    architecture: Architecture = Architecture.ARM64
    memory: int = 512
    timeout: int = 60
    margin: int = 5
    grace: int = 30
    job_concurrency: int = 10
    job_seconds: int = 1
    max_attempts: int = 5
    log_error_messages: bool = False
    batch_size: int = 10
    batch_window: int = 0
    concurrency: int = 10
    reserved_concurrency: int | None = None
    visibility: int | None = None
    max_receives: int = 100
    retention_days: int = 28
    queue_retention_days: int = 7
    dead_letter_retention_days: int = 14
    log_retention_days: int = 30
    alarm_email: str | None = None

    def __post_init__(self) -> None:
        _require(
            re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", self.service) is not None,
            f"service={self.service!r}: expected 1 to 200 characters of A-Z a-z 0-9 _ . -",
        )
        _require(
            self.queue_name is None or re.fullmatch(r"[A-Za-z0-9_-]{1,75}", self.queue_name) is not None,
            f"queue-name={self.queue_name!r}: expected 1 to 75 characters of A-Z a-z 0-9 _ -",
        )
        _require(
            self.active_region is None or re.fullmatch(r"[a-z]{2,}(-[a-z]+)+-[0-9]+", self.active_region) is not None,
            f"active-region={self.active_region!r}: expected a region, as eu-central-1",
        )
        self._check_ranges()
        self._check_times()
        self._check_queue()
        self._check_concurrency()
        self._check_memory()

    @property
    def visibility_timeout(self) -> int:
        """Of the source queue: as told, or the least that is right."""
        return self.least_visibility if self.visibility is None else self.visibility

    @property
    def least_visibility(self) -> int:
        return VISIBILITY_PER_TIMEOUT * self.timeout + self.batch_window

    def _check_ranges(self) -> None:
        for name, least, most in (
            ("memory", 128, 10_240),
            ("timeout", 1, 900),
            ("margin", 1, 450),
            ("grace", 0, 3600),
            ("job_concurrency", 1, 1000),
            ("job_seconds", 1, 900),
            ("max_attempts", 1, 1_000_000),
            ("batch_size", 1, 10_000),
            ("batch_window", 0, 300),
            ("concurrency", 2, 1000),
            ("max_receives", 1, 1000),
            ("retention_days", 1, 36_600),
            ("queue_retention_days", 1, LONGEST_QUEUE_RETENTION_DAYS),
            ("dead_letter_retention_days", 1, LONGEST_QUEUE_RETENTION_DAYS),
        ):
            value = getattr(self, name)
            _require(least <= value <= most, f"{_option(name)}={value}: expected {least} to {most}")
        _require(
            self.log_retention_days in LOG_RETENTION_DAYS,
            f"log-retention={self.log_retention_days}: CloudWatch Logs takes {sorted(LOG_RETENTION_DAYS)} days",
        )

    def _check_times(self) -> None:
        _require(
            self.margin >= LONGEST_REQUEST_SECONDS,
            f"margin={self.margin} is shorter than one request to AWS may take ({LONGEST_REQUEST_SECONDS} s): "
            "an answer could not be stored before the time-out",
        )
        _require(
            self.timeout >= 2 * self.margin,
            f"timeout={self.timeout} is less than twice margin={self.margin}: no time would be left to work in",
        )
        rounds = self.batch_size if self.fifo else ceil(self.batch_size / self.job_concurrency)
        _require(
            rounds * self.job_seconds <= self.timeout - self.margin,
            f"batch-size={self.batch_size} in job-concurrency={self.job_concurrency} threads is up to {rounds} rounds "
            f"of job-seconds={self.job_seconds}, and timeout={self.timeout} less margin={self.margin} leaves "
            f"{self.timeout - self.margin} s",
        )
        _require(
            self.retention_days >= self.queue_retention_days + self.dead_letter_retention_days,
            f"retention={self.retention_days} days is less than queue-retention={self.queue_retention_days} plus "
            f"dead-letter-retention={self.dead_letter_retention_days}: a message could outlive the record of its job",
        )

        _require(
            self.fifo or self.dead_letter_retention_days > self.queue_retention_days,
            f"dead-letter-retention={self.dead_letter_retention_days} is not more than "
            f"queue-retention={self.queue_retention_days} days: what SQS moves keeps its age, and would soon be gone",
        )

    def _check_queue(self) -> None:
        _require(
            self.visibility_timeout >= self.least_visibility,
            f"visibility={self.visibility} is less than {VISIBILITY_PER_TIMEOUT} x timeout={self.timeout} plus "
            f"batch-window={self.batch_window} ({self.least_visibility} s)",
        )
        _require(
            self.visibility_timeout <= LONGEST_VISIBILITY,
            f"visibility={self.visibility} is more than SQS takes ({LONGEST_VISIBILITY} s)",
        )
        _require(
            self.max_receives >= LEAST_RECEIVES,
            f"max-receives={self.max_receives} is less than {LEAST_RECEIVES}: deferred and throttled deliveries use up "
            f"receives, and SQS would bury jobs that max-attempts={self.max_attempts} still lets run",
        )
        _require(
            self.max_receives > self.max_attempts,
            f"max-receives={self.max_receives} is not more than max-attempts={self.max_attempts}: SQS would bury a job "
            "without its reason before the worker does",
        )
        if self.fifo:
            _require(self.batch_size <= 10, f"batch-size={self.batch_size} with fifo=true: SQS FIFO takes at most 10")
            _require(self.batch_window == 0, f"batch-window={self.batch_window} with fifo=true: SQS FIFO takes none")
        elif self.batch_size > 10:
            _require(
                self.batch_window >= 1,
                f"batch-size={self.batch_size} needs batch-window of at least 1, it is {self.batch_window}",
            )

    def _check_concurrency(self) -> None:
        reserved = self.reserved_concurrency
        _require(
            reserved != 0,
            "reserved-concurrency=0 throttles every delivery until SQS buries it: to stop a worker, disable its event "
            "source mapping (docs/runbook.md)",
        )
        _require(
            reserved is None or self.concurrency <= reserved,
            f"concurrency={self.concurrency} is more than reserved-concurrency={reserved}: the rest is throttled, and "
            "uses up receives",
        )

    def _check_memory(self) -> None:
        beside = min(self.batch_size, self.job_concurrency)
        needed = WORKER_MB + BODY_MB + min(beside * BODY_MB, BATCH_MB)
        _require(
            self.memory >= needed,
            f"memory={self.memory} MB is less than batch-size={self.batch_size} bodies in "
            f"job-concurrency={self.job_concurrency} threads may take ({needed} MB): a batch could end the process",
        )


def _require(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise WorkerPropsError(otherwise)


def _option(name: str) -> str:
    return name.removesuffix("_days").replace("_", "-")
