"""`onejob run`: its options and its help."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from entrypoints.cli.options import DEFAULT_DB, KeyName, OwnDbFile, OwnNamespace
from entrypoints.store_registry import Backend


def run(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="Job messages, one JSON object a line, plain or gzip; - reads standard input."
        ),
    ],
    operation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|MODULE:FUNCTION",
            help="An operation of OPERATIONS in src/operations (default: the one named default), or any "
            "function(job, attempt) or Operation as package.module:NAME; the current folder is searched last.",
        ),
    ] = None,
    name: KeyName = None,
    store: Annotated[
        Backend,
        typer.Option(
            help="Where it is remembered what is done; dynamodb needs IDEMPOTENCY_TABLE, valkey IDEMPOTENCY_VALKEY_URL."
        ),
    ] = Backend.SQLITE,
    db: OwnDbFile = DEFAULT_DB,
    namespace: OwnNamespace = "onejob",
    concurrency: Annotated[int, typer.Option(min=1, max=1000, envvar="JOB_CONCURRENCY", help="Jobs at a time.")] = 10,
    lease: Annotated[
        int,
        typer.Option(
            min=1, max=86_400, help="Seconds for which a job is held; renewed while it runs, waited for after a crash."
        ),
    ] = 30,
    max_attempts: Annotated[
        int, typer.Option(min=1, max=1000, envvar="MAX_ATTEMPTS", help="Tries of a job that fails.")
    ] = 5,
    failed: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the lines that did not finish there, ready to be run again."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line, the last one the summary.")] = False,
    show_errors: Annotated[
        bool, typer.Option("--show-errors", help="Show the texts of errors, which may hold payload values.")
    ] = False,
) -> None:
    """Run a file of jobs on this machine, each job once: no AWS, no server.

    A line is {"job_id": "...", ...}, with "operation" and "tenant" if you
    like; the rest is the job's payload. A job that is done is skipped: in
    this file, in another one, in the next run. After a crash, or Ctrl-C, run
    the same command again: what is done is skipped, and what a killed run
    had begun is waited for until its lease ends, then taken over.

    A failing job is tried again with back-off. A line that is no job is
    reported, and the rest goes on. Ctrl-C finishes what runs and stops; a
    second Ctrl-C leaves at once.

    Example: onejob run jobs.jsonl --operation invoices:charge

    Exit status: 0 all done or skipped; 1 some failed or rejected, or store
    or file failed on the way; 2 unusable arguments; 130 interrupted;
    143 terminated.
    """
    from entrypoints.cli.commands.run.options import RunOptions
    from entrypoints.cli.commands.run.run import run_file

    options = RunOptions(
        source=file,
        operation=operation,
        name=name,
        store=store,
        db=db,
        namespace=namespace,
        concurrency=concurrency,
        lease=timedelta(seconds=lease),
        max_attempts=max_attempts,
        failed=failed,
        as_json=as_json,
        error_messages=show_errors,
    )
    raise typer.Exit(run_file(options))
