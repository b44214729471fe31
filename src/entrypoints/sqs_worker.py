"""The Lambda door: `handler` is what an SQS event source mapping with ReportBatchItemFailures calls."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from adapters.interrupts import marked_interrupts
from adapters.sqs.message import NotAnSqsBatchError, read_event
from domain.operation import Operations
from entrypoints.container import Container
from entrypoints.edge import by_type_and_place
from entrypoints.registered import registered_operations
from entrypoints.startup import handler_on_demand


class Context(Protocol):
    """What is used of Lambda's context."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int: ...


type Handler = Callable[[Any, Context], dict[str, Any]]


def make_handler(operations: Operations, container: Container | None = None) -> Handler:
    """A handler for these operations, everything behind it built now. Raises `SettingError`."""
    parts = container or Container()
    parts.operations.override(operations)
    batches, events, clock = parts.sqs_batches(), parts.events(), parts.clock()

    def handle(event: Any, context: Context) -> dict[str, Any]:
        """Answers the messages that are not done. Raises `NotAnSqsBatchError`, and nothing for a message."""
        end = clock.now() + timedelta(milliseconds=context.get_remaining_time_in_millis())
        try:
            with marked_interrupts():
                failed = batches.run(read_event(event), invocation_end=end, request_id=context.aws_request_id)
        finally:
            events.flush()
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}

    return by_type_and_place(handle, known=(NotAnSqsBatchError,), texts=parts.settings().log_error_messages)


def _of_registered() -> Handler:
    return make_handler(registered_operations())


def __getattr__(name: str) -> Handler:
    return handler_on_demand(globals(), name, _of_registered)
