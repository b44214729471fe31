"""The door for a container or a machine of one's own: what the Lambda runs, behind a queue that it polls itself."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from adapters.sqs.polling.deletions import Deletions
from adapters.sqs.polling.receiver import SqsReceiver
from adapters.sqs.polling.visibility_heartbeat import HeldQueue, VisibilityHeartbeat
from adapters.sqs.polling.worker import PollWorker
from adapters.sqs.queue import SqsQueue
from adapters.sqs.queue_url import elsewhere
from adapters.threads.pool import ThreadPool
from adapters.worker_telemetry import WorkerTelemetry
from domain.job_factory import JobFactory
from domain.operation import Operations
from entrypoints.client_config import sdk_config
from entrypoints.container import SQS_TRIES, Container
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import Reach

ANSWER_SECONDS: Final = 5
"""How much longer than a long poll its answer may take."""

BEYOND_LEASE: Final = timedelta(seconds=2)
"""So much longer than its lease is a message invisible: when it comes back after a crash, it can be taken over at once,
where one that came back earlier would be deferred.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PollOptions:
    """What a poll worker is told beside its settings."""

    queue_url: str
    lease: timedelta
    poll: timedelta
    longest: timedelta | None = None
    single_host: bool = False

    @property
    def visibility(self) -> timedelta:
        """The visibility timeout of what is received."""
        return self.lease + BEYOND_LEASE


@dataclass(frozen=True, slots=True)
class Parts:
    """A worker that has not started, and what its caller looks after: is there a queue, and what is told. `close` gives
    back what the store holds, when nothing runs any more.
    """

    worker: PollWorker
    receiver: SqsReceiver
    events: WorkerTelemetry
    settings: Settings
    close: Callable[[], None]


def make_poll_worker(
    operations: Operations,
    default_operation: str,
    options: PollOptions,
    settings: Settings,
    container: Container | None = None,
) -> Parts:
    """A worker for these operations, everything behind it built now. Raises `SettingError`, and the store's own."""
    require_shared_store(settings, single_host=options.single_host)
    parts = container or Container()
    parts.operations.override(operations)
    parts.settings.override(settings)
    events = _telemetry(settings)
    clock, jitter, threads = parts.clock(), parts.jitter(), parts.threads()
    queue = parts.queue()
    if not isinstance(queue, SqsQueue):
        raise TypeError("a poll worker deletes and hides on SQS itself")
    visibility = VisibilityHeartbeat(queue.try_to_hide, events, clock, options.visibility, threads)
    parts.events.override(events)
    parts.queue.override(HeldQueue(queue, visibility))
    parts.heartbeat.override(parts.renewing_heartbeat)
    parts.job_factory.override(JobFactory(settings.namespace, operations, default_operation))
    receiver = _receiver(options, settings)
    worker = PollWorker(
        batches=parts.sqs_batches(),
        receive=receiver.receive,
        visibility=visibility,
        deletions=Deletions(queue.try_to_delete, visibility.let_go, events, clock, jitter, threads),
        events=events,
        pool=ThreadPool(settings.concurrency, threads),
        lease=options.lease,
        longest=options.longest,
        clock=clock,
        jitter=jitter,
        helpers=[parts.renewing_heartbeat()],
        threads=threads,
    )
    return Parts(worker, receiver, events, settings, parts.store().close)


def require_shared_store(settings: Settings, *, single_host: bool) -> None:
    """Raises `SettingError` for a store that this worker's colleagues would not share."""
    name, reach = settings.backend, settings.backend.reach
    if reach is Reach.PROCESS:
        raise SettingError(
            f"IDEMPOTENCY_BACKEND={name} forgets with the process: use dynamodb, or sqlite with --single-host"
        )
    if reach is Reach.MACHINE and not single_host:
        raise SettingError(
            f"IDEMPOTENCY_BACKEND={name} is a file that workers on other machines do not see: "
            "say --single-host if there are none, or use dynamodb"
        )


def _receiver(options: PollOptions, settings: Settings) -> SqsReceiver:
    from botocore.config import Config

    from adapters.aws import client

    patient = Config(read_timeout=int(options.poll.total_seconds()) + ANSWER_SECONDS)
    made = client("sqs", config=sdk_config(settings, SQS_TRIES).merge(patient))
    for url, name in ((options.queue_url, "--queue-url "), (settings.dead_letter_queue_url, "DEAD_LETTER_QUEUE_URL=")):
        if url is not None and (why := elsewhere(url, made.meta.region_name, made.meta.endpoint_url)):
            raise SettingError(f"{name}{url}: {why}: AWS_DEFAULT_REGION and AWS_ENDPOINT_URL say where")
    return SqsReceiver(made, options.queue_url, visibility=options.visibility, poll=options.poll)


def _telemetry(settings: Settings) -> WorkerTelemetry:
    return WorkerTelemetry(
        error_messages=settings.log_error_messages,
        service=settings.service,
        metrics_namespace=settings.metrics_namespace,
        metrics_enabled=settings.metrics_enabled,
    )
