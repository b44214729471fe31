"""The real handler over DynamoDB, with a clock that tests own. Imports AWS."""

from typing import Any

from dependency_injector.providers import Object

from domain.operation import OperationFunction, Operations
from domain.ports.clock import Clock
from entrypoints.container import Container
from entrypoints.settings import Backend, Settings
from entrypoints.sqs_worker import Handler, make_handler
from tests.support.aws import TABLE
from tests.support.clock import FakeClock
from tests.support.jobs import answer_ok, operations


def handler(
    run: OperationFunction = answer_ok,
    *,
    clock: Clock | None = None,
    known: Operations | None = None,
    **settings: Any,
) -> Handler:
    """A handler as `entrypoints.sqs_worker` makes it; without `clock` a fake one is made."""
    container = Container()
    chosen = {"backend": Backend.DYNAMODB, "table": TABLE, "namespace": "test", **settings}
    container.settings.override(Object(Settings(**chosen)))
    container.clock.override(Object(clock or FakeClock()))
    return make_handler(known or operations(run), container)
