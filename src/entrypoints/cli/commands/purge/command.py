"""`onejob purge`: its options and its help."""

from typing import Annotated

import typer

from entrypoints.cli.options import AsJson, BackendName, DbFile, EndpointUrl, Region, TableName


def purge(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count what would be deleted, and delete nothing.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Look at no more than N records.")] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(min=0, max=31_536_000, metavar="SECONDS", help="Begin no page after so long (at most a year)."),
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="KEY", help="Go on where another purge ended, as it said.")
    ] = None,
    as_json: AsJson = False,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Delete records whose retention is over, of every namespace.

    DynamoDB does so by itself where TTL is on; this is for tables without it,
    for SQLite files, and for Valkey servers, where nothing else deletes a
    record: schedule it (docs/stores.md). It goes through the store page by page, and a record
    that is claimed meanwhile stays. What is deleted would have run again
    anyway: nobody answers for it.

    It may be stopped at any time, and says how to go on. On DynamoDB it reads
    the whole table, which costs read units.

    Exit status: 0 the end, --limit or --max-seconds was reached; 1 the store
    cannot answer; 2 unusable arguments or settings; 130 interrupted;
    143 terminated.
    """
    from entrypoints.cli.commands.purge.purge import PurgeOptions
    from entrypoints.cli.commands.purge.purge import purge as run
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions

    options = PurgeOptions(
        dry_run=dry_run,
        limit=limit,
        max_seconds=max_seconds,
        after=after,
        as_json=as_json,
        records=RecordsOptions(backend=backend, table=table, db=db, region=region, endpoint_url=endpoint_url),
    )
    with ended("purge", table or ""):
        raise typer.Exit(run(options))
