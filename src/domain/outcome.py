"""How one delivery of a job can end. An entrypoint maps these to its transport and adds nothing."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from domain.answer import Answer


@dataclass(frozen=True, slots=True)
class Executed:
    """The operation ran now, and its answer is stored."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Skipped:
    """The job was done before: this is its stored answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Deferred:
    """Another worker holds the job until then, and has since `since`, where that is known: deliver it again later."""

    until: datetime
    since: datetime | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Rejected:
    """No retry mends it. `reason` is a word: `payload_mismatch`, an operation's code. `attempts` counts its claims."""

    reason: str
    detail: str = ""
    error_type: str | None = None
    attempts: int | None = None


class Failure(StrEnum):
    """Why a job is to be delivered again."""

    OPERATION_RAISED = "operation_raised"
    UNKNOWN_OPERATION = "unknown_operation"
    STORE_UNAVAILABLE = "store_unavailable"
    LEASE_LOST = "lease_lost"
    COMPLETION_LOST = "completion_lost"
    NOT_STARTED = "not_started"
    NOT_ALONE = "not_alone"
    """A worker died with this job, perhaps because of it. Nothing was run: run it again with nothing beside it."""
    UNEXPECTED = "unexpected"


@dataclass(frozen=True, slots=True)
class Failed:
    """Not done, and a retry may mend it. `error_type` is the class name of what was raised, if anything was."""

    reason: Failure
    error_type: str | None = None


type Outcome = Executed | Skipped | Deferred | Rejected | Failed
