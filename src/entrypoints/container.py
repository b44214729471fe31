"""The composition root: every choice of a part is made here, once, when a worker starts.

Builder functions import their technology inside, so that a worker loads only what its settings ask for.
"""

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from dependency_injector.containers import DeclarativeContainer
from dependency_injector.providers import Callable, Dependency, Factory, Object, Provider, Singleton

from adapters.forks import ends_forks
from adapters.interrupts import is_of_a_signal
from adapters.sqs.batch import SqsBatchProcessor
from adapters.sqs.notes import Notes
from adapters.sqs.ports import Crew, Queue
from adapters.system import Jitter, SystemClock, jitter, new_id, new_secret
from adapters.threads.crew import ThreadCrew
from adapters.threads.heartbeat import ThreadHeartbeat
from adapters.threads.seam import SYSTEM_THREADS, Threads
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.ports.clock import Clock
from domain.ports.heartbeat import Heartbeat
from domain.ports.store import IdempotencyStore
from domain.ports.store_admin import StoreAdmin
from domain.service import JobService, no_heartbeat
from domain.shared_secret import SharedSecret
from entrypoints.client_config import sdk_config
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import StoreParts

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from adapters.http.handler import HttpHandler, JobSender
    from adapters.telemetry import PowertoolsTelemetry

SQS_TRIES: Final = 2
"""SDK attempts. onejob does not retry these calls itself: a failure only causes a redelivery."""


def store_parts(settings: Settings, clock: Clock) -> StoreParts:
    """Of the backend that the settings name (`entrypoints.store_registry`). Raises `SettingError`."""
    return settings.backend.build(settings, clock)


def idempotency_store(parts: StoreParts) -> IdempotencyStore:
    """For workers. Its caller closes it. Raises `SettingError`, `UnusableStoreError`."""
    return parts.store()


def store_admin(parts: StoreParts) -> StoreAdmin:
    """For operators. As `idempotency_store`."""
    return parts.admin()


def thread_heartbeat(store: IdempotencyStore, clock: Clock, threads: Threads) -> ThreadHeartbeat:
    """For workers that may run longer than a lease."""
    return ThreadHeartbeat(store.renew, clock, threads)


def thread_crew(settings: Settings, clock: Clock, events: "PowertoolsTelemetry", threads: Threads) -> ThreadCrew:
    """For the batches of a Lambda function."""
    return ThreadCrew(
        settings.concurrency, clock, threads=threads, refused=lambda had: events.threads_refused("jobs", had)
    )


def refuse_elsewhere(url: str | None, setting: str) -> None:
    """Raises `SettingError` for a queue of another region than AWS is asked in: one of its name would be used there."""
    from adapters.sqs.queue_url import elsewhere

    if url is not None and (why := elsewhere(url, os.environ.get("AWS_DEFAULT_REGION"))):
        raise SettingError(f"{setting}={url}: {why} (AWS_DEFAULT_REGION)")


def sqs_queue(settings: Settings, threads: Threads) -> Queue:
    """The client is made when a batch first needs it. Raises `SettingError`."""
    from adapters.aws import client
    from adapters.sqs.queue import SqsQueue

    refuse_elsewhere(settings.dead_letter_queue_url, "DEAD_LETTER_QUEUE_URL")
    return SqsQueue(
        lambda: client("sqs", config=sdk_config(settings, SQS_TRIES)), settings.dead_letter_queue_url, threads
    )


def notes(store: IdempotencyStore, settings: Settings) -> Notes:
    """Of this namespace. The store is asked when a message is first buried, or comes with a note."""
    return Notes(SharedSecret(store.find, store.claim, settings.namespace, new_secret))


