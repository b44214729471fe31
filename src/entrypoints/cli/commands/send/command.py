"""`onejob send`: its options. What it does stands in send.py and send_file.py."""

from typing import Annotated

import typer

from entrypoints.cli.options import AsJson, EndpointUrl, Namespace, QueueUrl, Region


def send_jobs(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="Job messages, one JSON object a line, plain or gzip; - reads standard input."
        ),
    ],
    queue_url: QueueUrl,
    group_id: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The message group of all these jobs: their order on a FIFO queue, a tenant on a fair one.",
        ),
    ] = None,
    group_per_job: Annotated[
        bool, typer.Option("--group-per-job", help="FIFO queue: a message group for each job, in no order.")
    ] = False,
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Send the jobs although some lines are none.")
    ] = False,
    from_line: Annotated[int, typer.Option(min=1, metavar="N", help="Begin at this line of the file.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the lines, and send nothing.")] = False,
    as_json: AsJson = False,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """Send a file of jobs to a worker's queue.

    A line is {"job_id": "...", ...}, with "operation" and "tenant" if you
    like; the rest is the job's payload. Every line is checked before the
    first one is sent: if one is no job, it is reported and nothing is sent.

    Jobs go out in batches of ten. What SQS refuses for the moment is tried
    again. Nothing is sent twice: where SQS's answer is lost, those lines
    are reported as perhaps sent. To send them again does no harm: a job that
    arrives twice runs once. After Ctrl-C or an error, --from-line goes on.

    On a FIFO queue, SQS itself drops a job with the same payload that was
    sent within the last five minutes. A group keeps the order of the file:
    its jobs go one by one, and none behind a job that SQS did not take.

    Example: onejob send jobs.jsonl --queue-url "$QUEUE_URL"

    Exit status: 0 all sent; 1 some or all not sent, or perhaps not;
    2 unusable arguments or settings; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli.commands.send.send import SendOptions, send_file
    from entrypoints.cli.exit import ended

    options = SendOptions(
        file=file,
        queue_url=queue_url,
        group_id=group_id,
        group_per_job=group_per_job,
        skip_invalid=skip_invalid,
        from_line=from_line,
        dry_run=dry_run,
        as_json=as_json,
        namespace=namespace,
        region=region,
        endpoint_url=endpoint_url,
    )
    with ended("send", queue_url):
        raise typer.Exit(send_file(options))
