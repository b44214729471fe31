"""`onejob local`: its commands, their options, and what they print."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from entrypoints.cli.commands.local.local import Local, LocalError
from entrypoints.cli.commands.local.view import how_to_use
from entrypoints.emulator.launcher import EmulatorError

local = typer.Typer(
    help="The deployed worker on this machine: the real stack on an AWS emulator, without an account or Docker.",
    no_args_is_help=True,
)


@local.command()
def up(
    context: Annotated[
        list[str] | None,
        typer.Option("--context", "-c", metavar="NAME=VALUE", help="A context value of the stack (docs/deploy.md)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: the stack's outputs.")] = False,
) -> None:
    """Deploy the stack on an AWS emulator that stays, and print how to use it.

    The first time starts the emulator; again deploys what has changed, say
    in src/operations/__init__.py. Needs the CDK command line, which npx takes
    from the npm registry, and Node, which `uv sync` brings.

    For quick trials the function's timeout is 10 s here, its margin 3 s and
    the lease's grace 0 s, unless -c says otherwise. No alarm ever goes off: the
    emulator has no metrics.

    Exit status: 0 deployed; 1 not; 2 unusable arguments; 130 interrupted.
    """
    told = {}
    for one in context or ():
        name, separator, value = one.partition("=")
        if not separator:
            raise typer.BadParameter(f"{one!r}: expected NAME=VALUE", param_hint="-c")
        told[name] = value
    with _failures("up"):
        aws, worker = Local().up(told, lambda step: typer.echo(step, err=True))
    if as_json:
        typer.echo(json.dumps({"endpoint_url": aws.url, **asdict(worker)}, indent=2))
    else:
        typer.echo(how_to_use(aws, worker))


@local.command()
def send(
    bodies: Annotated[list[str], typer.Argument(metavar="BODY...|-", help="Message bodies; - reads one a line.")],
    group: Annotated[str | None, typer.Option(help="The message group, on a FIFO queue.")] = None,
) -> None:
    """Send messages to the deployed worker's queue; prints their ids.

    Example: onejob local send '{"job_id":"job-001"}'

    Exit status: 0 sent; 1 not.
    """
    with _failures("send"):
        for message_id in Local().send(_bodies(bodies), group):
            typer.echo(message_id)


@local.command()
def logs(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Lambda's own lines and the metrics, too.")] = False,
) -> None:
    """Print the worker's log lines, JSON, oldest first.

    Exit status: 0; 1 if nothing is deployed; 130 after --follow.
    """
    from entrypoints.cli.tables import print_line

    with _failures("logs"):
        for line in Local().log_lines(follow=follow):
            if everything or '"event":' in line:
                print_line(line.expandtabs())


@local.command()
def down() -> None:
    """Stop the emulator; everything on it is gone.

    Exit status: 0, also if nothing ran.
    """
    with _failures("down"):
        typer.echo("stopped" if Local().down() else "nothing was running", err=True)


@contextmanager
def _failures(command: str) -> Iterator[None]:
    try:
        yield
    except (EmulatorError, LocalError, OSError) as error:
        typer.echo(f"onejob local {command}: {error}", err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _bodies(told: list[str]) -> Iterator[str]:
    for body in told:
        if body == "-":
            yield from (line for line in map(str.strip, sys.stdin) if line)
        else:
            yield body
