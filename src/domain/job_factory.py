"""The one factory that makes a job from a message, or says why that is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from domain.errors import InvalidJobError, PermanentError
from domain.identity import clean_id, clean_name, fingerprint, job_key
from domain.job import Job
from domain.operation import DEFAULT_OPERATION, FromBody, Operations
from domain.strict_json import Json

RESERVED: Final = ("job_id", "operation", "tenant")
"""A message has these beside its payload's members: from a payload they would be another job, or another's."""


@dataclass(frozen=True, slots=True)
class JobFactory:
    """Makes jobs for one namespace. `operations` is asked for the volatile members that a fingerprint leaves out;
    `default_operation` is meant by messages that name none.
    """

    namespace: str
    operations: Operations
    default_operation: str = DEFAULT_OPERATION

    def job(self, message: Json) -> Job:
        """A job from `{"job_id": ..., "operation"?: ..., "tenant"?: ..., ...payload}`, or from what
        `operations.from_body` makes of a body that has no `job_id`.

        Raises `InvalidJobError`: `not_an_object`, `missing_job_id`, `invalid_job_id`, `invalid_operation`,
        `missing_tenant`, `invalid_tenant`, `invalid_payload`, `untranslatable`, and
        the code of a `PermanentError` of `from_body`.
        """
        if self.operations.from_body is not None and not _is_of_a_job(message):
            message = _translated(self.operations.from_body, message)
        if not isinstance(message, dict):
            raise InvalidJobError("not_an_object", f"expected object, got {_json_type(message)}")
        job_id = clean_id(message.get("job_id"), "job_id")
        operation = clean_name(message.get("operation", self.default_operation), "operation")
        tenant = clean_id(message["tenant"], "tenant") if "tenant" in message else None
        payload = _payload_of(message)
        return Job(
            key=job_key(self.namespace, operation, job_id, tenant),
            job_id=job_id,
            tenant=tenant,
            payload=payload,
            fingerprint=self._fingerprint(operation, payload),
        )

    def waiting_job(self, read: Callable[[], Json]) -> Job:
        """The job of the message that `read` answers, without its payload. Each attempt calls `read` for its own, so
        that no two calls may answer the same objects. What `operations.from_body` made keeps its payload: that function
        is called once for a delivery.

        Raises what `read` does, and `InvalidJobError` as `job`.
        """
        message = read()
        job = self.job(message)
        if not _is_of_a_job(message):
            return job
        return replace(job, payload={}, read_payload=lambda: _payload_of(read()))

    def _fingerprint(self, operation: str, payload: dict[str, Json]) -> str:
        known = self.operations.find(operation)
        try:
            return fingerprint(payload, known.volatile if known else ())
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidJobError("invalid_payload", f"not JSON: {type(error).__name__}") from error


def _payload_of(message: Json) -> dict[str, Json]:
    members = message.items() if isinstance(message, dict) else ()
    return {name: value for name, value in members if name not in RESERVED}


def _is_of_a_job(message: Json) -> bool:
    return isinstance(message, dict) and "job_id" in message


def _translated(from_body: FromBody, body: Json) -> Json:
    """What is no JSON is found where the fingerprint is taken."""
    try:
        return from_body(body)  # type: ignore[return-value]
    except KeyboardInterrupt:
        raise
    except InvalidJobError:
        raise
    except PermanentError as error:
        raise InvalidJobError(str(error.code), str(error.detail)) from error
    except BaseException as error:  # the user's code, about this message: it must not end what is beside it
        raise InvalidJobError("untranslatable", f"from_body: {type(error).__name__}") from error


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case int() | float():
            return "number"
        case _:
            return "no JSON"
