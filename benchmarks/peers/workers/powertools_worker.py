# /// script
# requires-python = ">=3.13"
# dependencies = ["aws-lambda-powertools==3.37.0", "boto3==1.43.106"]
# ///
"""Powertools for AWS Lambda, put together as its documentation puts idempotency and batches together.

The key is the job's id (`powertools_json` is Powertools' own JMESPath function), since the documentation's `messageId`
tells nothing of a job that is sent twice. With `PEER_CHECKS` the options that it has for our faults are on as well.
"""

import os
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from benchmarks.peers.workers.operation import note_answer, operate
from benchmarks.peers.workers.runtime import serve

checks = bool(os.environ.get("PEER_CHECKS"))
processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=not checks)
store = DynamoDBPersistenceLayer(table_name=os.environ["PEER_TABLE"])
config = IdempotencyConfig(
    event_key_jmespath="powertools_json(body).job_id",
    payload_validation_jmespath="powertools_json(body)" if checks else "",
    raise_on_no_idempotency_key=checks,
)


@idempotent_function(data_keyword_argument="record", config=config, persistence_store=store)
def run_once(record: SQSRecord) -> object:
    return operate(record.json_body)


def record_handler(record: SQSRecord) -> object:
    answer = run_once(record=record)
    note_answer(record.json_body, answer)
    return answer


def handler(event: Any, context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(event=event, context=context, processor=processor, record_handler=record_handler)


if __name__ == "__main__":
    serve(handler, "aws-lambda-powertools", "boto3")
