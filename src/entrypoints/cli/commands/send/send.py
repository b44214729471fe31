"""`onejob send`, put together: the options, the check, the sending, and what the shell is told."""

from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO

from adapters.sqs.groups import is_fifo, is_group
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.sender import SqsSender
from adapters.standard_input import standard_input_withheld
from adapters.system import SystemClock, jitter
from domain.job_factory import JobFactory
from entrypoints.cli.aws import AWS_ERRORS, Aws, explained
from entrypoints.cli.commands.send.check import Checked, Groups, Sending, check, ranges, send
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.exit import EXIT_PROBLEM, INTERRUPTED, checked_namespace, checked_url
from entrypoints.cli.output import say
from entrypoints.cli.progress import Ticker
from entrypoints.cli.tables import print_line, print_object
from entrypoints.registered import registered_operations


@dataclass(frozen=True, slots=True, kw_only=True)
class SendOptions:
    """What the command line asks for."""

    file: str
    queue_url: str
    group_id: str | None
    group_per_job: bool
    skip_invalid: bool
    from_line: int
    dry_run: bool
    as_json: bool
    namespace: str
    region: str | None
    endpoint_url: str | None


def send_file(options: SendOptions) -> int:
    """Check it, send it, and answer the exit status."""
    fifo = _is_fifo(options)
    with TemporaryFile() as spool:
        checked = _check(options, spool, fifo=fifo)
        refused = checked.invalid > 0 and not options.skip_invalid
        if refused:
            _say_what_is_no_job(checked, options)
        if refused or options.dry_run:
            _report(checked, Sending(), options)
            return EXIT_PROBLEM if refused else 0
        client = Aws(options.region, options.endpoint_url).sqs_of(options.queue_url, "--queue-url", tries=1)
        return _send(checked, SqsSender(client, options.queue_url, SystemClock(), jitter), options)


def _check(options: SendOptions, spool: IO[bytes], *, fifo: bool) -> Checked:
    with standard_input_withheld(options.file):  # a module of the user's
        operations = registered_operations()
    return check(
        options.file,
        JobFactory(checked_namespace(options.namespace), operations),
        spool,
        fifo=fifo,
        groups=Groups(options.group_id, options.group_per_job),
        from_line=options.from_line,
        invalid=lambda number, why: say(f"line {number}: {why}"),
    )


def _say_what_is_no_job(checked: Checked, options: SendOptions) -> None:
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in checked.reasons.most_common())
    say(f"onejob send: {checked.invalid:,} of {checked.jobs + checked.invalid:,} lines are no job ({reasons})")
    if not options.dry_run:
        say("nothing is sent: mend them, or send the rest with --skip-invalid")


def _is_fifo(options: SendOptions) -> bool:
    fifo = is_fifo(checked_url(options.queue_url, "--queue-url"))
    if options.group_id is not None and not is_group(options.group_id):
        raise UnusableOptionError(
            f"--group-id {options.group_id!r}: expected 1 to 128 letters, digits and punctuation marks of ASCII"
        )
    if options.group_id is not None and options.group_per_job:
        raise UnusableOptionError("--group-id and --group-per-job: say one of them")
    if fifo and options.group_id is None and not options.group_per_job:
        raise UnusableOptionError("a FIFO queue needs --group-id NAME (one order for all) or --group-per-job")
    if options.group_per_job and not fifo:
        raise UnusableOptionError(f"{options.queue_url} is no FIFO queue: leave out --group-per-job")
    return fifo


def _send(checked: Checked, sender: SqsSender, options: SendOptions) -> int:
    state = Sending()
    try:
        with Ticker() as ticker:
            send(checked, sender, state, ticker.tell)
    except QueueUnavailableError as error:
        state.error = error
    except (KeyboardInterrupt, SystemExit) as stopped:
        say(f"onejob send: interrupted: {state.sent:,} of {checked.jobs:,} jobs were sent, and perhaps ten more")
        _say_how_to_go_on(state, options)
        _report(checked, state, options)
        return INTERRUPTED if isinstance(stopped, KeyboardInterrupt) else int(str(stopped.code))
    if state.error is not None:
        cause = state.error.__cause__ if isinstance(state.error, QueueUnavailableError) else state.error
        text = explained(cause, sender.url) if isinstance(cause, AWS_ERRORS) else str(state.error)
        say(f"onejob send: stopped after {state.sent:,} of {checked.jobs:,} jobs: {text}")
        _say_how_to_go_on(state, options)
    for number, code in state.refused:
        say(f"line {number}: SQS refuses it: {code}")
    if state.held:
        say(f"not sent, since what stands before them in their group was not: lines {ranges(state.held)}")
        if state.error is None:
            _say_how_to_go_on(state, options)
    if state.uncertain:
        say(
            f"SQS's answer was lost: perhaps sent, perhaps not: lines {ranges(state.uncertain)}; "
            "send them again: a job that arrives twice runs once"
        )
    _report(checked, state, options)
    return 0 if state.is_complete and state.error is None else EXIT_PROBLEM


def _say_how_to_go_on(state: Sending, options: SendOptions) -> None:
    if state.next_line is None:
        say("run the same command again")
    else:
        what = "input" if options.file == "-" else "command"
        say(f"to go on: the same {what} with --from-line {state.next_line}; from the start does no harm either")


def _report(checked: Checked, state: Sending, options: SendOptions) -> None:
    if options.as_json:
        print_object(
            sent=state.sent,
            jobs=checked.jobs,
            invalid=checked.invalid,
            refused=[number for number, _ in state.refused],
            uncertain=state.uncertain,
            held=state.held,
            next_line=state.next_line,
        )
    else:
        invalid = f", {checked.invalid:,} lines are no job" if checked.invalid else ""
        print_line(f"{state.sent:,} of {checked.jobs:,} jobs sent{invalid}")
