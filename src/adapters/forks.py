"""What becomes of a process that an operation forks: it has default signals, and ends where the operation ends.

It is a copy of the worker with one thread, so that nothing of the worker may act in it: it would end the parent's jobs
over the parent's connections. Processes by `subprocess` and by multiprocessing's `spawn` are no such copies.
"""

import os
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import thread as pools
from contextlib import contextmanager
from functools import cache
from io import TextIOWrapper
from threading import local
from typing import Final, NoReturn

from adapters.error_place import described, texts_are_wanted
from adapters.interrupts import SignalHandler, marking
from domain.attempt import Attempt
from domain.job import Job
from domain.operation import OperationFunction

type Before = SignalHandler | int | None
"""What `signal.signal` returns."""

RAISED: Final = 1
INTERRUPTED: Final = 130

_installed: Final[dict[int, list[tuple[SignalHandler, Before]]]] = {}
"""For each signal our handlers, the latest last, and what each of them replaced."""


_of_parent: Final[list[object]] = []
"""The streams that a child does not use: one that is thrown away would write what the parent has not yet written."""


class _OfThread(local):
    mask: set[int | signal.Signals] | None = None
    """The signals that were blocked before a fork that is under way."""


_OF_THREAD: Final = _OfThread()


def ends_forks(run: OperationFunction) -> OperationFunction:
    """The same function; in a process that is forked while it runs, it never returns and never raises.

    Such a process ends with the status that Python would end with: that of `sys.exit`; 1 for another exception, whose
    type and place go to standard error, its text only with `LOG_ERROR_MESSAGES`; 0 where the function returns. No
    `atexit` function is called.
    """
    _watch_forks()

    def guarded(job: Job, attempt: Attempt) -> object:
        process = os.getpid()
        try:
            answer = run(job, attempt)
        except BaseException as error:
            if os.getpid() != process:
                _end(error)
            raise
        if os.getpid() != process:
            _end(None)
        return answer

    return guarded


def install_handler(number: int, handler: SignalHandler) -> None:
    """As `signal.signal`, but not for a child that is forked: there the signal does what the system does by default, or
    nothing if it was ignored before. (Python may call a handler late where a thread forked: CPython 3.13.) What the
    handler raises is known for a signal's (`adapters.interrupts`).
    """
    _watch_forks()
    handler = marking(handler)
    _installed.setdefault(number, []).append((handler, signal.signal(number, handler)))


@contextmanager
def handling(numbers: Iterable[int], handler: SignalHandler) -> Iterator[None]:
    """Install it for these signals, until the end of the context."""
    wanted = list(numbers)
    for number in wanted:
        install_handler(number, handler)
    try:
        yield
    finally:
        for number in wanted:
            if handlers := _installed.get(number):  # none in a child, which has what was there before
                signal.signal(number, handlers.pop()[1])


def _end(error: BaseException | None) -> NoReturn:
    status = RAISED
    try:
        status = _status(error)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    finally:
        os._exit(status)


def _status(error: BaseException | None) -> int:
    match error:
        case None | SystemExit(code=None):
            return 0
        case SystemExit(code=int(code)):
            return code & 0xFF
        case SystemExit(code=text) if texts_are_wanted():
            print(text, file=sys.stderr)  # noqa: T201 - as the interpreter does
        case SystemExit():
            pass
        case _ if texts_are_wanted():
            traceback.print_exception(error)
        case _:
            sys.stderr.write(f"onejob: a forked process ended: {described(error)}\n")
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else RAISED


@cache
def _watch_forks() -> None:
    os.register_at_fork(before=_before_fork, after_in_parent=_unblock, after_in_child=_in_child)


def _before_fork() -> None:
    """A signal that comes during the fork waits until the child has its own handlers."""
    if _installed:
        _OF_THREAD.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _installed)


def _unblock() -> None:
    if _OF_THREAD.mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _OF_THREAD.mask)
        _OF_THREAD.mask = None


def _in_child() -> None:
    for number, handlers in _installed.items():
        if handlers and signal.getsignal(number) in [handler for handler, _ in handlers]:
            was_ignored = handlers[0][1] is signal.SIG_IGN
            signal.signal(number, signal.SIG_IGN if was_ignored else signal.SIG_DFL)
    _installed.clear()
    _unblock()
    _renew_streams()
    pools._threads_queues.clear()  # type: ignore[attr-defined]  # or a child of multiprocessing would join our threads


def _renew_streams() -> None:
    """Standard output and error with empty buffers and free locks: another thread may have been writing to the old
    ones, which stay locked for ever, and what they hold is the parent's to write.
    """
    renewed: dict[int, TextIOWrapper] = {}
    for name in ("stdout", "stderr", "__stdout__", "__stderr__"):
        stream = getattr(sys, name)
        if id(stream) not in renewed:
            try:
                renewed[id(stream)] = open(  # noqa: SIM115 - it stays open
                    stream.fileno(),
                    "w",
                    buffering=1 if stream.line_buffering or stream.write_through else -1,
                    encoding=stream.encoding,
                    errors=stream.errors,
                    closefd=False,
                )
            except (AttributeError, OSError, ValueError):  # closed, or it only looks like a file
                continue
        _of_parent.append(stream)
        setattr(sys, name, renewed[id(stream)])
