"""Options that several commands have in common. Imports nothing heavy: every start of `onejob` reads it."""

from pathlib import Path
from typing import Annotated, Final

import typer

Region = Annotated[
    str | None, typer.Option(metavar="NAME", help="AWS region (default: as boto3 finds it, AWS_DEFAULT_REGION).")
]
EndpointUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="Another AWS endpoint, an emulator's say (or AWS_ENDPOINT_URL).")
]
DEFAULT_NAMESPACE: Final = "onejob"
Namespace = Annotated[
    str, typer.Option(envvar="IDEMPOTENCY_NAMESPACE", metavar="NAME", help="First part of each job's key.")
]
QueueUrl = Annotated[
    str, typer.Option(envvar="QUEUE_URL", metavar="URL", help="The queue that the worker reads (output QueueUrl).")
]
DeadLetterUrl = Annotated[
    str,
    typer.Option(
        envvar="DEAD_LETTER_QUEUE_URL", metavar="URL", help="The dead-letter queue (output DeadLetterQueueUrl)."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line instead of a table.")]
ShowPayload = Annotated[
    bool, typer.Option("--show-payload", help="Show bodies and answers too; they are never shown unasked.")
]
BackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        envvar="IDEMPOTENCY_BACKEND",
        metavar="NAME",
        help="Where records are: dynamodb, sqlite, ... (default: dynamodb with --table, sqlite with --db).",
    ),
]
TableName = Annotated[
    str | None, typer.Option("--table", envvar="IDEMPOTENCY_TABLE", metavar="NAME", help="The DynamoDB table.")
]
DbFile = Annotated[str | None, typer.Option("--db", envvar="IDEMPOTENCY_DB", metavar="FILE", help="The SQLite file.")]
OperationName = Annotated[
    str, typer.Option("--operation", metavar="NAME", help="The operation's name, part of the job's key.")
]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="ID", help="The job's tenant, if its message has one.")]

# Of those that run jobs on this machine.

DEFAULT_DB: Final = Path(".onejob/records.sqlite")
OwnDbFile = Annotated[Path, typer.Option(metavar="FILE", envvar="IDEMPOTENCY_DB", help="The SQLite file.")]
OwnNamespace = Annotated[
    str,
    typer.Option(
        envvar="IDEMPOTENCY_NAMESPACE", help="First part of each job's key: another one is another set of jobs."
    ),
]
KeyName = Annotated[
    str | None, typer.Option(help="The operation's name, part of each job's key (default: the function's name).")
]
