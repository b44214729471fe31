"""How a Lambda door builds its handler: on demand, once, and without looking for garbage among what stays."""

import gc
from collections.abc import Callable
from typing import Any


def built_for_good[T](build: Callable[[], T]) -> T:
    """What is built while Lambda starts the function lives as long as its process: nothing of it is searched for
    garbage, neither now (a tenth of a cold start) nor at later collections.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return build()
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


def handler_on_demand[T](module: dict[str, Any], name: str, build: Callable[[], T]) -> T:
    """For the `__getattr__` of a door's module (PEP 562): its `handler` is built when Lambda asks for it at its start;
    importing the module builds nothing.
    """
    if name != "handler":
        raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
    try:
        module[name] = made = built_for_good(build)
    except AttributeError as error:  # which would be taken for "there is no handler"
        raise RuntimeError(f"the handler cannot be built: {error}") from error
    return made
