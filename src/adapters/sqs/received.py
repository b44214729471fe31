"""The event that Lambda makes of received messages, for code that polls a queue itself."""

from base64 import b64encode
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef


def lambda_event(messages: "Iterable[MessageTypeDef]", queue_arn: str) -> dict[str, Any]:
    """An SQS event from ReceiveMessage's messages; ask for all attributes when receiving."""
    return {"Records": [_record(message, queue_arn) for message in messages]}


def _record(message: "MessageTypeDef", queue_arn: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {
            name: {
                "dataType": attribute["DataType"],
                "stringListValues": [],
                "binaryListValues": [],
                **({"stringValue": attribute["StringValue"]} if "StringValue" in attribute else {}),
                **({"binaryValue": _base64(attribute["BinaryValue"])} if "BinaryValue" in attribute else {}),
            }
            for name, attribute in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": queue_arn.split(":")[3],
    }


def _base64(value: Any) -> str:
    return b64encode(value).decode()
