"""Sending a dead letter to the queue that it came from: what it says of its age goes with it."""

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from adapters.aws import call, check_sent
from adapters.sqs.dead_letter import MAX_ATTRIBUTES, MAX_BYTES, attribute_bytes
from adapters.sqs.dead_letter_queue import ReceivedDeadLetter
from adapters.sqs.groups import is_fifo, kept_group
from adapters.sqs.notes import ATTRIBUTE, Notes
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import REFUSALS, error_name

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

_REPEAT_ID: Final = re.compile("[!-~]{1,128}")
"""What SQS takes for a deduplication id."""


def send_back(
    client: "SQSClient", url: str, letter: ReceivedDeadLetter, notes: Notes, *, epoch: int = 1, forget_age: bool = False
) -> str:
    """The id of the message that it is now. Raises `QueueUnavailableError`: it may have arrived all the same; and
    `StoreUnavailableError` before anything is sent.

    `client` must not try again by itself. The group stays. A FIFO queue gets a deduplication id that is the same
    should this letter be sent back once more in the same `epoch` of its job. SQS then drops the second message for
    five minutes, and answers the id of the first.
    """
    options: dict[str, Any] = {}
    if attributes := attributes_of(letter, notes, forget_age=forget_age):
        options["MessageAttributes"] = attributes
    options |= kept_group(letter.message, url)
    if is_fifo(url):
        options["MessageDeduplicationId"] = repeat_id(letter.message.message_id, epoch)
    try:
        answer = call(client.send_message, QueueUrl=url, MessageBody=letter.message.body, **options)
        return check_sent("SendMessage", letter.message.body, answer)
    except REFUSALS as error:
        raise QueueUnavailableError(f"SQS SendMessage: {error_name(error)}") from error


def repeat_id(message_id: str, epoch: int) -> str:
    """The deduplication id of a redrive. In another epoch the job runs again: a drop would lose it."""
    text = f"redrive-{message_id}-{epoch}"
    return text if _REPEAT_ID.fullmatch(text) else f"redrive-{sha256(text.encode()).hexdigest()}"


def source_urls(client: "SQSClient", dead_letter_url: str) -> list[str]:
    """The queues whose redrive policies name this one; none also where nobody knows. Raises `QueueUnavailableError`."""
    try:
        return call(lambda: _source_urls(client, dead_letter_url))
    except REFUSALS as error:
        if isinstance(error, ClientError) and error.response["Error"]["Code"] == "InvalidAction":
            return []  # an emulator's
        raise QueueUnavailableError(f"SQS ListDeadLetterSourceQueues: {error_name(error)}") from error


def _source_urls(client: "SQSClient", dead_letter_url: str) -> list[str]:
    pages = client.get_paginator("list_dead_letter_source_queues").paginate(QueueUrl=dead_letter_url)
    return [url for page in pages for url in page.get("queueUrls", ())]


def attributes_of(letter: ReceivedDeadLetter, notes: Notes, *, forget_age: bool) -> dict[str, Any]:
    """As they came. The new message's own time would make it young: `first_sent` stays in `onejob`, where the worker
    looks for it, and is added to what SQS moved by itself. What is written anew is signed, takes the place of what the
    message claims, and is left out where it does not fit. Raises `StoreUnavailableError`.
    """
    if letter.note and not forget_age:
        return dict(letter.attributes)
    attributes = {name: value for name, value in letter.attributes.items() if name != ATTRIBUTE}
    facts = {name: fact for name, fact in letter.note.items() if name != "first_sent"}
    if not forget_age and letter.first_sent is not None:
        facts["first_sent"] = round(letter.first_sent.timestamp() * 1000)
    if not facts:
        return attributes
    note = json.dumps(notes.signed(facts, letter.message.body), separators=(",", ":"))
    with_note = {**attributes, ATTRIBUTE: {"DataType": "String", "StringValue": note}}
    return with_note if _is_sendable(letter.message.body, with_note) else attributes


def _is_sendable(body: str, attributes: dict[str, Any]) -> bool:
    size = len(body.encode(errors="surrogatepass")) + sum(attribute_bytes(*each) for each in attributes.items())
    return len(attributes) <= MAX_ATTRIBUTES and size <= MAX_BYTES
