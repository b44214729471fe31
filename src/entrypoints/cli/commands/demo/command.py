"""`onejob demo`: its options and its help."""

import os
import sys
from typing import Annotated, Final, NoReturn

import typer

TERMINATED: Final = 143


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
    from entrypoints.cli.commands.demo import view as demo_view
    from entrypoints.cli.commands.demo.demo import run_demo
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
    raise typer.Exit(0 if result.passed else 1)


def _leave(status: int) -> NoReturn:
    """At once: an operation that still runs in a thread would be waited for, and go on without its emulator."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
