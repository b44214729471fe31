"""What an operation is handed beside its job: which try this is, until when, and keys for its own effects."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from domain.identity import JobKey

STEP: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at running a job.

    - `number`: 1, 2, ...; strictly increasing while the job's record exists, so that it can fence a downstream system.
    - `execution_id`: fresh for every try; it is also the owner of the claim.
    - `deadline`: an answer returned later than this may not be stored in time; None: no limit.
    - `lost()`: is the lease gone? Then another worker may be running this job: stop before the next effect.
    """

    number: int
    execution_id: str
    deadline: datetime | None
    lost: Callable[[], bool]
    key: JobKey
    epoch: int = 1

    def effect_key(self, step: str) -> str:
        """An idempotency key for an outside system, the same on every attempt.

        It is `{job key}#{step}`, below 240 characters. After an operator had the job forgotten, so that it runs again,
        it is `{job key}#{epoch}#{step}`: the outside system would otherwise answer for the first run.
        Raises `ValueError` unless `step` is 1 to 40 characters of `A-Z a-z 0-9 _ -`.
        """
        if not STEP.fullmatch(step):
            raise ValueError(f"step {step!r}: expected 1 to 40 characters of A-Z a-z 0-9 _ -")
        return f"{self.key}#{step}" if self.epoch == 1 else f"{self.key}#{self.epoch}#{step}"
