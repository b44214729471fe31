"""What `onejob run` is asked for."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from entrypoints.store_registry import Backend


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line asks for."""

    source: str
    operation: str | None
    name: str | None
    store: Backend
    db: Path
    namespace: str
    concurrency: int
    lease: timedelta
    max_attempts: int
    failed: Path | None
    as_json: bool
    error_messages: bool
