"""Functions under Powertools' own decorator, as its documentation shows it, over whatever layer. Imports AWS."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.base import BasePersistenceLayer

from tests.support.aws import TABLE
from tests.support.sqs import Context

type Run = Callable[[dict[str, Any]], object]


def decorated(run: Run, layer: BasePersistenceLayer, *, prefix: str = "pay", **config: Any) -> Callable[..., Any]:
    """To be called with `message=`. Has a registered Lambda context unless `lambda_context=None` is given."""
    settings = {"event_key_jmespath": "job_id", "lambda_context": Context(), **config}
    decorate: Any = idempotent_function(
        data_keyword_argument="message",
        persistence_store=layer,
        config=IdempotencyConfig(**settings),
        key_prefix=prefix,
    )

    def function(message: dict[str, Any]) -> object:
        return run(message)

    made: Callable[..., Any] = decorate(function)
    return made


def items() -> list[dict[str, Any]]:
    """All records."""
    table: Any = boto3.resource("dynamodb").Table(TABLE)
    found: list[dict[str, Any]] = table.scan()["Items"]
    return found


def lapse() -> None:
    """Back-date the lease of the only record."""
    (stored,) = items()
    past = int((datetime.now(UTC) - timedelta(seconds=5)).timestamp() * 1000)
    table: Any = boto3.resource("dynamodb").Table(TABLE)
    table.update_item(
        Key={"id": stored["id"]},
        UpdateExpression="SET in_progress_expiration = :past",
        ExpressionAttributeValues={":past": past},
    )
