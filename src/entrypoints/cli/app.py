"""`onejob`: the commands, their options and exit codes. What they do stands in modules of their own."""

import signal
import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

app = typer.Typer(
    help="Run each job's effect once on AWS: SQS, Lambda and DynamoDB.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


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


@app.command()
def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of the story.")] = False,
) -> None:
    """Watch one job run once, on this machine: no AWS account, no Docker.

    Starts an AWS emulator on a free port, makes a queue, a dead-letter queue and a table, sends
    {"job_id":"job-001"} twice and one malformed message, and has the real Lambda handler work them off. Everything
    that was started is stopped again, on Ctrl-C too.

    It runs the operations registered in src/domain/business.py, as the deployed worker would.

    Exit status: 0 if what it shows is so, 1 if not or if the emulator cannot be started, 130 on Ctrl-C.
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
    except KeyboardInterrupt:
        typer.echo("onejob demo: interrupted; everything is stopped", err=True)
        raise typer.Exit(130) from None
    show.result(result)
    if as_json:
        typer.echo(demo_view.as_json(result))
    raise typer.Exit(0 if result.is_so else 1)


def main() -> None:
    """The entry of the `onejob` command. SIGTERM ends it as Ctrl-C does: nothing is left running."""
    signal.signal(signal.SIGTERM, _terminated)
    app()


def _terminated(_signal: int, _frame: object) -> NoReturn:
    sys.exit(143)
