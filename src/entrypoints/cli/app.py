"""`onejob`: its commands, in the groups of its help; and its entry. Each command has a folder in `commands`."""

import signal
import sys
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from adapters.forks import install_handler
from entrypoints.cli.commands.demo.command import demo
from entrypoints.cli.commands.dlq.command import dlq
from entrypoints.cli.commands.doctor.command import doctor
from entrypoints.cli.commands.jobs.command import forget, list_jobs, show
from entrypoints.cli.commands.local.command import local
from entrypoints.cli.commands.purge.command import purge
from entrypoints.cli.commands.run.command import run
from entrypoints.cli.commands.send.command import send_jobs
from entrypoints.cli.commands.serve.command import serve
from entrypoints.cli.commands.work.command import work
from entrypoints.cli.output import replace_unencodable
from entrypoints.edge import install_hooks, tell

TERMINATED = 143
UNEXPECTED = 1

app = typer.Typer(
    help="Run each job's effect once on AWS: SQS, Lambda and DynamoDB.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


RUN, OPERATE, TRY = "Run jobs", "Operate them", "Try it on this machine"
app.command("run", rich_help_panel=RUN)(run)
app.command("work", rich_help_panel=RUN)(work)
app.command("send", rich_help_panel=RUN)(send_jobs)
app.command("list", rich_help_panel=OPERATE)(list_jobs)
app.command("show", rich_help_panel=OPERATE)(show)
app.command("forget", rich_help_panel=OPERATE)(forget)
app.add_typer(dlq, name="dlq", rich_help_panel=OPERATE)
app.command("purge", rich_help_panel=OPERATE)(purge)
app.command("doctor", rich_help_panel=OPERATE)(doctor)
app.command("demo", rich_help_panel=TRY)(demo)
app.command("serve", rich_help_panel=TRY)(serve)
app.add_typer(local, name="local", rich_help_panel=TRY)


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
