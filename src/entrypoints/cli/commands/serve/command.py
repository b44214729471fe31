"""`onejob serve`: its options and exit codes."""

from datetime import timedelta
from typing import Annotated

import typer

from entrypoints.cli.options import DEFAULT_DB, KeyName, OwnDbFile, OwnNamespace
from entrypoints.store_registry import Backend


def serve(
    port: Annotated[int, typer.Option(min=0, max=65_535, help="On 127.0.0.1; 0 takes a free one.")] = 8080,
    operation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|MODULE:FUNCTION",
            help="The operation of requests that name none: one of OPERATIONS in src/operations (default: the one "
            "named default), or any function(job, attempt) or Operation as package.module:NAME.",
        ),
    ] = None,
    name: KeyName = None,
    store: Annotated[
        Backend, typer.Option(help="Where it is remembered what is done; dynamodb needs IDEMPOTENCY_TABLE.")
    ] = Backend.SQLITE,
    db: OwnDbFile = DEFAULT_DB,
    namespace: OwnNamespace = "onejob",
    timeout: Annotated[
        int,
        typer.Option(min=10, max=900, help="Seconds that a request may take, as the function's time-out in Lambda."),
    ] = 30,
) -> None:
    """Serve the HTTP API on this machine, for development: no AWS.

    POST /jobs with an Idempotency-Key runs a job once and answers; sent
    again, the same answer comes with Idempotency-Replayed: true. GET
    /jobs/{id} shows what became of it, GET /openapi.json all that may be
    asked. It calls the very handler that Lambda would.

    curl -i http://127.0.0.1:8080/jobs -H 'Idempotency-Key: "job-001"' -H 'Content-Type: application/json' -d '{}'

    Only programs on this machine may call, and all of them are one caller
    (HTTP_ALLOW_ANONYMOUS is true here). With JOBS_QUEUE_URL, Prefer:
    respond-async sends the job to that queue. Log lines go to standard
    output. Ctrl-C finishes what runs and stops; a second one leaves at once.

    Exit status: 1 the port cannot be had; 2 unusable arguments or settings;
    130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.serve.serve import ServeOptions, serve_http

    options = ServeOptions(
        port=port,
        operation=operation,
        name=name,
        store=store,
        db=db,
        namespace=namespace,
        timeout=timedelta(seconds=timeout),
    )
    raise typer.Exit(serve_http(options))