def job_sender(settings: Settings, http_settings: HttpSettings, threads: Threads) -> "JobSender | None":
    """None without `JOBS_QUEUE_URL`. One client is made, when a job is first sent: threads may send side by side.
    Raises `SettingError`.
    """
    if http_settings.jobs_queue_url is None:
        return None
    refuse_elsewhere(http_settings.jobs_queue_url, "JOBS_QUEUE_URL")
    from adapters.aws import client
    from adapters.sqs.job_sender import SqsJobSender

    lock, made = threads.lock(), cache(lambda: client("sqs", config=sdk_config(settings, SQS_TRIES)))

    def one_client() -> "SQSClient":
        with lock:
            sqs: SQSClient = made()
            return sqs

    return SqsJobSender(one_client, http_settings.jobs_queue_url, new_id)


def http_handler(http_settings: HttpSettings, **parts: Any) -> "HttpHandler":
    """The HTTP API over these parts."""
    from adapters.http.handler import HttpHandler

    return HttpHandler(**parts, claim=http_settings.tenant_claim, anonymous=http_settings.allow_anonymous)


def telemetry(settings: Settings) -> "PowertoolsTelemetry":
    """Logs and metrics to standard output."""
    from adapters.telemetry import PowertoolsTelemetry

    return PowertoolsTelemetry(
        error_messages=settings.log_error_messages,
        service=settings.service,
        metrics_namespace=settings.metrics_namespace,
        metrics_enabled=settings.metrics_enabled,
    )


def guarded_operations(operations: Operations) -> Operations:
    """What a process that one of them forks may not outlive."""
    return operations.wrapped(ends_forks)


class Container(DeclarativeContainer):
    """Give it `operations`; `settings` come from the environment unless given."""

    operations: Provider[Operations] = Dependency(instance_of=Operations)
    settings: Provider[Settings] = Singleton(Settings.from_environment, Callable(lambda: os.environ))
    clock: Provider[Clock] = Singleton(SystemClock)
    jitter: Provider[Jitter] = Object(jitter)
    threads: Provider[Threads] = Object(SYSTEM_THREADS)
    events: Provider["PowertoolsTelemetry"] = Singleton(telemetry, settings)
    crew: Provider[Crew] = Singleton(thread_crew, settings, clock, events, threads)
    queue: Provider[Queue] = Singleton(sqs_queue, settings, threads)
    _store_parts: Provider[StoreParts] = Singleton(store_parts, settings, clock)
    store: Provider[IdempotencyStore] = Singleton(idempotency_store, _store_parts)
    admin: Provider[StoreAdmin] = Singleton(store_admin, _store_parts)
    renewing_heartbeat: Provider[ThreadHeartbeat] = Singleton(thread_heartbeat, store, clock, threads)
    heartbeat: Provider[Heartbeat] = Object(no_heartbeat)
    job_factory: Provider[JobFactory] = Factory(JobFactory, settings.provided.namespace, operations)
    service: Provider[JobService] = Singleton(
        JobService,
        store=store,
        operations=Singleton(guarded_operations, operations),
        events=events,
        clock=clock,
        new_id=new_id,
        jitter=jitter,
        max_attempts=settings.provided.max_attempts,
        margin=settings.provided.deadline_margin,
        heartbeat=heartbeat,
        ends_process=Object(is_of_a_signal),
    )
    notes: Provider[Notes] = Singleton(notes, store, settings)
    sqs_batches: Provider[SqsBatchProcessor] = Singleton(
        SqsBatchProcessor,
        factory=job_factory,
        process=service.provided.process,
        queue=queue,
        events=events,
        crew=crew,
        notes=notes,
        clock=clock,
        jitter=jitter,
        retention=settings.provided.retention,
        margin=settings.provided.deadline_margin,
        grace=settings.provided.lease_grace,
    )
    http_settings: Provider[HttpSettings] = Singleton(HttpSettings.from_environment, Callable(lambda: os.environ))
    sender: Provider["JobSender | None"] = Singleton(job_sender, settings, http_settings, threads)
    http_handler: Provider["HttpHandler"] = Singleton(
        http_handler,
        http_settings,
        factory=job_factory,
        operations=operations,
        process=service.provided.process,
        store=store,
        sender=sender,
        events=events,
        clock=clock,
        grace=settings.provided.lease_grace,
    )
