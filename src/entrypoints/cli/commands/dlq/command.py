"""`onejob dlq`: its commands and their options. What they do stands in dlq_list.py and dlq_redrive.py."""

from typing import Annotated

import typer

from entrypoints.cli.options import (
    AsJson,
    BackendName,
    DbFile,
    DeadLetterUrl,
    EndpointUrl,
    Namespace,
    Region,
    ShowPayload,
    TableName,
    Tenant,
)

LettersOperation = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|MODULE:FUNCTION",
        help="Only letters of this operation. A function, as onejob work was given it: it is meant by letters that "
        "name none.",
    ),
]
WorkerName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The worker's own operation, if not default: of letters that name none."),
]

dlq = typer.Typer(help="The dead-letter queue: look into it, and send what is mended back.", no_args_is_help=True)


@dlq.command("list")
def list_(
    dead_letter_url: DeadLetterUrl,
    job_id: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only letters of this job, with its --operation and --tenant; repeatable."),
    ] = None,
    operation: LettersOperation = None,
    tenant: Tenant = None,
    name: WorkerName = None,
    reason: Annotated[str | None, typer.Option(metavar="CODE", help="Only letters that were buried for this.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 1000,
    show_payload: ShowPayload = False,
    as_json: AsJson = False,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """List the dead letters: which job, why, how often it was tried, how old it is.

    SQS shows a message only by receiving it: while they are listed, the
    letters are invisible to others; afterwards, on Ctrl-C too, they are put
    back. A letter that is received by somebody else is not shown.

    A letter "moved by SQS" was received too often without an answer: look
    for throttles and for a function that does not start. What a note says
    is believed if a worker signed it, which the store of records tells
    (--table, --db, ...). Any other note is shown as what the message claims.

    Exit status: 0 listed, also if there are none; 1 AWS refused; 2 unusable
    arguments or settings; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.dlq.list import ListOptions, list_dead_letters
    from entrypoints.cli.commands.dlq.wanted import DeadLetterOptions
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions

    options = ListOptions(
        url=dead_letter_url,
        letters=DeadLetterOptions(
            job_ids=tuple(job_id or ()),
            operation=operation,
            name=name,
            tenant=tenant,
            reasons=frozenset(() if reason is None else (reason,)),
        ),
        limit=limit,
        as_json=as_json,
        show_payload=show_payload,
        records=RecordsOptions(
            backend=backend, table=table, db=db, namespace=namespace, region=region, endpoint_url=endpoint_url
        ),
    )
    with ended("dlq list", dead_letter_url):
        raise typer.Exit(list_dead_letters(options))


@dlq.command()
def redrive(
    dead_letter_url: DeadLetterUrl,
    queue_url: Annotated[
        str | None,
        typer.Option(
            envvar="QUEUE_URL",
            metavar="URL",
            help="Where to send (default: the queue whose redrive policy names this one).",
        ),
    ] = None,
    job_id: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Letters of this job, with its --operation and --tenant; may be repeated."),
    ] = None,
    reason: Annotated[
        list[str] | None, typer.Option(metavar="CODE", help="Letters buried for this; repeatable.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every letter.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Run completed jobs again (their records are forgotten); send what is too old."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    most: Annotated[int | None, typer.Option("--max", min=1, metavar="N", help="At most so many letters.")] = None,
    as_json: AsJson = False,
    operation: LettersOperation = None,
    tenant: Tenant = None,
    name: WorkerName = None,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Send dead letters back to their queue, knowing what is on record.

    --job-id names a job as onejob show does: of the operation default and of
    no tenant, unless --operation and --tenant say otherwise. A job of several
    letters runs once. A job that failed runs again. One that is completed is only answered, and
    said so; with --force its record is forgotten first (another epoch, other
    effect keys, an audit line) and it runs again. A letter that was first
    sent longer ago than records are kept is left (stale_redrive): it may have
    run before; with --force it is sent as if it were new. A job whose lease
    is running is never forgotten here.

    Each letter is sent first and deleted then. Killed in between, a letter is
    in both queues: its job still runs once. Before a second --force after
    that, look with `onejob show`. A FIFO queue gets the letter in its group,
    behind what is there.

    Exit status: 0 all were sent; 1 some were left, or there were none, or
    AWS refused; 2 unusable arguments or settings; 130 interrupted;
    143 terminated. What is not sent is put back, on Ctrl-C too.
    """
    from entrypoints.cli.commands.dlq.redrive import RedriveOptions
    from entrypoints.cli.commands.dlq.redrive import redrive as run
    from entrypoints.cli.commands.dlq.wanted import DeadLetterOptions
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions

    options = RedriveOptions(
        url=dead_letter_url,
        queue_url=queue_url,
        letters=DeadLetterOptions(
            job_ids=tuple(job_id or ()),
            operation=operation,
            name=name,
            tenant=tenant,
            reasons=frozenset(reason or ()),
        ),
        everything=everything,
        force=force,
        dry_run=dry_run,
        most=most,
        as_json=as_json,
        records=RecordsOptions(
            backend=backend,
            table=table,
            db=db,
            namespace=namespace,
            region=region,
            endpoint_url=endpoint_url,
        ),
    )
    with ended("dlq redrive", dead_letter_url):
        raise typer.Exit(run(options))
