"""`onejob work`, put together: the settings, the worker, its health port, signals, and what the shell is told."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Final

from botocore.exceptions import BotoCoreError

from adapters.forks import handling
from adapters.sqs.polling.ports import QueueUnusableError
from adapters.sqs.polling.worker import FIRST_PAUSE, LONGEST_PAUSE
from adapters.sqs.ports import QueueUnavailableError
from domain.backoff import backoff
from domain.errors import UnusableStoreError, text_of
from entrypoints.cli.aws import is_no_url
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.operations import chosen_operations
from entrypoints.cli.output import say
from entrypoints.health import health_server
from entrypoints.poll_worker import ANSWER_SECONDS, Parts, PollOptions, make_poll_worker
from entrypoints.settings import QUEUE_URL, SettingError, Settings
from entrypoints.store_registry import Backend, Reach

ALL_FINISHED: Final = 0
SOME_CUT_OFF: Final = 1
UNUSABLE: Final = 2
SIGNALLED: Final = 128

FLUSH_SECONDS: Final = 10
"""Interval between two emissions of metrics."""

SUPERVISE_SECONDS: Final = 1
"""Interval between two attempts to start missing threads."""

LIVES_WITHIN: Final = timedelta(seconds=ANSWER_SECONDS + 30)
"""The receive loop shows itself every second, or else waits for a long poll and its second try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """What the command line asks for."""

    queue_url: str
    operation: str | None
    name: str | None
    lease: timedelta
    longest: timedelta
    single_host: bool
    shutdown: timedelta
    poll: timedelta
    health_port: int | None
    health_host: str


class Signals:
    """The signals that came. A handler may only do what is safe in the middle of anything: `SimpleQueue.put` is."""

    def __init__(self) -> None:
        self._mail: SimpleQueue[int] = SimpleQueue()
        self._came: list[int] = []

    def on_signal(self, number: int, _frame: object) -> None:
        """The first is mail, the second leaves at once."""
        self._came.append(number)
        if len(self._came) > 1:
            os._exit(SIGNALLED + number)
        self._mail.put(number)

    def wait(self, seconds: float) -> int | None:
        """The signal, once it comes; None if none does within that time."""
        try:
            return self._mail.get(timeout=seconds)
        except Empty:
            return None


def work_off(options: WorkOptions) -> int:
    """Work until told to stop, and answer the exit status. Every foreseeable error is a line on standard error."""
    try:
        with ExitStack() as stack:
            parts = _parts(options)
            stack.callback(parts.close)
            signals = stack.enter_context(_caught())
            work = Work(parts, options, signals)
            if options.health_port is not None:
                work.answer_on(options.health_host, options.health_port, stack)
            status = work.to_its_end()
            if status == SOME_CUT_OFF:
                with suppress(OSError, ValueError):
                    sys.stdout.flush()
                os._exit(status)  # what still runs would be waited for
            return status
    except (SettingError, UnusableStoreError, UnusableOptionError, QueueUnusableError) as error:
        say(f"onejob work: {error}")
        return UNUSABLE


def _parts(options: WorkOptions) -> Parts:
    if not re.fullmatch(QUEUE_URL, options.queue_url):
        raise UnusableOptionError(
            f"--queue-url {options.queue_url}: expected one like https://sqs.REGION.amazonaws.com/ACCOUNT/NAME"
        )
    if not os.environ.get("IDEMPOTENCY_BACKEND", "").strip():
        known = ", ".join(one for one in Backend if one.reach is not Reach.PROCESS)
        raise SettingError(f"IDEMPOTENCY_BACKEND is not set: say where records live, one of {known}")
    settings = Settings.from_environment(os.environ)
    if settings.dead_letter_queue_url == options.queue_url:
        raise SettingError(
            "DEAD_LETTER_QUEUE_URL is the queue that is worked off: what is rejected would be received again at once, "
            "for ever"
        )
    operations, default_operation = chosen_operations(options.operation, options.name)
    poll = PollOptions(
        queue_url=options.queue_url,
        lease=options.lease,
        longest=options.longest,
        poll=options.poll,
        single_host=options.single_host,
    )
    try:
        return make_poll_worker(operations, default_operation, poll, settings)
    except (SettingError, UnusableStoreError, UnusableOptionError):
        raise
    except Exception as error:  # as from what gives credentials, or another store's own
        if isinstance(error, BotoCoreError) or is_no_url(error):  # no region, no such profile
            raise UnusableOptionError(
                f"AWS cannot be used: {error} Set AWS_DEFAULT_REGION, and credentials if there is no role"
            ) from error
        raise UnusableOptionError(f"the worker cannot start: {type(error).__name__}: {text_of(error)}") from error


