"""A job: who it is, and what it asks for."""

from copy import deepcopy
from dataclasses import dataclass, replace

from domain.identity import JobKey
from domain.strict_json import Json


@dataclass(frozen=True, slots=True)
class Job:
    """One request for one effect. Key and fingerprint were taken when it was made; no later change moves them."""

    key: JobKey
    job_id: str
    tenant: str | None
    payload: dict[str, Json]
    fingerprint: str

    @property
    def operation(self) -> str:
        return self.key.operation

    def for_one_attempt(self) -> "Job":
        """The same job with a payload of its own, for an operation to change as it likes."""
        return replace(self, payload=deepcopy(self.payload))
