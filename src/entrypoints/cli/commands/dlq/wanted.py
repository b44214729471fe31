"""Which dead letters a command means: by job, operation, tenant and reason, a job named as `onejob show` names it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from adapters.sqs.dead_letter_queue import ReceivedDeadLetter
from domain.identity import JobKey, clean_id, clean_name, job_key
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import DEFAULT_OPERATION, Operations
from entrypoints.cli.operations import chosen_operations
from entrypoints.cli.output import say
from entrypoints.registered import registered_operations

BY_SQS = "moved by SQS"
"""In place of a reason where the worker left none: it was received too often without an answer."""

LONGEST_CLAIM = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterOptions:
    """What the command line says of the letters. Nothing said: all of them."""

    job_ids: tuple[str, ...] = ()
    operation: str | None = None
    name: str | None = None
    tenant: str | None = None
    reasons: frozenset[str] = frozenset()


@dataclass(slots=True)
class Wanted:
    """The letters that are meant. `factory` makes their jobs, and `unnamed` counts those that name no operation, and
    would be meant if the worker's own were the one that is asked for.
    """

    factory: JobFactory
    keys: frozenset[JobKey] | None
    operation: str | None
    tenant: str | None
    reasons: frozenset[str]
    unnamed: int = 0

    @classmethod
    def of(cls, options: DeadLetterOptions, namespace: str) -> "Wanted":
        """Raises `UnusableOptionError`, `InvalidJobError`."""
        operations, default, operation = _operations(options)
        tenant = None if options.tenant is None else clean_id(options.tenant, "tenant")
        keys = None
        if options.job_ids:
            ids = [clean_id(each, "job_id") for each in options.job_ids]
            keys = frozenset(job_key(namespace, operation or default, each, tenant) for each in ids)
        return cls(JobFactory(namespace, operations, default), keys, operation, tenant, options.reasons)

    @property
    def is_everything(self) -> bool:
        return not (self.keys or self.operation or self.tenant or self.reasons)

    def has(self, letter: ReceivedDeadLetter, job: Job | None) -> bool:
        if self.reasons and label(letter) not in self.reasons:
            return False
        if self._is_meant(job):
            return True
        if self.operation is not None and self._is_meant(
            letter.job(replace(self.factory, default_operation=self.operation))
        ):
            self.unnamed += 1
        return False

    def say_unnamed(self) -> None:
        """Say what was passed over only because it names no operation."""
        if self.unnamed:
            say(
                f"note: {self.unnamed} letters name no operation, and were taken for jobs of "
                f"{self.factory.default_operation}: if their worker was given --operation {self.operation}, "
                f"say --name {self.operation}"
            )

    def _is_meant(self, job: Job | None) -> bool:
        if self.keys is not None:
            return job is not None and job.key in self.keys
        by_operation = self.operation is None or (job is not None and job.operation == self.operation)
        return by_operation and (self.tenant is None or (job is not None and job.tenant == self.tenant))


def _operations(options: DeadLetterOptions) -> tuple[Operations, str, str | None]:
    """The operations, the one of letters that name none, and the one that is asked for."""
    registered = registered_operations()
    operation, name = options.operation, options.name
    if operation is not None and (name is not None or ":" in operation):
        operations, default = chosen_operations(operation, name)
        return operations, default, default
    if name is not None and registered.find(name) is None:
        return *chosen_operations(None, name), None
    return registered, name or DEFAULT_OPERATION, None if operation is None else clean_name(operation, "operation")


def label(letter: ReceivedDeadLetter) -> str:
    """The reason as it is shown and picked: the worker's, or what the message claims, or that SQS moved it."""
    return letter.reason or claims(letter.claimed_reason) or BY_SQS


def claims(reason: str | None) -> str | None:
    """How a reason is told that no worker is known to have given."""
    return f"claims {reason[:LONGEST_CLAIM]}" if reason else None


def counted(keys: Iterable[str | None]) -> str:
    """`4 messages of 2 jobs`: from the key of each message's job, None where it has no job."""
    told = list(keys)
    jobs, without = len({key for key in told if key is not None}), told.count(None)
    text = plural(len(told), "message") + (f" of {plural(jobs, 'job')}" if jobs or not without else "")
    return text + (f", {without} without a job" if without and jobs else " without a job" if without else "")


def plural(number: int, noun: str) -> str:
    """`1 job`, `2 jobs`"""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
