"""What a body is about: the job inside it, whatever services wrapped it on the way."""

from typing import Final

from domain.errors import InvalidJobError
from domain.strict_json import Json, parse

DEEPEST: Final = 3
"""S3 or EventBridge, through SNS, through SNS again: more wrapping than anyone was seen to use."""

_TESTS: Final = ("s3:TestEvent", "autoscaling:TEST_NOTIFICATION")
_CONFIRMATIONS: Final = ("SubscriptionConfirmation", "UnsubscribeConfirmation")


class NothingToDoError(Exception):
    """What S3, SNS or Auto Scaling sends when a notification is set up or taken down. There is nothing to do."""


def unwrap(body: str) -> Json:
    """The message inside a body: raw, an SNS notification's `Message`, an EventBridge event's `detail`.

    A body that has a `job_id` of its own is never taken for an envelope. Raises `InvalidJobError`, `NothingToDoError`.
    """
    content = parse(body)
    for _ in range(DEEPEST):
        if not isinstance(content, dict) or "job_id" in content:
            break
        if content.get("Event") in _TESTS or (content.get("Type") in _CONFIRMATIONS and "TopicArn" in content):
            raise NothingToDoError
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


def unwrap_line(text: str) -> Json:
    """The message of a line of a file, read as the worker reads a body. Raises `InvalidJobError`."""
    try:
        return unwrap(text)
    except NothingToDoError:
        raise InvalidJobError("not_an_object", "a service's test or confirmation message") from None
