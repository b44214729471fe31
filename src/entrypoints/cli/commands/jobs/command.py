"""`onejob show`, `list` and `forget`: their options, and what they print. What they do stands in jobs.py."""

from typing import Annotated

import typer

from entrypoints.cli.options import (
    AsJson,
    BackendName,
    DbFile,
    EndpointUrl,
    Namespace,
    OperationName,
    Region,
    ShowPayload,
    TableName,
    Tenant,
)

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="The job's id, as in its message.")]


def show(
    job_id: JobId,
    operation: OperationName = "default",
    tenant: Tenant = None,
    show_payload: ShowPayload = False,
    as_json: AsJson = False,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Show what is on record of a job, as it is now.

    Status: running (a worker holds it), lapsed (its worker is gone),
    released (its last attempt failed), completed, expired (nobody answers
    for it any more). Attempts (claims, ever), runs counted (of this life: the
    limit is on these), epoch, lease, first and last seen, the last error, the
    fingerprint of its payload, its key in the table.

    Example: onejob show job-001 --table MyTable

    Exit status: 0 shown; 1 there is no record, or the store cannot answer;
    2 unusable arguments or settings; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.jobs.jobs import as_object, as_rows, found
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions, open_records
    from entrypoints.cli.tables import print_facts, print_object

    where = RecordsOptions(
        backend=backend, table=table, db=db, namespace=namespace, region=region, endpoint_url=endpoint_url
    )
    with ended("show", table or ""), open_records(where) as records:
        record, now = found(records, records.key(job_id, operation, tenant)), records.clock.now()
        if as_json:
            print_object(**as_object(record, now, show_payload=show_payload))
        else:
            print_facts(as_rows(record, now, show_payload=show_payload))


def list_jobs(
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", help="running, lapsed, released, completed or expired; may be repeated."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Touched by a worker since: 30m, 2h, 3d ago, or 2026-01-31T08:00Z."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most so many.")] = None,
    show_payload: ShowPayload = False,
    as_json: AsJson = False,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """List jobs on record, in no order, each as soon as it is read.

    It reads the whole store until --limit is reached: on a large DynamoDB
    table that takes time, and read units.

    Example: onejob list --status lapsed --status released --since 2h

    Exit status: 0 listed, also if there are none; 1 the store cannot answer;
    2 unusable arguments or settings; 130 interrupted; 143 terminated.
    """
    from itertools import islice

    from domain.record import State
    from entrypoints.cli.commands.jobs.jobs import as_object, listed, moment
    from entrypoints.cli.errors import UnusableOptionError
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions, open_records
    from entrypoints.cli.tables import ago, print_line, print_object

    where = RecordsOptions(
        backend=backend, table=table, db=db, namespace=namespace, region=region, endpoint_url=endpoint_url
    )
    with ended("list", table or ""):
        for one in status or ():
            if one not in list(State):
                raise UnusableOptionError(f"--status {one}: expected one of {', '.join(State)}")
        with open_records(where) as records:
            now = records.clock.now()
            start = None if since is None else moment(since, now)
            matching = listed(records, frozenset(State(one) for one in status or ()), start)
            if not as_json:
                print_line(f"{'STATUS':<10} {'ATTEMPTS':>8} {'EPOCH':>5}  {'LAST SEEN':<12} {'OPERATION':<16} JOB")
            for record in islice(matching, limit):
                now = records.clock.now()
                if as_json:
                    print_object(**as_object(record, now, show_payload=show_payload))
                    continue
                seen = ago(record.last_seen or record.first_seen, now) or "-"
                numbers = f"{record.attempts:>8} {record.epoch:>5}"
                name, job = record.key.operation, record.job_id or record.key.digest
                print_line(f"{record.state(now):<10} {numbers}  {seen:<12} {name:<16} {job}")


def forget(
    job_id: JobId,
    operation: OperationName = "default",
    tenant: Tenant = None,
    force: Annotated[
        bool, typer.Option("--force", help="Although a worker has not ended it: the effect may then happen twice.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    backend: BackendName = None,
    table: TableName = None,
    db: DbFile = None,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Let a job run again: show its record, ask, and drop its answer.

    The job runs at its next delivery: send it again, or redrive its dead
    letter. Attempts go on counting, and its effect keys change (another
    epoch), so that a system it calls takes the run for a new one. A
    corrected payload may run under the same id.

    Nothing is done if the record is no longer as it was shown, or, without
    --force, while a worker has not ended it: a running job, and a lapsed one,
    which the next delivery takes over under the same effect keys. For
    about a second after a job is first forgotten, a redelivered message may
    still be answered with the old answer (DynamoDB); not after a later one.
    On a FIFO queue, onejob send is dropped within five minutes of the last
    one with the same payload; onejob dlq redrive is not.

    An audit line (JSON, event job_forgotten: who, which job, before and
    after) goes to standard error.

    Exit status: 0 forgotten; 1 nothing was done; 2 unusable arguments or
    settings; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.jobs import jobs
    from entrypoints.cli.errors import NothingDoneError
    from entrypoints.cli.exit import ended
    from entrypoints.cli.records import RecordsOptions, open_records
    from entrypoints.cli.tables import print_facts, print_line, print_object

    where = RecordsOptions(
        backend=backend, table=table, db=db, namespace=namespace, region=region, endpoint_url=endpoint_url
    )
    with ended("forget", table or ""), open_records(where) as records:
        seen, now = jobs.found(records, records.key(job_id, operation, tenant)), records.clock.now()
        if not as_json:
            print_facts(jobs.as_rows(seen, now, show_payload=False))
        jobs.check_forgettable(seen, now, force=force)
        try:
            agreed = yes or typer.confirm("Let it run again?", err=True)
        except typer.Abort:
            agreed = False
        if not agreed:
            raise NothingDoneError("nothing is done: answer y, or say --yes")
        after = jobs.forget(records, seen, force=force)
        if as_json:
            print_object(**jobs.as_object(after, records.clock.now(), show_payload=False))
        else:
            print_line(
                f"forgotten: it runs at its next delivery, epoch {after.epoch} (onejob send, onejob dlq redrive)"
            )
