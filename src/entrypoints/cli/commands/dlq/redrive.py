"""`onejob dlq redrive`: letters back to their source. Each is sent first and deleted then: never lost, perhaps doubled.

The record of each job decides what is done (`domain.redrive`).
"""

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from adapters.sqs.dead_letter_queue import DeadLetterQueue, ReceivedDeadLetter
from adapters.sqs.groups import is_fifo
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue_url import is_same_queue
from adapters.sqs.redrive import send_back, source_urls
from domain.errors import LeaseHeldError, RecordChangedError, StoreUnavailableError
from domain.identity import JobKey, same_scheme
from domain.job import Job
from domain.record import Record
from domain.redrive import Decision, Verdict, decide
from entrypoints.cli.aws import AWS_ERRORS, check_place, explained
from entrypoints.cli.commands.dlq.list import (
    claim_of,
    put_back,
    queue_attributes,
    reason_of,
    warn_of_held,
    warn_of_own_redrive,
    whose,
)
from entrypoints.cli.commands.dlq.wanted import DeadLetterOptions, Wanted, counted, plural
from entrypoints.cli.errors import NothingDoneError, UnusableOptionError
from entrypoints.cli.exit import EXIT_PROBLEM, checked_url
from entrypoints.cli.progress import Ticker
from entrypoints.cli.records import Records, RecordsOptions, audit, open_records
from entrypoints.cli.tables import print_line, print_object, print_table

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

MEANING = {
    Verdict.RUNS: "runs again",
    Verdict.WAITS: "runs when the lease that is held is over",
    Verdict.ANSWERED: "is done already: answered from the record",
    Verdict.REPEATED: "its job is among those sent: it runs once, and this one is answered",
    Verdict.NO_JOB: "left: no job inside; it would be buried again (--force sends it)",
    Verdict.STALE: "left: older than the retention of records, it may have run before (--force sends it)",
    Verdict.MISMATCH: "left: its record has another payload; it would be buried again (--force forgets the record)",
    Verdict.CAME_BACK: "left: it was sent and is back already",
    Verdict.DEDUPLICATED: "left: SQS took it for one that was sent before, and dropped it; redrive it in five minutes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveOptions:
    """What the command line asks for."""

    url: str
    queue_url: str | None
    letters: DeadLetterOptions
    everything: bool
    force: bool
    dry_run: bool
    most: int | None
    as_json: bool
    records: RecordsOptions


@dataclass(slots=True)
class Redriver:
    """One redrive. `sent_ids` are those that its messages now have: one that is buried again is known by them. A job
    that was sent is never forgotten for its next letter: the worker may have run it meanwhile. Of what was sent (or
    would be) `sent_jobs` has the fingerprints, `jobs` what becomes of each job, and `keys` the job of each message.
    """

    options: RedriveOptions
    box: DeadLetterQueue
    sender: "SQSClient"
    target: str
    records: Records
    who: str | None = None
    sent_ids: set[str] = field(default_factory=set)
    sent_jobs: dict[JobKey, str] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)
    jobs: dict[JobKey, Verdict] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def take(self, letter: ReceivedDeadLetter, job: Job | None) -> dict[str, Any]:
        """What became of it. Raises `QueueUnavailableError`, `StoreUnavailableError`: then it is where it was."""
        record = None if job is None else self.records.admin.look(job.key)
        decision = self._decide(letter, job, record)
        note, forgotten = "", False
        if decision.send and not self.options.dry_run:
            if decision.forget and record is not None:
                record, note = self._forget(record, letter)
                forgotten = not note
            if decision.restart and record is not None:
                note = self._restart(record)
            if not note:
                decision = self._send(decision, letter, record)
        is_sent = decision.send and not note
        self.counts["sent" if is_sent else "left"] += 1
        if is_sent:
            self._count(decision, job)
        return {
            "job_id": job.job_id if job else None,
            "operation": job.operation if job else None,
            "tenant": job.tenant if job else None,
            "reason": letter.reason,
            "claim": claim_of(letter),
            "message_id": letter.message.message_id,
            "verdict": decision.verdict,
            "sent": is_sent and not self.options.dry_run,
            "forgotten": forgotten,
            "explanation": note or MEANING[decision.verdict],
        }

    def _send(self, decision: Decision, letter: ReceivedDeadLetter, record: Record | None) -> Decision:
        """Send it and delete it; another decision, and the letter stays, where SQS dropped what was sent."""
        epoch = record.epoch if record else 1
        sent_id = send_back(
            self.sender, self.target, letter, self.records.notes, epoch=epoch, forget_age=decision.forget_age
        )
        if sent_id in self.sent_ids:
            return Decision(Verdict.DEDUPLICATED, send=False)
        self.sent_ids.add(sent_id)
        self.box.delete(letter)
        return decision

    def _count(self, decision: Decision, job: Job | None) -> None:
        self.keys.append(None if job is None else str(job.key))
        if job is not None:
            self.sent_jobs.setdefault(job.key, job.fingerprint)
            self.jobs.setdefault(job.key, decision.verdict)

    def asked_on(self, trouble: Exception) -> str:
        """What could not be had: letters are sent to one queue, received and deleted on the other."""
        if not isinstance(trouble, QueueUnavailableError):
            return "the table of records"
        cause = trouble.__cause__
        sending = isinstance(cause, ClientError) and cause.operation_name == "SendMessage"
        return self.target if sending else self.options.url

    def _decide(self, letter: ReceivedDeadLetter, job: Job | None, record: Record | None) -> Decision:
        if letter.source_message_id in self.sent_ids or letter.message.message_id in self.sent_ids:
            return Decision(Verdict.CAME_BACK, send=False)
        now, retention = self.records.clock.now(), self.records.settings.retention
        force = self.options.force and (job is None or job.key not in self.sent_jobs)
        decision = decide(job, record, first_sent=letter.first_sent, now=now, retention=retention, force=force)
        if job is None or job.key not in self.sent_jobs or decision.verdict not in (Verdict.RUNS, Verdict.WAITS):
            return decision
        sent = self.sent_jobs[job.key]
        if same_scheme(sent, job.fingerprint) and sent != job.fingerprint:
            return Decision(Verdict.MISMATCH, send=False)
        return replace(decision, verdict=Verdict.REPEATED)

    def _restart(self, record: Record) -> str:
        """Give the message all its runs; why that cannot be, if so."""
        try:
            self.records.admin.restart(record)
        except RecordChangedError as error:
            return f"left: {error}"
        return ""

    def _forget(self, record: Record, letter: ReceivedDeadLetter) -> tuple[Record, str]:
        """The record as it then is, and why it was not forgotten, if so."""
        self.who = self.who or self.records.who()
        now, told = self.records.clock.now(), {"message_id": letter.message.message_id}
        try:
            after = self.records.admin.forget(record)
        except StoreUnavailableError:
            audit(self.who, record, None, now, **told)
            raise
        except (RecordChangedError, LeaseHeldError) as error:
            return record, f"left: {error}"
        audit(self.who, record, after, now, **told)
        return after, ""


