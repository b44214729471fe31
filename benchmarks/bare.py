"""The bare Powertools handler: idempotency with a batch processor as its documentation shows, keyed by `job_id`."""

import os
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from benchmarks.work import work

processor = BatchProcessor(event_type=EventType.SQS)
persistence = DynamoDBPersistenceLayer(table_name=os.environ["IDEMPOTENCY_TABLE"])
config = IdempotencyConfig(event_key_jmespath="job_id")


@idempotent_function(data_keyword_argument="message", config=config, persistence_store=persistence)
def run(message: dict[str, Any]) -> dict[str, Any]:
    return work(message)


def handle_record(record: SQSRecord) -> Any:
    return run(message=record.json_body)


def handler(event: Any, context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=handle_record, processor=processor, context=context)
