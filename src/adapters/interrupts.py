"""Tells what a signal raised from what an operation raises by itself: only a signal ends the process."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from threading import current_thread, main_thread
from types import FrameType
from typing import Final

type SignalHandler = Callable[[int, FrameType | None], object]

MARK: Final = "onejob_signal"
"""An attribute of what a signal handler raised: the number of the signal."""

MAX_CHAIN: Final = 100
"""Errors that are looked at, behind one that was raised instead of another."""


def marking(handler: SignalHandler) -> SignalHandler:
    """The same handler. What it raises carries the mark."""

    @wraps(handler)
    def marked(number: int, frame: FrameType | None) -> object:
        try:
            return handler(number, frame)
        except BaseException as error:
            setattr(error, MARK, number)
            raise

    return marked


def is_of_a_signal(error: BaseException) -> bool:
    """Whether a signal handler raised it, or what it was raised instead of, and it is no `Exception`.

    Handlers count that were installed with `forks.install_handler`, and Ctrl-C within `marked_interrupts`.
    """
    if isinstance(error, Exception):
        return False
    waiting: list[BaseException | None] = [error]
    for _ in range(MAX_CHAIN):
        if not waiting:
            return False
        one = waiting.pop(0)
        if one is None:
            continue
        if hasattr(one, MARK):
            return True
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions
    return False


@contextmanager
def marked_interrupts() -> Iterator[None]:
    """Until the end of the context, the `KeyboardInterrupt` of Python's own handler carries the mark.

    Does nothing outside the main thread, where no signal is handled, or where Ctrl-C has another handler.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    handler = marking(signal.default_int_handler)
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is handler:  # else an operation has installed its own
            signal.signal(signal.SIGINT, signal.default_int_handler)
