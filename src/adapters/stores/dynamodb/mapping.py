"""A stored record as the domain's, and the errors of the SDK as the port's."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from adapters.aws import CallFailedError, NoEvidenceError
from adapters.stores.dynamodb.layer import FenceLostError
from adapters.stores.dynamodb.record import FencedRecord, check, from_ms, from_seconds
from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseLostError, StoreUnavailableError
from domain.identity import JobKey
from domain.record import Record, Status


def to_record(found: FencedRecord, key: JobKey) -> Record:
    """Raises what `translate_errors` knows, for an item of another tool."""
    check(found)
    lease, first_seen, last_seen = found.in_progress_expiry_timestamp, found.first_seen, found.last_seen
    status = Status(found.stored_status)
    return Record(
        key=key,
        job_id=found.job_id,
        status=status,
        owner=found.owner,
        attempts=found.attempts,
        lease_until=None if lease is None else from_ms(lease),
        expires_at=from_seconds(found.expiry_timestamp or 0),
        fingerprint=found.payload_hash or None,
        answer=Answer(found.response_data or "null", found.omitted) if status is Status.COMPLETED else None,
        last_error=found.last_error,
        first_seen=None if first_seen is None else from_ms(first_seen),
        last_seen=None if last_seen is None else from_ms(last_seen),
        epoch=found.epoch,
        life=found.life,
        released_by=found.released_by,
    )


@contextmanager
def translate_errors(what: object) -> Iterator[None]:
    """Name `what` where it is no record of onejob."""
    try:
        yield
    except FenceLostError as error:
        raise LeaseLostError(str(error)) from error
    except ClientError as error:
        code: Any = error.response.get("Error", {}).get("Code", "unknown")
        raise StoreUnavailableError(f"DynamoDB {error.operation_name}: {code}") from error
    except NoEvidenceError as error:
        raise StoreUnavailableError(f"DynamoDB {error}") from error
    except CallFailedError as error:
        raise StoreUnavailableError(f"DynamoDB: {error}") from error
    except BotoCoreError as error:
        raise StoreUnavailableError(f"DynamoDB: {type(error).__name__}") from error
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise ForeignRecordError(
            f"{what}: the record is not one of onejob or Powertools: {type(error).__name__}"
        ) from error
