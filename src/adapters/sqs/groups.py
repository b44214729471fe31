"""Message groups: an order on a FIFO queue; a tenant of a fair queue on a standard one, where it orders nothing."""

import re
from hashlib import sha256
from typing import Any, Final

from adapters.sqs.message import Message
from domain.job import Job

_GROUP: Final = re.compile("[!-~]{1,128}")
"""What SQS takes for a message group: letters, digits and punctuation of ASCII."""


def is_fifo(queue: str) -> bool:
    """Whether this URL or ARN is a FIFO queue's."""
    return queue.endswith(".fifo")


def is_group(text: str) -> bool:
    """Whether SQS takes this for a message group."""
    return _GROUP.fullmatch(text) is not None


def group_of(job: Job, queue: str) -> str | None:
    """The group of a job that is sent to this queue: on a FIFO queue one of its own, so that no job waits for another;
    on a standard queue its tenant's. None without a tenant. What SQS does not take as a group is hashed.
    """
    if is_fifo(queue):
        return job.key.digest
    if job.tenant is None or is_group(job.tenant):
        return job.tenant
    return sha256(job.tenant.encode()).hexdigest()


def kept_group(message: Message, queue: str) -> dict[str, Any]:
    """The options of SendMessage by which a message keeps its group in another queue. A FIFO queue takes none without:
    a message that came without one is a group of its own.
    """
    group = message.group_id or (message.message_id if is_fifo(queue) else None)
    return {"MessageGroupId": group} if group else {}