@dataclass(slots=True)
class Work:
    """A worker under way."""

    parts: Parts
    options: WorkOptions
    signals: Signals
    found: bool = False

    def answer_on(self, host: str, port: int, stack: ExitStack) -> None:
        """Open the health port for the length of `stack`."""
        server = health_server(host, port, is_alive=self.is_alive, is_ready=self.is_ready)
        try:
            opened = stack.enter_context(server)
        except OSError as error:
            raise UnusableOptionError(f"--health-port {port} on {host}: {error.strerror or error}") from error
        self.parts.events.worker("health_port_open", host=host, port=opened)

    def is_alive(self) -> bool:
        """Whether the receive loop moved lately, and what it needs is there. It need not once it is told to stop."""
        worker = self.parts.worker
        if worker.stopping:
            return True
        moved = worker.clock.monotonic() - worker.moved_at
        return moved < self.options.poll * 2 + LIVES_WITHIN and worker.is_healthy()

    def is_ready(self) -> bool:
        return self.found and not self.parts.worker.stopping

    def to_its_end(self) -> int:
        """The exit status. Raises `QueueUnusableError`."""
        signal_number = self._find_queue() or self._work()
        return self._stop(signal_number)

    def _find_queue(self) -> int | None:
        """When the queue has answered, None; or the signal that came before."""
        worker, tries = self.parts.worker, 0
        while True:
            worker.moved_at = worker.clock.monotonic()
            try:
                arn = self.parts.receiver.find()
            except QueueUnusableError as error:
                raise QueueUnusableError(
                    f"--queue-url {self.options.queue_url}: {error}. Look at the URL, the region and the permissions "
                    "(docs/work.md)"
                ) from error
            except QueueUnavailableError as error:
                tries += 1
                pause = backoff(tries, FIRST_PAUSE, LONGEST_PAUSE, worker.jitter)
                self.parts.events.receive_failed(error, pause)
                if (number := self.signals.wait(pause.total_seconds())) is not None:
                    return number
            else:
                self.found = True
                self._say_started(arn)
                return None

    def _say_started(self, arn: str) -> None:
        settings = self.parts.settings
        self.parts.events.worker(
            "worker_started",
            queue=arn,
            backend=settings.backend,
            namespace=settings.namespace,
            concurrency=settings.concurrency,
            lease_seconds=int(self.options.lease.total_seconds()),
            max_seconds=int(self.options.longest.total_seconds()),
            dead_letters=settings.dead_letter_queue_url
            or "none: what is rejected stays in the queue and comes back; set DEAD_LETTER_QUEUE_URL",
        )

    def _work(self) -> int:
        """Until a signal comes, which is answered; SIGPIPE stands for an output that is closed."""
        worker = self.parts.worker
        worker.start()
        flushed_at = worker.clock.monotonic()
        while True:
            number = self.signals.wait(min(SUPERVISE_SECONDS, FLUSH_SECONDS))
            if number is not None:
                return number
            worker.supervise()
            if worker.clock.monotonic() - flushed_at < timedelta(seconds=FLUSH_SECONDS):
                continue
            flushed_at = worker.clock.monotonic()
            try:
                self.parts.events.flush()
            except (OSError, ValueError):
                return signal.SIGPIPE

    def _stop(self, number: int) -> int:
        worker, events = self.parts.worker, self.parts.events
        until = worker.clock.monotonic() + self.options.shutdown
        events.worker(
            "worker_stopping",
            signal=signal.Signals(number).name,
            shutdown_seconds=self.options.shutdown.total_seconds(),
        )
        worker.stop()
        running = worker.wait(until - worker.clock.monotonic())
        events.left_running(running)
        events.worker("worker_stopped", left_running=len(running))
        try:
            events.flush()
        except (OSError, ValueError):
            say("onejob work: stopped: standard output is closed")
            return SOME_CUT_OFF
        return SOME_CUT_OFF if running or number == signal.SIGPIPE else ALL_FINISHED


@contextmanager
def _caught() -> Iterator[Signals]:
    signals = Signals()
    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        numbers.append(signal.SIGHUP)
    with handling(numbers, signals.on_signal):
        yield signals
