"""A job: who it is, and what it asks for."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

from domain.identity import JobKey
from domain.strict_json import Json


@dataclass(frozen=True, slots=True)
class Job:
    """One request for one effect. Key and fingerprint were taken when it was made; no later change moves them.

    A job that waits holds no payload: `read_payload` reads it from the job's text, and `payload` is empty. An operation
    is given a job that has its payload.
    """

    key: JobKey
    job_id: str
    tenant: str | None
    payload: dict[str, Json]
    fingerprint: str
    read_payload: Callable[[], dict[str, Json]] | None = field(default=None, compare=False, repr=False)

    @property
    def operation(self) -> str:
        return self.key.operation

    def for_one_attempt(self) -> "Job":
        """The same job with a payload of its own, for an operation to change as it likes.

        It is read anew where that is possible: a copy would take the memory of two payloads for the whole attempt.
        """
        payload = deepcopy(self.payload) if self.read_payload is None else self.read_payload()
        return replace(self, payload=payload, read_payload=None)
