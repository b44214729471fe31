"""`onejob dlq`: its commands and their options. What they do stands in dlq_list.py and dlq_redrive.py."""

from typing import Annotated

import typer

from entrypoints.cli.options import (
    AsJson,
    DeadLetterUrl,
    EndpointUrl,
    Namespace,
    Region,
    ShowPayload,
)

dlq = typer.Typer(help="The dead-letter queue: look into it, and send what is mended back.", no_args_is_help=True)


@dlq.command("list")
def list_(
    dead_letter_url: DeadLetterUrl,
    job_id: Annotated[str | None, typer.Option(metavar="ID", help="Only letters of this job.")] = None,
    reason: Annotated[str | None, typer.Option(metavar="CODE", help="Only letters that were buried for this.")] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = 1000,
    show_payload: ShowPayload = False,
    as_json: AsJson = False,
    namespace: Namespace = "onejob",
    region: Region = None,
    endpoint_url: EndpointUrl = None,
) -> None:
    """List the dead letters: which job, why, how often it was tried, how old it is.

    SQS shows a message only by receiving it: while they are listed, the
    letters are invisible to others; afterwards, on Ctrl-C too, they are put
    back. A letter that is received by somebody else is not shown.

    A letter "moved by SQS" was received too often without an answer: look
    for throttles and for a function that does not start.

    Exit status: 0 listed, also if there are none; 1 AWS refused; 2 unusable
    arguments or settings; 130 interrupted; 143 terminated.
    """
    from entrypoints.cli.dlq_list import ListOptions, list_letters
    from entrypoints.cli.ending import ended

    options = ListOptions(
        url=dead_letter_url,
        namespace=namespace,
        job_id=job_id,
        reason=reason,
        limit=limit,
        as_json=as_json,
        show_payload=show_payload,
        region=region,
        endpoint_url=endpoint_url,
    )
    with ended("dlq list", dead_letter_url):
        raise typer.Exit(list_letters(options))
