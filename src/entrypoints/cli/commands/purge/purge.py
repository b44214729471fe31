"""`onejob purge`, put together: how far it goes, what it says, and how to go on."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from shlex import quote
from typing import Final

from adapters.system import jitter
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.output import say
from entrypoints.cli.progress import Ticker
from entrypoints.cli.records import Records, RecordsOptions, open_records
from entrypoints.cli.tables import print_line, print_object
from entrypoints.purging import Purge

PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeOptions:
    """What the command line asks for."""

    dry_run: bool
    limit: int | None
    max_seconds: float | None
    after: str | None
    as_json: bool
    records: RecordsOptions


def purge(options: PurgeOptions) -> int:
    """Do it, or count what would be done, and answer the exit status. Raises `StoreUnavailableError`."""
    if options.dry_run and options.after is not None:
        raise UnusableOptionError("--dry-run counts from the beginning: leave out --after")
    with open_records(options.records) as records, Ticker() as ticker:
        now = records.clock.now()
        until = None if options.max_seconds is None else now + timedelta(seconds=options.max_seconds)
        if options.dry_run:
            _count(records, options, until, ticker)
        else:
            _delete(records, options, until, ticker)
    return 0


def _delete(records: Records, options: PurgeOptions, until: datetime | None, ticker: Ticker) -> None:
    run = Purge(admin=records.admin, clock=records.clock, jitter=jitter, page=PAGE, after=options.after)
    try:
        run.run(
            until=until,
            most=options.limit,
            tell=lambda: ticker.tell(f"{run.seen:,} records seen, {run.deleted:,} deleted"),
        )
    finally:
        if options.as_json:
            print_object(seen=run.seen, deleted=run.deleted, after=run.after, complete=run.is_complete)
        else:
            print_line(f"{run.seen:,} records seen, {run.deleted:,} deleted")
        if not run.is_complete:
            say("to go on: the same command" + (f" with --after {quote(run.after)}" if run.after else ""))


def _count(records: Records, options: PurgeOptions, until: datetime | None, ticker: Ticker) -> None:
    seen = over = 0
    for record in islice(records.admin.records(), options.limit):
        now = records.clock.now()
        if until is not None and now >= until:
            break
        seen += 1
        over += record.retention_is_over(now)
        ticker.tell(f"{seen:,} records seen, {over:,} would be deleted")
    if options.as_json:
        print_object(seen=seen, would_delete=over)
    else:
        print_line(f"{seen:,} records seen, {over:,} would be deleted")
