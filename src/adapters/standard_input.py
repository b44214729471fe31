"""Standard input, kept from code that is not ours: operations and their children would swallow what the tool reads."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from io import UnsupportedOperation
from stat import S_ISREG
from typing import Any, Final

STANDARD_INPUT: Final = "-"
_DESCRIPTOR: Final = 0
_FIRST_PRIVATE: Final = 3
"""A copy never takes the number of a closed standard stream: children would have it for theirs."""


@contextmanager
def standard_input_withheld(source: str) -> Iterator[Any]:
    """Until the end, descriptor 0 and `sys.stdin` are empty, for this process and for its children.

    Yields what to read `source` from: `-` and every other name of standard input (/dev/stdin, /dev/fd/0, a link to
    one, the FIFO behind it) lead to a private copy of its descriptor, or to the stream that stands in for it; None
    where it is closed; any other path is yielded as it is.
    """
    before = sys.stdin
    with ExitStack() as stack:
        stack.callback(setattr, sys, "stdin", before)
        copy = _copied(stack)
        readable = _readable(source, copy)
        empty = os.open(os.devnull, os.O_RDONLY)
        if empty != _DESCRIPTOR:  # which it takes itself where standard input is closed
            os.dup2(empty, _DESCRIPTOR)
            os.close(empty)
        else:
            os.set_inheritable(empty, True)
        sys.stdin = stack.enter_context(open(_DESCRIPTOR, closefd=False))
        yield readable


def _copied(stack: ExitStack) -> int | None:
    """A copy of standard input that children do not get; None where it is closed. It is put back in the end."""
    try:
        copy = fcntl(_DESCRIPTOR, F_DUPFD_CLOEXEC, _FIRST_PRIVATE)
    except OSError:
        stack.callback(_close)
        return None
    stack.callback(os.close, copy)
    stack.callback(os.dup2, copy, _DESCRIPTOR)
    return copy


def _close() -> None:
    with suppress(OSError):
        os.close(_DESCRIPTOR)


def _readable(source: str, copy: int | None) -> Any:
    if source == STANDARD_INPUT or copy is None:
        found = of_stream(source)
        return copy if found == _DESCRIPTOR else found
    try:
        is_the_same = os.path.samestat(os.stat(source), state := os.fstat(copy))
    except (OSError, ValueError):
        return source
    if not is_the_same:
        return source
    return f"/dev/fd/{copy}" if S_ISREG(state.st_mode) else copy  # a file that is named is read from its beginning


def of_stream(source: str) -> Any:
    """What to read a path or `-` from: the path; the descriptor of `sys.stdin`, or the stream that stands in for it;
    None where that is closed.
    """
    if source != STANDARD_INPUT:
        return source
    if sys.stdin is None:
        return None
    try:
        return sys.stdin.buffer.fileno()
    except UnsupportedOperation:
        return sys.stdin.buffer
