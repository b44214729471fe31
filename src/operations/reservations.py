"""An operation that calls AWS: reserve seats of an event, each reservation once, and never more seats than are free.

`RESERVATIONS_TABLE` names a table with the partition key `id` (string). It has an item for each event, as
`{"id": "concert", "seats_free": 100}`, and gets one for each reservation.
"""

import os
from functools import cache
from typing import Any

from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job


@cache
def client() -> Any:
    """Made once in each process, when a job first needs it: what never reserves does not load boto3."""
    import boto3

    return boto3.client("dynamodb")


def reserve(job: Job, attempt: Attempt) -> object:
    """Take `seats` of `event`, once for this job: a repeat finds the reservation of the attempt before it.

    Raises `PermanentError`: `invalid_payload`, or `sold_out`.
    """
    event, seats = job.payload.get("event"), job.payload.get("seats")
    if not isinstance(event, str) or not isinstance(seats, int) or isinstance(seats, bool) or seats < 1:
        raise PermanentError("invalid_payload", "event: expected a string; seats: expected a number from 1")
    table, number = os.environ["RESERVATIONS_TABLE"], {"N": str(seats)}
    reservation = {"id": {"S": attempt.effect_key("reserve")}, "event": {"S": event}, "seats": number}
    put = {"TableName": table, "Item": reservation, "ConditionExpression": "attribute_not_exists(id)"}
    update = {
        "TableName": table,
        "Key": {"id": {"S": event}},
        "UpdateExpression": "SET seats_free = seats_free - :seats",
        "ConditionExpression": "seats_free >= :seats",
        "ExpressionAttributeValues": {":seats": number},
    }
    try:
        client().transact_write_items(TransactItems=[{"Put": put}, {"Update": update}])
    except client().exceptions.TransactionCanceledException as error:
        of_reservation, of_event = (reason["Code"] for reason in error.response["CancellationReasons"])
        if of_reservation == "ConditionalCheckFailed":
            pass  # an attempt before this one reserved the seats, and its answer was not stored
        elif of_event == "ConditionalCheckFailed":
            raise PermanentError("sold_out", "event: not as many seats are free") from error
        else:
            raise
    return {"event": event, "seats": seats}
