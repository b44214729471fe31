"""`onejob doctor`: its options. What it looks at stands in doctor.py and beside it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from entrypoints.cli.options import AsJson, EndpointUrl, Region


def doctor(
    function: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The worker's function: its settings, time-out and queue are read from it."),
    ] = None,
    queue_url: Annotated[
        str | None, typer.Option(envvar="QUEUE_URL", metavar="URL", help="The queue that the worker reads.")
    ] = None,
    dead_letter_url: Annotated[
        str | None,
        typer.Option(envvar="DEAD_LETTER_QUEUE_URL", metavar="URL", help="Where it buries what it rejects."),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(envvar="IDEMPOTENCY_BACKEND", metavar="NAME", help="Where records live: dynamodb, sqlite, ..."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(envvar="IDEMPOTENCY_TABLE", metavar="NAME", help="The table of records.")
    ] = None,
    db: Annotated[
        Path | None, typer.Option(envvar="IDEMPOTENCY_DB", metavar="FILE", help="The SQLite file of records.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(envvar="IDEMPOTENCY_NAMESPACE", metavar="NAME", help="First part of each job's key."),
    ] = None,
    as_json: AsJson = False,
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Look at everything a worker stands on, and say what to mend.

    Settings; the table (key, TTL, backups, deletion protection), the SQLite
    file (integrity, permissions, version), or the Valkey server (whether it
    answers, and whether it is purged); with --function or --queue-url also
    the queue, its dead-letter queue, visibility against the time-out, the
    redrive policy, retention of records against that of messages, and the
    event source mapping. Nothing is changed.

    A line a finding: ok, warn (a risk) or fail (loses, delays or repeats
    work), each with the command or setting that mends it.

    Example: onejob doctor --function MyStack-WorkerFunction

    Exit status: 0 nothing fails; 1 something does; 2 unusable arguments;
    130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.doctor.checks import DoctorOptions, examine
    from entrypoints.cli.exit import ended

    named = {
        "DEAD_LETTER_QUEUE_URL": dead_letter_url,
        "IDEMPOTENCY_BACKEND": backend,
        "IDEMPOTENCY_TABLE": table,
        "IDEMPOTENCY_DB": None if db is None else str(db),
        "IDEMPOTENCY_NAMESPACE": namespace,
        "QUEUE_URL": queue_url,
    }
    if function is not None:  # what stands in this shell's environment says nothing of it
        named = {name: value for name, value in named.items() if value != os.environ.get(name)}
    told = {name: value for name, value in named.items() if value is not None}
    if "IDEMPOTENCY_BACKEND" not in told and {"IDEMPOTENCY_TABLE", "IDEMPOTENCY_DB"} & told.keys():
        told["IDEMPOTENCY_BACKEND"] = "dynamodb" if table else "sqlite"
    options = DoctorOptions(
        function=function,
        queue_url=told.pop("QUEUE_URL", None),
        settings=told,
        as_json=as_json,
        region=region,
        endpoint_url=endpoint_url,
    )
    with ended("doctor"):
        raise typer.Exit(examine(options))
