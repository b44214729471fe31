"""`onejob`: the commands, their options and exit codes. What they do stands in modules of their own."""

import os
import signal
import sys
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from adapters.forks import install_handler
from entrypoints.cli.dlq_app import dlq
from entrypoints.cli.doctor_app import doctor
from entrypoints.cli.jobs_app import forget, list_jobs, show
from entrypoints.cli.local_app import local
from entrypoints.cli.options import DEFAULT_DB, KeyName, OwnDbFile, OwnNamespace
from entrypoints.cli.output import replace_unencodable
from entrypoints.cli.purge_app import purge
from entrypoints.cli.send_app import send_jobs
from entrypoints.cli.serve_app import serve
from entrypoints.cli.work_app import work
from entrypoints.edge import install_hooks, tell
from entrypoints.store_registry import Backend

TERMINATED = 143
UNEXPECTED = 1

app = typer.Typer(
    help="Run each job's effect once on AWS: SQS, Lambda and DynamoDB.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.add_typer(local, name="local")
app.command()(work)
app.command()(serve)
app.command("doctor")(doctor)
app.command("forget")(forget)
app.command("list")(list_jobs)
app.command("purge")(purge)
app.command("send")(send_jobs)
app.command("show")(show)
app.add_typer(dlq, name="dlq")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onejob {version('onejob')}")
        raise typer.Exit


@app.callback()
def onejob(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run each job's effect once on AWS: SQS, Lambda and DynamoDB."""
    replace_unencodable()


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the story.")] = False,
) -> None:
    """Watch one job run once, on this machine: no AWS account, no Docker.

    Starts an AWS emulator on a free port, makes a queue, a dead-letter queue
    and a table, sends {"job_id":"job-001"} twice and one malformed message,
    and has the real Lambda handler work them off. Everything that was
    started is stopped again, on Ctrl-C too.

    It runs the operations registered in src/operations/__init__.py, as the
    deployed worker would.

    Exit status: 0 if what it shows is so; 1 if not, or if the emulator
    cannot be started; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli import demo_view
    from entrypoints.cli.demo import run_demo
    from entrypoints.emulator.launcher import EmulatorError

    show = demo_view.Silent() if as_json else demo_view.Story()
    try:
        result = run_demo(show.step)
    except EmulatorError as error:
        typer.echo(f"onejob demo: {error}", err=True)
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, SystemExit) as stopped:
        typer.echo("onejob demo: interrupted; everything is stopped", err=True)
        _leave(130 if isinstance(stopped, KeyboardInterrupt) else TERMINATED)
    show.result(result)
    if as_json:
        typer.echo(demo_view.as_json(result))
    raise typer.Exit(0 if result.is_so else 1)


@app.command()
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
    from entrypoints.cli.run import run_file
    from entrypoints.cli.run_options import RunOptions

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


def main() -> None:
    """The entry of the `onejob` command. SIGTERM, and a terminal that is closed, end it as Ctrl-C does: nothing is
    left running.
    """
    replace_unencodable()  # for the help, which is shown before any command begins
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        install_handler(signal.SIGINT, signal.default_int_handler)
    install_handler(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        install_handler(signal.SIGHUP, _terminated)
    install_hooks()
    try:
        app()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        tell("unexpected error", error)
        sys.exit(UNEXPECTED)


def _terminated(_signal: int, _frame: object) -> NoReturn:
    sys.exit(TERMINATED)


def _leave(status: int) -> NoReturn:
    """At once: an operation that still runs in a thread would be waited for, and go on without its emulator."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
