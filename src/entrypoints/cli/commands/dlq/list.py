"""`onejob dlq list`: what waits in the dead-letter queue, and why."""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from adapters.sqs.dead_letter_queue import HOLD_SECONDS, DeadLetterQueue, ReceivedDeadLetter
from adapters.sqs.notes import UNSIGNED, Notes
from adapters.system import SystemClock
from domain.errors import StoreUnavailableError, UnusableStoreError
from domain.job import Job
from entrypoints.cli.commands.dlq.wanted import BY_SQS, LONGEST_CLAIM, DeadLetterOptions, Wanted, claims, counted
from entrypoints.cli.exit import checked_namespace, checked_url
from entrypoints.cli.options import DEFAULT_NAMESPACE
from entrypoints.cli.output import say
from entrypoints.cli.records import RecordsOptions, open_records
from entrypoints.cli.tables import ago, iso, print_line, print_object, print_table
from entrypoints.settings import SettingError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

NOTED: Final = ("reason", "detail", "error_type", "attempts", "receives", "first_sent", "operation")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """What the command line asks for."""

    url: str
    letters: DeadLetterOptions
    limit: int
    as_json: bool
    show_payload: bool
    records: RecordsOptions


def reason_of(row: dict[str, Any]) -> str:
    """As `label`, of a row."""
    return row["reason"] or claims((row["claim"] or {}).get("reason")) or BY_SQS


def claim_of(letter: ReceivedDeadLetter) -> dict[str, Any] | None:
    """What the message says of itself where no worker is known to have written it: for people, and for nothing else."""
    told = {
        name: value[:LONGEST_CLAIM] if isinstance(value, str) else value
        for name, value in letter.claim.items()
        if name in NOTED and type(value) in (str, int)
    }
    return told or None


def list_dead_letters(options: ListOptions) -> int:
    """Print them, put them back, and answer the exit status."""
    namespace = checked_namespace(options.records.namespace or DEFAULT_NAMESPACE)
    wanted = Wanted.of(options.letters, namespace)
    client = options.records.aws.sqs_of(checked_url(options.url, "--dead-letter-url"), "--dead-letter-url")
    attributes = queue_attributes(client, options.url)
    warn_of_own_redrive(attributes)
    warn_of_held(attributes)
    with _notes(options.records) as notes:
        box = DeadLetterQueue(client, options.url, attributes["QueueArn"], notes)
        return _list(box, wanted, options, attributes)


def _list(box: DeadLetterQueue, wanted: Wanted, options: ListOptions, attributes: dict[str, str]) -> int:
    now = SystemClock().now()
    rows: list[dict[str, Any]] = []
    shown, is_cut = 0, False
    try:
        for letter in box.letters():
            job = letter.job(wanted.factory)
            if not wanted.has(letter, job):
                continue
            if shown == options.limit:
                is_cut = True
                break
            shown += 1
            row = as_row(letter, job, now, show_payload=options.show_payload)
            if options.as_json:
                print_object(**row)
            else:
                rows.append(row)
    finally:
        put_back(box)
    if not options.as_json:
        _show(rows, now, show_payload=options.show_payload)
    wanted.say_unnamed()
    if is_cut:
        say(f"there are more: --limit {options.limit * 10}")
    elif attributes.get("FifoQueue") == "true" and wanted.is_everything and shown < waiting(attributes):
        of = waiting(attributes)
        say(f"{shown} of about {of}: while one is looked at, a FIFO queue shows no more of its group")
    return 0


@contextmanager
def _notes(options: RecordsOptions) -> Iterator[Notes]:
    """Told by the store of records whose notes they are; without one every note is only a claim, and that is said."""
    with ExitStack() as stack:
        try:
            if not options.is_told:
                raise SettingError("--table, --db or --backend says where records are")
            notes = stack.enter_context(open_records(options)).notes
            if notes.secret is not None:
                notes.secret.find()
        except (SettingError, UnusableStoreError, StoreUnavailableError) as error:
            say(f"note: whose notes these are cannot be told, and each is shown as the message's claim: {error}")
            notes = UNSIGNED
        yield notes


def as_row(letter: ReceivedDeadLetter, job: Job | None, now: datetime, *, show_payload: bool) -> dict[str, Any]:
    """For scripts, in a fixed order; without a job, `job_id` is null."""
    return {
        "job_id": job.job_id if job else None,
        "operation": job.operation if job else None,
        "tenant": job.tenant if job else None,
        "key": str(job.key) if job else None,
        "reason": letter.reason,
        "claim": claim_of(letter),
        "detail": letter.detail,
        "error_type": letter.error_type,
        "attempts": letter.attempts,
        "receives": letter.receives,
        "first_sent": iso(letter.first_sent),
        "age_seconds": int((now - letter.first_sent).total_seconds()) if letter.first_sent else None,
        "message_id": letter.message.message_id,
        **({"body": letter.message.body} if show_payload else {}),
    }


def queue_attributes(client: "SQSClient", url: str) -> dict[str, str]:
    """All of them, by name."""
    found = client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return {str(name): value for name, value in found.items()}


def waiting(attributes: dict[str, str]) -> int:
    """About so many messages are visible."""
    return int(attributes.get("ApproximateNumberOfMessages", 0))


def warn_of_own_redrive(attributes: dict[str, str]) -> None:
    """To look is to receive, which a redrive policy counts."""
    if attributes.get("RedrivePolicy"):
        say(
            "note: this queue has a redrive policy of its own: each look counts as a receive, and after so many SQS "
            "moves a letter on. A dead-letter queue needs none"
        )


def warn_of_held(attributes: dict[str, str]) -> None:
    """None of these is shown: an empty list is no empty queue."""
    if held := int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0)):
        say(
            f"note: about {held} letters are held by somebody else, or by a command that was killed, and not shown: "
            f"look again in {HOLD_SECONDS} s"
        )


def put_back(box: DeadLetterQueue) -> None:
    """Say so where it takes a while."""
    if failed := box.put_back():
        say(f"{failed} letters could not be put back: others see them again within {HOLD_SECONDS} s")


def _show(rows: list[dict[str, Any]], now: datetime, *, show_payload: bool) -> None:
    if not rows:
        print_line("no dead letters")
        return
    headings = ["JOB", "OPERATION", "REASON", "DETAIL", "ATTEMPTS", "RECEIVES", "FIRST SENT", "MESSAGE"]
    if show_payload:
        headings.append("BODY")
    rows.sort(key=lambda row: (reason_of(row), row["job_id"] or ""))
    print_table(headings, [_cells(row, now) for row in rows])
    reasons = Counter(reason_of(row) for row in rows)
    told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    print_line(f"{counted(row['key'] for row in rows)}: {told}")


def whose(row: dict[str, Any]) -> str | None:
    """The job, and its tenant if it has one."""
    job_id: str | None = row["job_id"]
    return f"{job_id} (tenant {row['tenant']})" if row["tenant"] else job_id


def _cells(row: dict[str, Any], now: datetime) -> list[object]:
    first = datetime.fromisoformat(row["first_sent"]) if row["first_sent"] else None
    return [
        whose(row),
        row["operation"],
        reason_of(row),
        ": ".join(filter(None, (row["detail"], row["error_type"]))),
        row["attempts"],
        row["receives"],
        ago(first, now),
        row["message_id"],
        *([row["body"]] if "body" in row else []),
    ]
