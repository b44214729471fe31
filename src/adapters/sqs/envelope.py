"""What a body is about: the job inside it, whatever services wrapped it on the way."""

from typing import Final

from domain.errors import InvalidJobError
from domain.strict_json import Json, parse

DEEPEST: Final = 3
"""S3 or EventBridge, through SNS, through SNS again: more wrapping than anyone was seen to use."""


class S3TestEventError(Exception):
    """S3's greeting when a bucket notification is set up. There is nothing to do."""


def unwrap(body: str) -> Json:
    """The message inside a body: raw, an SNS notification's `Message`, an EventBridge event's `detail`.

    A body that has a `job_id` of its own is never taken for an envelope. Raises `InvalidJobError`, `S3TestEventError`.
    """
    content = parse(body)
    for _ in range(DEEPEST):
        if not isinstance(content, dict) or "job_id" in content:
            break
        if content.get("Event") == "s3:TestEvent":
            raise S3TestEventError
        if content.get("Type") == "Notification" and "TopicArn" in content:
            message = content.get("Message")
            if not isinstance(message, str):
                raise InvalidJobError("invalid_payload", "Message: expected string")
            content = parse(message)
        elif "detail-type" in content and "detail" in content:
            content = content["detail"]
        else:
            break
    return content
