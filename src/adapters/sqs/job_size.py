"""How large a job's message may be, measured on what is sent: beside it, a dead letter's note has room."""

from typing import Final

from adapters.sqs.dead_letter import MAX_BYTES
from adapters.sqs.notes import ATTRIBUTE, MAX_NOTE_BYTES
from domain.errors import InvalidJobError

NOTE_BYTES: Final = len(ATTRIBUTE) + len("String") + MAX_NOTE_BYTES
"""The longest note of a dead letter, as SQS counts an attribute: its name, its type and its value."""

MAX_JOB_BYTES: Final = MAX_BYTES - NOTE_BYTES
"""A message of SQS may have 1,048,576 bytes, attributes included. A note that has no room is left out, and with it the
age of the job.
"""


def check_job_size(body: str, max_bytes: int = MAX_JOB_BYTES) -> None:
    """Return if a message of this body, without attributes, may be sent. Raises `InvalidJobError`: `too_large`."""
    size = len(body.encode())
    if size > max_bytes:
        raise InvalidJobError("too_large", f"{size} bytes in the queue: at most {max_bytes}")
