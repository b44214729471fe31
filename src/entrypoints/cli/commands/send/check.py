"""`onejob send`: a file of jobs to a queue. Every line is checked before the first one is sent."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import IO, Final

from adapters.files.lines import Line, open_jobs
from adapters.sqs.dead_letter import is_legal
from adapters.sqs.envelope import unwrap_line
from adapters.sqs.job_size import check_job_size
from adapters.sqs.sender import BatchSent, Outgoing, SqsSender
from domain.errors import InvalidJobError
from domain.job import Job
from domain.job_factory import JobFactory

MOST_IN_VAIN: Final = 3
"""Batches in a row whose answers were lost: SQS is away, and going on would make all that is left uncertain."""

MAX_REPORTED: Final = 20
"""Lines that are no job, told one by one; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Groups:
    """The message group of each job: one for all, or (on a FIFO queue) one for each."""

    name: str | None = None
    per_job: bool = False

    def of(self, job: Job) -> str | None:
        return identity(job) if self.per_job else self.name


@dataclass(slots=True)
class Checked:
    """The lines of a file that are jobs, on disk as they were when checked; and what is wrong with the rest."""

    spool: IO[bytes]
    jobs: int = 0
    invalid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def messages(self) -> Iterator[Outgoing]:
        self.spool.seek(0)
        for entry in self.spool:
            number, body, group_id, deduplication_id = json.loads(entry)
            yield Outgoing(number, body, group_id, deduplication_id)


def check(
    source: str,
    factory: JobFactory,
    spool: IO[bytes],
    *,
    fifo: bool,
    groups: Groups,
    from_line: int,
    invalid: Callable[[int, str], None],
) -> Checked:
    """Read it all into `spool`; `invalid` is told each line that is no job, and why. Raises `UnreadableFileError`."""
    checked = Checked(spool)
    with open_jobs(source) as lines:
        for line in lines:
            if line.number < from_line:
                continue
            try:
                job, body = read(line, factory)
            except InvalidJobError as error:
                checked.invalid += 1
                checked.reasons[error.reason] += 1
                if checked.invalid <= MAX_REPORTED:
                    invalid(line.number, str(error))
                continue
            checked.jobs += 1
            entry = (line.number, body, groups.of(job), repeat_id(job) if fifo else None)
            checked.spool.write(f"{json.dumps(entry)}\n".encode())
    return checked


def read(line: Line, factory: JobFactory) -> tuple[Job, str]:
    """The job of a line, as the worker will read it, and the body to send. Raises `InvalidJobError`."""
    if line.text is None:
        raise InvalidJobError("unreadable_line", line.problem or "")
    body = line.text.strip()
    if not is_legal(body):
        raise InvalidJobError("unreadable_line", "a character that SQS does not carry")
    check_job_size(body)
    return factory.job(unwrap_line(body)), body


def identity(job: Job) -> str:
    """64 hexadecimal digits for this job of this operation: a key may be longer than SQS takes."""
    return sha256(str(job.key).encode()).hexdigest()


def repeat_id(job: Job) -> str:
    """What a FIFO queue recognises a repeat by, for five minutes: the same job with the same payload."""
    return sha256(f"{job.key} {job.fingerprint}".encode()).hexdigest()


@dataclass(slots=True)
class Sending:
    """What has become of the messages so far."""

    sent: int = 0
    next_line: int | None = None
    """The first line that is not known to be done with."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    uncertain: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    """Not sent, since something before them in their FIFO group was not."""
    error: Exception | None = None
    _in_vain: list[int] = field(default_factory=list)
    """The first line of each batch since an answer last arrived."""
    _blocking: dict[str | None, int] = field(default_factory=dict)
    """The line that was refused, by its message group."""
    _first_held: int | None = None

    def take(self, batch: BatchSent, last_line: int) -> None:
        self.sent += len(batch.sent)
        self.refused += [(message.number, code) for message, code in batch.refused]
        self.uncertain += [message.number for message in batch.uncertain]
        self._hold(batch)
        if batch.unsent:
            self.error = batch.error
        first_unsent = min((message.number for message in batch.unsent), default=last_line + 1)
        self.next_line = min(first_unsent, self._first_held or first_unsent)
        self._give_up_in_vain(batch)

    def _hold(self, batch: BatchSent) -> None:
        """To go on is to begin with the refused line that others wait for: sent before them, it is before them."""
        self.held += [message.number for message in batch.held]
        self._blocking |= {message.group_id: message.number for message, _ in batch.refused}
        waited_for = [self._blocking[message.group_id] for message in batch.held if message.group_id in self._blocking]
        self._first_held = min([*waited_for, *filter(None, [self._first_held])], default=None)

    def _give_up_in_vain(self, batch: BatchSent) -> None:
        if batch.sent or batch.refused or not batch.uncertain:
            self._in_vain.clear()
            return
        self._in_vain.append(batch.uncertain[0].number)
        if len(self._in_vain) == MOST_IN_VAIN and self.error is None:
            self.error, self.next_line = batch.error, self._in_vain[0]

    @property
    def is_complete(self) -> bool:
        return not (self.refused or self.uncertain or self.held or self.error)


def send(checked: Checked, sender: SqsSender, state: Sending, progress: Callable[[str], None]) -> None:
    """Send them in order; `state` is right also where this is interrupted. Raises `QueueUnavailableError`."""
    for batch in sender.send(checked.messages()):
        numbers = [message.number for message in (*batch.sent, *batch.uncertain, *batch.unsent, *batch.held)]
        numbers += [message.number for message, _ in batch.refused]
        state.take(batch, max(numbers))
        progress(f"{state.sent:,} of {checked.jobs:,} sent")
        if state.error is not None:
            return


def ranges(numbers: list[int]) -> str:
    """`3-5, 9`"""
    told: list[list[int]] = []
    for number in sorted(numbers):
        if told and told[-1][-1] == number - 1:
            told[-1][-1] = number
        else:
            told.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in told)
