"""The bare handler with a log line a record through Powertools' Logger, as its batch page shows: closer to what
onejob does, which writes one line an outcome and one of metrics.
"""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from benchmarks import bare

logger = Logger(service="bare")


def handle_record(record: SQSRecord) -> Any:
    answer = bare.run(message=record.json_body)
    logger.info(record.json_body)
    return answer


@logger.inject_lambda_context
def handler(event: Any, context: Any) -> Any:
    bare.config.register_lambda_context(context)
    return process_partial_response(
        event=event, record_handler=handle_record, processor=bare.processor, context=context
    )
