"""`onejob work`: its options, and what they mean."""

from datetime import timedelta
from typing import Annotated, Final

import typer

from entrypoints.cli.options import KeyName

LONGEST_SECONDS: Final = 43_000
"""What fits into SQS's 12 hours, with the time to write an answer."""


def work(
    queue_url: Annotated[
        str, typer.Option(metavar="URL", envvar="QUEUE_URL", help="The SQS queue to work off, standard or FIFO.")
    ],
    operation: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|MODULE:FUNCTION",
            help="An operation of OPERATIONS in src/operations (default: all of them, and the one named default for "
            "messages that name none), or any function(job, attempt) or Operation as package.module:NAME.",
        ),
    ] = None,
    name: KeyName = None,
    lease: Annotated[
        int,
        typer.Option(
            min=2,
            max=3600,
            envvar="LEASE_SECONDS",
            help="Seconds for which a job is held and its message invisible; both are renewed at each third of it, "
            "and after a crash another worker waits for their end.",
        ),
    ] = 300,
    single_host: Annotated[
        bool,
        typer.Option(
            "--single-host", help="All workers of this queue are on this machine: IDEMPOTENCY_BACKEND=sqlite."
        ),
    ] = False,
    max_seconds: Annotated[
        int,
        typer.Option(
            min=1,
            max=LONGEST_SECONDS,
            envvar="MAX_SECONDS",
            help="Seconds that an attempt may take; then its lease and its message are renewed no more, and another "
            "worker takes the job over.",
        ),
    ] = LONGEST_SECONDS,
    shutdown_seconds: Annotated[
        int,
        typer.Option(
            min=0,
            max=43_200,
            envvar="SHUTDOWN_SECONDS",
            help="After SIGTERM or Ctrl-C, what runs may take so long to finish (ECS kills after 30 s by default).",
        ),
    ] = 25,
    poll_seconds: Annotated[
        int, typer.Option(min=1, max=20, help="Length of a long poll; a stop waits for the one that is under way.")
    ] = 20,
    health_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            envvar="HEALTH_PORT",
            help="Answer GET /healthz (200 while the worker receives) and GET /readyz (200 until it stops) there; "
            "otherwise 503. Default: no port is opened.",
        ),
    ] = None,
    health_host: Annotated[
        str, typer.Option(envvar="HEALTH_HOST", help="The address to answer on; in a container usually 0.0.0.0.")
    ] = "127.0.0.1",
) -> None:
    """Work off an SQS queue from a container or a machine of your own.

    The same code, records, logs and metrics as the deployed Lambda, and both
    may work on one queue. Set IDEMPOTENCY_BACKEND (dynamodb with
    IDEMPOTENCY_TABLE; sqlite with --single-host) and DEAD_LETTER_QUEUE_URL;
    JOB_CONCURRENCY is how many jobs run at a time (10). docs/settings.md has the
    other settings, docs/work.md containers and permissions.

    A job may take up to --max-seconds (SQS's limit is 12 hours); its lease
    and its message's invisibility are renewed while it runs. SIGTERM and Ctrl-C stop: nothing
    more is received, what has not started goes back at once, what runs is
    finished. A second signal leaves at once. Nothing is lost: what is cut off
    is taken over when its lease ends.

    Example: IDEMPOTENCY_BACKEND=dynamodb IDEMPOTENCY_TABLE=records onejob work
    --queue-url https://sqs.eu-west-1.amazonaws.com/123456789012/jobs

    Exit status: 0 told to stop, and all that ran is finished; 1 told to stop,
    and some was still running after --shutdown-seconds, or the output was
    closed; 2 unusable arguments, settings or queue; 130 or 143 left at once
    on a second Ctrl-C or SIGTERM.
    """
    from entrypoints.cli.commands.work.work import WorkOptions, work_off

    options = WorkOptions(
        queue_url=queue_url,
        operation=operation,
        name=name,
        lease=timedelta(seconds=lease),
        longest=timedelta(seconds=max_seconds),
        single_host=single_host,
        shutdown=timedelta(seconds=shutdown_seconds),
        poll=timedelta(seconds=poll_seconds),
        health_port=health_port,
        health_host=health_host,
    )
    raise typer.Exit(work_off(options))
