"""What a redrive may do with a dead letter: the rule, from its job, its age and the record.

    seen                                      without --force           with --force
    ----------------------------------------------------------------------------------------------
    no job inside                             left: no_job              sent
    first sent longer ago than the retention  left: stale_redrive       sent as if it were new
    live record, another payload              left: payload_mismatch    forgotten, then sent: runs
    completed                                 sent: is answered         forgotten, then sent: runs
    a lease that runs                         sent: waits for its end   the same
    no record; over; lapsed; released         sent: runs                the same
    (the runs of a record that is in progress are counted anew, so that the message has all of them)
    came back during this redrive             left: came_back           the same
    its job was sent during this redrive      sent: repeated              the same
    (of another payload: left)
    SQS answers as for an earlier message     left: deduplicated        the same

A record whose lease runs is never forgotten here (`onejob forget --force` does).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.identity import same_scheme
from domain.job import Job
from domain.life import Life
from domain.record import Record


class Verdict(StrEnum):
    """What becomes of the job when the letter is sent, or why it is not."""

    RUNS = "runs"
    WAITS = "waits"
    ANSWERED = "answered"
    REPEATED = "repeated"
    NO_JOB = "no_job"
    STALE = "stale_redrive"
    MISMATCH = "payload_mismatch"
    CAME_BACK = "came_back"
    DEDUPLICATED = "deduplicated"


@dataclass(frozen=True, slots=True)
class Decision:
    """`forget` the record first, or `restart` the count of its runs; `forget_age` of the message."""

    verdict: Verdict
    send: bool = True
    forget: bool = False
    forget_age: bool = False
    restart: bool = False


def decide(
    job: Job | None,
    record: Record | None,
    *,
    first_sent: datetime | None,
    now: datetime,
    retention: timedelta,
    force: bool,
) -> Decision:
    """Decide by the table above. The last three rows are `onejob dlq redrive`'s: it knows what was sent."""
    if job is None:
        return Decision(Verdict.NO_JOB, send=force)
    is_stale = first_sent is not None and now - first_sent > retention
    if is_stale and not force:
        return Decision(Verdict.STALE, send=False)
    if record is None or record.retention_is_over(now):
        return Decision(Verdict.RUNS, forget_age=is_stale)
    is_live = record.in_progress and not record.lease_is_over(now)
    has_runs = record.life != Life(record.life.number)
    if same_scheme(record.fingerprint, job.fingerprint) and record.fingerprint != job.fingerprint:
        if not force or is_live:
            return Decision(Verdict.MISMATCH, send=False)
        return Decision(Verdict.RUNS, forget=True, forget_age=is_stale)
    if is_live:
        return Decision(Verdict.WAITS, forget_age=is_stale, restart=has_runs)
    if record.in_progress:
        return Decision(Verdict.RUNS, forget_age=is_stale, restart=has_runs)
    if force:
        return Decision(Verdict.RUNS, forget=True, forget_age=is_stale)
    return Decision(Verdict.ANSWERED)
