"""Sends job messages to a queue, for a door that takes jobs in and leaves them to a worker."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adapters.aws import call, check_sent
from adapters.sqs.groups import group_of, is_fifo
from adapters.sqs.job_size import MAX_JOB_BYTES, check_job_size
from adapters.sqs.queue import REFUSALS, error_name
from domain.job import Job

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

_NOT_CARRIED: Final = re.compile("[\ud800-\udfff\ufffe\uffff]")
"""What SQS refuses of the characters that JSON does not escape anyway (`dead_letter.is_legal` has them all)."""


@dataclass(frozen=True, slots=True)
class SqsJobSender:
    """Thread-safe. `client` answers the same one each time, and is called when a job is first sent.

    `max_bytes` is the largest body that may be sent.
    """

    client: "Callable[[], SQSClient]"
    queue_url: str
    new_id: Callable[[], str]
    max_bytes: int = MAX_JOB_BYTES

    def body(self, message: Mapping[str, Any]) -> str:
        """Return the message as it is sent: only what SQS does not carry is escaped.

        Raises `InvalidJobError`: `too_large`, measured on this text.
        """
        text = json.dumps(message, separators=(",", ":"), ensure_ascii=False)
        body = _NOT_CARRIED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        check_job_size(body, self.max_bytes)
        return body

    def send(self, body: str, job: Job) -> str | None:
        """Send the body of this job: in its tenant's group, and on a FIFO queue in one of its own.

        Answers the error's name if it was not sent, or may not have been. The queue deduplicates nothing: a job that
        was rejected or forgotten may be sent again at once, and what is sent twice runs once. Only the SDK's own second
        try carries the same id.
        """
        options: dict[str, Any] = {}
        if group := group_of(job, self.queue_url):
            options["MessageGroupId"] = group
        if is_fifo(self.queue_url):
            options["MessageDeduplicationId"] = self.new_id()
        try:
            answer = call(lambda: self.client().send_message(QueueUrl=self.queue_url, MessageBody=body, **options))
            check_sent("SendMessage", body, answer)
        except REFUSALS as error:
            return error_name(error)
        return None
