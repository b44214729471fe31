"""`onejob doctor`: everything that a worker stands on, looked at once, each finding with what mends it."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from rich.console import Console
from rich.text import Text

from adapters.sqs.queue_url import elsewhere
from domain.errors import StoreUnavailableError, UnusableStoreError
from entrypoints.cli.aws import PLACE_SETTINGS, Aws
from entrypoints.cli.commands.doctor.file import file_findings
from entrypoints.cli.commands.doctor.finding import Finding, Level, ask, fail, ok
from entrypoints.cli.commands.doctor.function import FunctionCheck
from entrypoints.cli.commands.doctor.queue import QueueCheck, Reader, url_of
from entrypoints.cli.commands.doctor.table import table_findings
from entrypoints.cli.output import printable
from entrypoints.cli.records import RecordsOptions, open_records
from entrypoints.cli.tables import print_object
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import Backend

if TYPE_CHECKING:
    from adapters.stores.valkey.admin import ValkeyStoreAdmin

_STYLES: Final = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorOptions:
    """What the command line asks for; `settings` are settings that it names, by the names of the environment."""

    function: str | None
    queue_url: str | None
    settings: Mapping[str, str]
    as_json: bool
    region: str | None
    endpoint_url: str | None


def examine(options: DoctorOptions) -> int:
    """Print each finding as soon as it is there, and answer the exit status."""
    counts = dict.fromkeys(Level, 0)
    for finding in findings(options, os.environ):
        counts[finding.level] += 1
        _print(finding, as_json=options.as_json)
    if not options.as_json:
        _say(f"{counts[Level.FAIL]} failed, {counts[Level.WARN]} warnings, {counts[Level.OK]} passed")
    return 1 if counts[Level.FAIL] else 0


def findings(options: DoctorOptions, environment: Mapping[str, str]) -> Iterator[Finding]:
    """In the order in which one would look: who and where, settings, function, records, queues."""
    aws = Aws(options.region, options.endpoint_url)
    function: FunctionCheck | None = None
    if options.function:
        function = FunctionCheck.of(aws.client("lambda"), options.function)
        yield from function.findings()
        environment = function.environment or environment
    try:
        settings = Settings.from_environment({**environment, **options.settings})
    except SettingError as error:
        where = f" of function {options.function}" if function else ""
        yield fail("settings", f"{error}{where}", "set it (docs/settings.md), or name it here: --help")
        return
    yield ok("settings", f"backend {settings.backend}, namespace {settings.namespace}")
    if settings.backend is Backend.SQLITE:
        yield from file_findings(settings.db)
    if settings.backend is Backend.VALKEY:
        yield from _server(options, settings)
    has_queue = bool(options.queue_url or function)
    if settings.backend is Backend.DYNAMODB or has_queue:
        yield from _who_and_where(aws)
    if settings.backend is Backend.DYNAMODB:
        of_table = Aws(settings.table_region or options.region, options.endpoint_url)
        yield from table_findings(of_table.client("dynamodb"), settings.table or "")
    if has_queue:
        yield from _queues(aws, options, settings, function)


def _server(options: DoctorOptions, settings: Settings) -> Iterator[Finding]:
    """Whether the server can be used, whether it answers, and whether it is purged."""
    subject = f"store {settings.backend}"
    where = RecordsOptions(
        backend=settings.backend,
        namespace=settings.namespace,
        region=options.region,
        endpoint_url=options.endpoint_url,
    )
    try:
        with open_records(where) as records:
            records.admin.look(records.key("onejob doctor", "default", None))
            yield ok(subject, "answers")
            from entrypoints.cli.commands.doctor.server import purge_finding  # its client need not be installed

            yield purge_finding(cast("ValkeyStoreAdmin", records.admin))
    except (SettingError, UnusableStoreError, StoreUnavailableError) as error:
        yield fail(subject, str(error), "is the server up, and its setting right (docs/settings.md)?")


def _who_and_where(aws: Aws) -> Iterator[Finding]:
    asked = ask("caller", lambda: aws.client("sts").get_caller_identity())
    if asked.trouble:
        yield asked.trouble
        return
    meta = aws.client("sqs").meta
    yield ok("caller", f"{asked.answer['Arn']}, account {asked.answer['Account']}")
    yield ok("region", f"{meta.region_name}, {meta.endpoint_url}")


def _queues(aws: Aws, options: DoctorOptions, settings: Settings, function: FunctionCheck | None) -> Iterator[Finding]:
    client = aws.client("sqs")
    url = options.queue_url
    if url is None and function is not None and (arn := function.queue_arn):
        asked = ask(f"queue {arn}", lambda: url_of(client, arn))
        if asked.trouble:
            yield asked.trouble
            return
        url = str(asked.answer)
    if url is None:
        return
    for told, name in ((url, "queue"), (settings.dead_letter_queue_url, "dead-letter queue")):
        if told is not None and (why := elsewhere(told, client.meta.region_name, client.meta.endpoint_url)):
            yield fail(f"{name} {told}", why, PLACE_SETTINGS)
            return
    reader = None
    if function is not None and function.timeout is not None:
        reader = Reader(function.name, function.timeout, function.window)
    yield from QueueCheck(
        client=client,
        url=url,
        dead_letter_url=settings.dead_letter_queue_url,
        retention=settings.retention,
        max_attempts=settings.max_attempts,
        reader=reader,
    ).findings()


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        print_object(level=finding.level, subject=finding.subject, text=finding.text, fix=finding.fix or None)
        return
    fix = f". Mend: {finding.fix}" if finding.fix else ""
    _say(f"{finding.subject}: {finding.text}{fix}", finding.level)


def _say(text: str, level: Level | None = None) -> None:
    head = (f"{level:<5} ", _STYLES[level]) if level else ""
    Console(highlight=False).print(Text.assemble(head, printable(text)), soft_wrap=True)