def redrive(options: RedriveOptions) -> int:
    """Send them back, and answer the exit status."""
    if not (options.letters.job_ids or options.letters.reasons or options.everything):
        raise UnusableOptionError("say which letters: --job-id ID, --reason CODE, or --all")
    aws = options.records.aws
    client = aws.sqs_of(checked_url(options.url, "--dead-letter-url"), "--dead-letter-url")
    attributes = queue_attributes(client, options.url)
    warn_of_own_redrive(attributes)
    warn_of_held(attributes)
    target = _target(client, options)
    with open_records(options.records) as records:
        box = DeadLetterQueue(client, options.url, attributes["QueueArn"], records.notes)
        redriver = Redriver(options, box, aws.sqs_of(options.url, "--dead-letter-url", tries=1), target, records)
        return _run(redriver, Wanted.of(options.letters, records.settings.namespace))


def _run(redriver: Redriver, wanted: Wanted) -> int:
    options, rows = redriver.options, []
    trouble: Exception | None = None
    try:
        with Ticker() as ticker:
            for letter in redriver.box.letters():
                job = letter.job(wanted.factory)
                if not wanted.has(letter, job):
                    continue
                row = redriver.take(letter, job)
                if options.as_json:
                    print_object(**row)
                rows.append(row)
                ticker.tell(f"{len(rows):,} letters, {redriver.counts['left']:,} of them left")
                if options.most is not None and len(rows) >= options.most:
                    break
    except (QueueUnavailableError, StoreUnavailableError) as error:
        trouble = error
    finally:
        put_back(redriver.box)
        wanted.say_unnamed()
        if not options.as_json:
            _show(rows)
            _sum_up(redriver)
    if trouble is not None:
        cause = trouble.__cause__
        on = redriver.asked_on(trouble)
        text = explained(cause, on) if isinstance(cause, AWS_ERRORS) and cause else str(trouble)
        raise NothingDoneError(f"stopped: {text}; the letter at hand is where it was, and perhaps sent too: run again")
    return 0 if redriver.counts["sent"] and not redriver.counts["left"] else EXIT_PROBLEM


def _target(client: "SQSClient", options: RedriveOptions) -> str:
    url, sources = options.queue_url, _sources(client, options)
    if url is None and len(sources) == 1:
        (url,) = sources
    if url is None:
        raise UnusableOptionError("not one queue names this as its dead-letter queue: --queue-url says where to send")
    if checked_url(url, "--queue-url") == options.url:
        raise UnusableOptionError(f"--queue-url {url}: is the dead-letter queue itself")
    if is_fifo(url) != is_fifo(options.url):
        raise UnusableOptionError(f"--queue-url {url}: one of the two queues is FIFO, the other is not")
    check_place(client, url, "--queue-url")
    if sources and not any(is_same_queue(url, source) for source in sources):
        raise UnusableOptionError(
            f"--queue-url {url} (or QUEUE_URL): its dead letters go elsewhere; here come those of {', '.join(sources)}"
        )
    return url


def _sources(client: "SQSClient", options: RedriveOptions) -> list[str]:
    """Not to be had is no error where the target was said."""
    try:
        return source_urls(client, options.url)
    except QueueUnavailableError:
        if options.queue_url is None:
            raise
        return []


def _show(rows: list[dict[str, Any]]) -> None:
    if rows:
        cells = [[whose(row), row["operation"], reason_of(row), row["explanation"]] for row in rows]
        print_table(["JOB", "OPERATION", "REASON", "WHAT BECOMES OF IT"], cells)


def _sum_up(redriver: Redriver) -> None:
    """Messages and jobs apart: a job of several messages runs once."""
    counts = redriver.counts
    if not counts.total():
        print_line("no such letters")
        return
    sent = "would be sent" if redriver.options.dry_run else "sent"
    left = f"{plural(counts['left'], 'message')} left"
    if not redriver.keys:
        print_line(f"0 messages {sent} to {redriver.target}; {left}")
        return
    of = Counter(redriver.jobs.values())
    jobs = f"{plural(of[Verdict.RUNS], 'job')} redriven, {of[Verdict.ANSWERED]} answered, {of[Verdict.WAITS]} waiting"
    print_line(f"{counted(redriver.keys)} {sent} to {redriver.target}: {jobs}; {left}")
