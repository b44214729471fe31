# /// script
# requires-python = ">=3.13"
# dependencies = ["idemkit[dynamodb]==1.0.2"]
# ///
"""idemkit's queue consumer over its DynamoDB backend, with every option that it has for our faults.

It has no Lambda entrypoint: the loop over the records stands where its own poll loop would, and RETRY is reported as a
failed item. The key is the job's id; SQS's message id, the preset of its SQS helper, is another one when a job is sent
twice.
"""

import json
import os
from typing import Any

import boto3
from idemkit import ConsumerAction, DynamoBackend, IdempotentConsumer, QueueConfig

from benchmarks.peers.workers.operation import note_answer, operate
from benchmarks.peers.workers.runtime import serve

WARM_UP = "warm-up"

sqs = boto3.client("sqs")


def dead_letter(record: Any, error: object) -> None:
    sqs.send_message(QueueUrl=os.environ["PEER_DEAD_LETTER_URL"], MessageBody=record["body"])


consumer = IdempotentConsumer(
    backend=DynamoBackend(table=os.environ["PEER_TABLE"], create_table=False),
    config=QueueConfig(
        dedup_id=lambda record: json.loads(record["body"])["job_id"],
        visibility_timeout_seconds=float(os.environ["PEER_VISIBILITY"]),
        receive_count=lambda record: int(record["attributes"]["ApproximateReceiveCount"]),
        max_attempts=int(os.environ["PEER_RECEIVES"]),
        on_exhausted=dead_letter,
        cache_result=True,
        validation_fingerprint=lambda record: record["body"].encode(),
    ),
)


@consumer.handle
def process(record: Any) -> object:
    job = json.loads(record["body"])
    return None if job["job_id"] == WARM_UP else operate(job)


def is_done(record: Any) -> bool:
    result = consumer.dispatch_sync(record)
    if result.action is ConsumerAction.ACK and not result.exhausted:
        note_answer(json.loads(record["body"]), result.result)
    return result.action is ConsumerAction.ACK


def handler(event: Any, context: object) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        try:
            done = is_done(record)
        except Exception:  # `dedup_id` may raise
            done = False
        if not done:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


if __name__ == "__main__":
    consumer.dispatch_sync(  # connects, which others do when they are imported
        {"body": json.dumps({"job_id": WARM_UP}), "attributes": {"ApproximateReceiveCount": "1"}}
    )
    serve(handler, "idemkit", "aioboto3", "aiobotocore", "boto3")
