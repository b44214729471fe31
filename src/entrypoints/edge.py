"""The outer edge of a process: errors leave it by type and place, unless `LOG_ERROR_MESSAGES` says otherwise."""

import sys
import threading
import traceback
from collections.abc import Callable
from functools import wraps
from types import TracebackType
from typing import Any

from adapters.error_place import described, texts_are_wanted, without_text


def by_type_and_place[**P, T](
    handle: Callable[P, T], *, known: tuple[type[Exception], ...], texts: bool
) -> Callable[P, T]:
    """The same handler for Lambda, which logs the text of what a handler raises.

    `known` are errors whose texts onejob writes itself. With `texts` everything is raised as it is.
    """

    @wraps(handle)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return handle(*args, **kwargs)
        except known as error:
            raised: BaseException = error
            if not texts:
                raised.__cause__ = raised.__context__ = None
        except BaseException as error:
            if texts:
                raise
            raised = without_text(error)
        raise raised

    return guarded


def install_hooks() -> None:
    """For a command: what ends a thread, or is raised where nobody can catch it, is told by type and place."""
    if texts_are_wanted():
        return
    threading.excepthook = lambda told: tell("a thread ended", told.exc_value)
    sys.unraisablehook = lambda told: tell("an error was ignored", told.exc_value)
    sys.excepthook = _end


def tell(what: str, error: BaseException | None) -> None:
    """A line on standard error. Nothing for `SystemExit`, which is no error of a thread."""
    if error is None or isinstance(error, SystemExit) or sys.stderr is None:
        return
    if texts_are_wanted():
        traceback.print_exception(error)
    else:
        sys.stderr.write(f"onejob: {what}: {described(error)}\n")


def _end(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> Any:
    tell("unexpected error", error)
