"""`onejob run`, put together: the operation, the store, the runner, signals, and what the shell is told."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from adapters.files.lines import JobLines, UnreadableFileError, open_jobs
from adapters.files.runner import JobFileRunner, LineResult
from adapters.files.traces import LastTraces
from adapters.forks import handling
from adapters.sqs.envelope import unwrap_line
from adapters.standard_input import standard_input_withheld
from adapters.threads.pool import ThreadPool
from domain.errors import UnusableStoreError, text_of
from domain.identity import NAME
from domain.job_factory import JobFactory
from domain.operation import Operations
from domain.outcome import Executed, Skipped
from entrypoints.cli.commands.run.failed import FailedLines
from entrypoints.cli.commands.run.options import RunOptions
from entrypoints.cli.commands.run.view import BarView, JsonView, PlainView, Tally, View
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.opening import open_store
from entrypoints.cli.operations import chosen_operations
from entrypoints.cli.output import say
from entrypoints.container import Container
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import Backend, Reach

ALL_DONE: Final = 0
SOME_FAILED: Final = 1
UNUSABLE: Final = 2
SIGNALLED: Final = 128


KEEP_FOREVER: Final = {"IDEMPOTENCY_EXPIRES_AFTER_SECONDS": str(100 * 365 * 86_400)}
"""How long a file remembers what is done, unless the environment says otherwise: nobody else pays for its length."""


def run_file(options: RunOptions) -> int:
    """Run it, and answer the exit status. Every foreseeable error is a line on standard error."""
    try:
        with ExitStack() as stack:
            source = stack.enter_context(standard_input_withheld(options.source))  # before a module of the user's
            if not NAME.fullmatch(options.namespace):
                raise UnusableOptionError(f"--namespace {options.namespace}: expected 1 to 64 of A-Z a-z 0-9 _ -")
            operations, default_operation = chosen_operations(options.operation, options.name)
            events = LastTraces()
            container = _container(options, operations, events)
            jobs = stack.enter_context(open_jobs(options.source, source))
            open_store(container, options.store, stack)
            pool = ThreadPool(options.concurrency)
            threads = pool.ensure(options.concurrency)
            if not threads:
                raise UnusableOptionError("the system has no thread to spare")
            tally = Tally()
            view = _view(options, jobs, tally)
            stack.callback(view.close)
            failed = FailedLines(stack, options, jobs)  # last: what it held is gone from here on
            runner = JobFileRunner(
                factory=JobFactory(options.namespace, operations, default_operation),
                read=unwrap_line,
                process=container.service().process,
                submit=pool.submit,
                last_trace=events.last,
                workers=threads,
                clock=container.clock(),
                jitter=container.jitter(),
                lease=options.lease,
                max_attempts=options.max_attempts,
            )
            return Run(runner, jobs, tally, view, failed, options).to_its_end(_header(options, default_operation))
    except (SettingError, UnusableStoreError, UnusableOptionError, UnreadableFileError) as error:
        say(f"onejob run: {error}")
        return UNUSABLE


@dataclass(slots=True)
class Run:
    """A run under way, and what goes wrong around it."""

    runner: JobFileRunner
    jobs: JobLines
    tally: Tally
    view: View
    failed: "FailedLines"
    options: RunOptions
    trouble: str | None = None
    """What cannot be written any more: the output, or the file of `--failed`."""

    def to_its_end(self, header: str) -> int:
        """The exit status."""
        self.runner.on_stop = self._stopping
        with _stopping_on_signals(self.runner) as signals:
            self._show(lambda: self.view.note(header))
            for told in self.runner.run(self.jobs):
                self._show(self.view.idle) if told is None else self._take(told)
            self._keep_failed(self.failed.finish)
            self._show(lambda: self.view.end(self.tally))
            self._show(self._say_what_is_left)
        if self.trouble is not None:
            self._say_trouble()
        if signals:
            return SIGNALLED + signals[0]
        return ALL_DONE if self._is_done else SOME_FAILED

    @property
    def _is_done(self) -> bool:
        done = self.tally.counts["executed"] + self.tally.counts["skipped"] == self.tally.lines
        return done and not self.runner.stopped and self.runner.unreadable is None and self.trouble is None

    def _take(self, told: LineResult) -> None:
        self.tally.add(told)
        if told.is_final and not isinstance(told.outcome, Executed | Skipped):
            self._keep_failed(lambda: self.failed.write(told))
        self._show(lambda: self.view.told(told))

    def _keep_failed(self, keep: Callable[[], None]) -> None:
        try:
            keep()
        except OSError as error:
            self._fail(f"--failed {self.options.failed}: {error.strerror}")

    def _show(self, show: Callable[[], None]) -> None:
        """A closed pipe, a full disk, an operation that closed it: nothing more is shown, and what runs is finished."""
        if self.trouble is None:
            try:
                show()
            except (OSError, ValueError) as error:
                self._fail(f"output: {getattr(error, 'strerror', None) or text_of(error)}")

    def _fail(self, trouble: str) -> None:
        self.trouble = trouble
        self.runner.stop()

    def _stopping(self) -> None:
        self.jobs.stop()
        self._show(lambda: self.view.note("stopping: what runs is finished; Ctrl-C leaves at once"))

    def _say_what_is_left(self) -> None:
        if self.runner.store_error is not None:
            self.view.note(f"stopped: the store cannot be used: {self.runner.store_error}")
        if self.runner.unreadable is not None:
            self.view.note(f"stopped: {self.runner.unreadable}")
        if self.failed.count and self.options.failed:
            self.view.note(f"{self.failed.count:,} lines to be run again: {self.options.failed}")
        if self.runner.stopped:
            self.view.note("run the same command again to go on: what is done will be skipped")

    def _say_trouble(self) -> None:
        with suppress(OSError, ValueError):
            say(f"onejob run: stopped: {self.trouble}; run the same command again to go on")
        with suppress(OSError, ValueError):  # or the interpreter would complain of it at its end
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)


def _container(options: RunOptions, operations: Operations, events: LastTraces) -> Container:
    environment = {
        **({} if options.store.reach is Reach.NETWORK else KEEP_FOREVER),
        **os.environ,
        "IDEMPOTENCY_BACKEND": options.store,
        "IDEMPOTENCY_DB": str(options.db),
        "IDEMPOTENCY_NAMESPACE": options.namespace,
        "JOB_CONCURRENCY": str(options.concurrency),
        "MAX_ATTEMPTS": str(options.max_attempts),
    }
    container = Container()
    container.operations.override(operations)
    container.settings.override(Settings.from_environment(environment))
    container.events.override(events)
    container.heartbeat.override(container.renewing_heartbeat)
    return container


def _view(options: RunOptions, jobs: JobLines, tally: Tally) -> View:
    if sys.stdout is None:
        raise UnusableOptionError("standard output is closed")
    if options.as_json:
        return JsonView(error_messages=options.error_messages)
    if sys.stdout.isatty():
        return BarView(tally, jobs.size, error_messages=options.error_messages)
    return PlainView(tally, error_messages=options.error_messages)


def _header(options: RunOptions, operation: str) -> str:
    where = {Backend.SQLITE: f" {options.db}", Backend.DYNAMODB: " table from IDEMPOTENCY_TABLE"}.get(options.store, "")
    return f"operation {operation}, namespace {options.namespace}, store {options.store}{where}"


@contextmanager
def _stopping_on_signals(runner: JobFileRunner) -> Iterator[list[int]]:
    """The first signal stops the runner, a second one the process; the signals that came."""
    came: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) > 1:
            with suppress(OSError):
                os.write(2, b"\x1b[?25h\n" if os.isatty(2) else b"")  # a bar had hidden the cursor
            os._exit(SIGNALLED + number)
        runner.stop()  # which says so when it comes to it: printing here could meet itself

    with handling((signal.SIGINT, signal.SIGTERM), on_signal):
        yield came
