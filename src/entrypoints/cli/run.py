"""`onejob run`, put together: the operation, the store, the runner, signals, and what the shell is told."""

import importlib
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from threading import local
from typing import Any, BinaryIO, Final, cast

from adapters.job_lines import JobLines, UnreadableFileError, open_jobs
from adapters.sqlite.database import UnusableDatabaseError
from adapters.sqlite.store import SQLiteIdempotencyStore
from domain.identity import NAME
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import DEFAULT_OPERATION, Operation, OperationFunction, Operations
from domain.outcome import Executed, Skipped
from domain.ports.events import Trace
from entrypoints.cli.run_view import BarView, JsonView, PlainView, Tally, View
from entrypoints.cli.runner import JobFileRunner, Told
from entrypoints.container import Container
from entrypoints.settings import Backend, SettingError, Settings

ALL_DONE: Final = 0
SOME_FAILED: Final = 1
UNUSABLE: Final = 2
SIGNALLED: Final = 128


class UnusableOptionError(Exception):
    """An option cannot be used; the text names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line asks for."""

    source: str
    operation: str | None
    name: str | None
    store: Backend
    db: Path
    namespace: str
    concurrency: int
    lease: timedelta
    max_attempts: int
    failed: Path | None
    as_json: bool
    error_messages: bool


def run_file(options: RunOptions) -> int:
    """Run it, and answer the exit status. Every foreseeable error is a line on standard error."""
    try:
        with ExitStack() as stack:
            jobs = stack.enter_context(open_jobs(options.source))
            failed = _FailedLines(stack, options)
            operations, default_operation = chosen_operations(options.operation, options.name)
            events = LastTraces()
            container = _container(options, operations, events)
            store = container.store()
            if isinstance(store, SQLiteIdempotencyStore):
                stack.callback(store.close)
            pool = stack.enter_context(ThreadPoolExecutor(options.concurrency, thread_name_prefix="onejob"))
            runner = JobFileRunner(
                factory=JobFactory(options.namespace, operations, default_operation),
                process=container.service().process,
                submit=pool.submit,
                last_trace=events.last,
                workers=options.concurrency,
                clock=container.clock(),
                jitter=container.jitter(),
                lease=options.lease,
                max_attempts=options.max_attempts,
            )
            tally = Tally()
            view = _view(options, jobs, tally)
            view.note(_header(options, default_operation))
            return _run(runner, jobs, tally, view, failed, options)
    except (SettingError, UnusableDatabaseError, UnusableOptionError, UnreadableFileError) as error:
        sys.stderr.write(f"onejob run: {error}\n")
        return UNUSABLE


def _run(
    runner: JobFileRunner, jobs: JobLines, tally: Tally, view: View, failed: "_FailedLines", options: RunOptions
) -> int:
    with _stopping_on_signals(runner, view) as signals:
        for told in runner.run(jobs):
            tally.add(told)
            view.told(told)
            if told.is_final and not isinstance(told.outcome, Executed | Skipped):
                failed.write(told)
    view.end(tally)
    if runner.store_error is not None:
        view.note(f"stopped: the store cannot be used: {runner.store_error}")
    if runner.unreadable is not None:
        view.note(f"stopped: {runner.unreadable}")
    if failed.count and options.failed:
        view.note(f"{failed.count:,} lines to be run again: {options.failed}")
    if runner.stopped:
        view.note("run the same command again to go on: what is done will be skipped")
    if signals:
        return SIGNALLED + signals[0]
    done = tally.counts["executed"] + tally.counts["skipped"] == tally.lines
    return ALL_DONE if done and not runner.stopped and runner.unreadable is None else SOME_FAILED


def chosen_operations(operation: str | None, name: str | None) -> tuple[Operations, str]:
    """The operations to run, and the one that is meant by lines that name none. Raises `UnusableOptionError`."""
    from domain.business import OPERATIONS

    if operation is not None and ":" in operation:
        function = _imported(operation)
        return _under_a_name(function, frozenset(), name or operation.rpartition(":")[2].rpartition(".")[2])
    registered = operation or DEFAULT_OPERATION
    found = OPERATIONS.find(registered)
    if found is None:
        raise UnusableOptionError(
            f"--operation {registered}: not registered in domain/business.py; "
            "a function of yours is named package.module:function"
        )
    if name is None:
        return OPERATIONS, registered
    return _under_a_name(found.run, found.volatile, name)


def _under_a_name(run: OperationFunction, volatile: frozenset[str], name: str) -> tuple[Operations, str]:
    if not NAME.fullmatch(name):
        raise UnusableOptionError(f"--name {name}: expected 1 to 64 characters of A-Z a-z 0-9 _ -")
    try:
        return Operations(Operation(name, run, volatile)), name
    except TypeError as error:
        raise UnusableOptionError(f"--operation: {error}") from error


def _imported(operation: str) -> OperationFunction:
    """A function by `package.module:function`; the current folder is searched last."""
    module_name, _, attribute = operation.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise UnusableOptionError(f"--operation {operation}: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UnusableOptionError(f"--operation {operation}: is not a function")
    return cast(OperationFunction, found)


class LastTraces:
    """`JobEvents` for one machine: each thread remembers what it was told last, for the line that it works on."""

    def __init__(self) -> None:
        self._of_thread = local()

    def finished(self, trace: Trace) -> None:
        self._of_thread.trace = trace

    def last(self) -> Trace | None:
        """What this thread was told last."""
        trace: Trace | None = getattr(self._of_thread, "trace", None)
        return trace

    def fingerprint_unverified(self, job: Job) -> None:
        pass

    def release_failed(self, job: Job, error: Exception) -> None:
        pass


def _container(options: RunOptions, operations: Operations, events: LastTraces) -> Container:
    environment = {
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
    if options.as_json:
        return JsonView(error_messages=options.error_messages)
    if sys.stdout.isatty():
        return BarView(tally, jobs.size, error_messages=options.error_messages)
    return PlainView(tally, error_messages=options.error_messages)


def _header(options: RunOptions, operation: str) -> str:
    where = {Backend.SQLITE: f" {options.db}", Backend.MEMORY: "", Backend.DYNAMODB: " table from IDEMPOTENCY_TABLE"}
    return f"operation {operation}, namespace {options.namespace}, store {options.store}{where[options.store]}"


class _FailedLines:
    """The lines that did not finish, as they came, ready to be run again."""

    def __init__(self, stack: ExitStack, options: RunOptions) -> None:
        self.count = 0
        self._file: BinaryIO | None = None
        if options.failed is None:
            return
        if options.failed.exists() and options.source != "-" and options.failed.samefile(options.source):
            raise UnusableOptionError(f"--failed {options.failed}: is the file that is read; name another")
        try:
            self._file = stack.enter_context(options.failed.open("wb"))
        except OSError as error:
            raise UnusableOptionError(f"--failed {options.failed}: {error.strerror}") from error

    def write(self, told: Told) -> None:
        self.count += 1
        if self._file is not None:
            raw = told.line.raw
            self._file.write(raw if raw.endswith(b"\n") else raw + b"\n")
            self._file.flush()


@contextmanager
def _stopping_on_signals(runner: JobFileRunner, view: View) -> Iterator[list[int]]:
    """The first signal stops the runner, a second one the process; the signals that came."""
    came: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) > 1:
            if sys.stdout.isatty():
                sys.stdout.write("\x1b[?25h\n")  # the bar had hidden the cursor
                sys.stdout.flush()
            os._exit(SIGNALLED + number)
        runner.stop()
        view.note("stopping: what runs is finished; once more leaves at once")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
