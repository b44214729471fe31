"""The operations that a worker runs: `OPERATIONS` of the user's module."""

import importlib
import os
import sys
from typing import Final

from adapters.error_place import places
from domain.errors import text_of
from domain.operation import Operations
from entrypoints.settings import SettingError

SETTING: Final = "ONEJOB_OPERATIONS"
DEFAULT_MODULE: Final = "operations"


def operations_module() -> str:
    """The name of the module that has `OPERATIONS`: this project's folder, or what `ONEJOB_OPERATIONS` names."""
    return os.environ.get(SETTING) or DEFAULT_MODULE


def registered_operations() -> Operations:
    """Import the module and return its `OPERATIONS`. The current folder is searched last.

    Raises `SettingError` if there is no such module, if importing it raises, or if `OPERATIONS` is missing.
    """
    name = operations_module()
    setting = f"{SETTING}={name}"
    if SETTING in os.environ and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SettingError(f"{setting}: {text_of(error)}, searched in {', '.join(filter(None, sys.path))}") from error
    except Exception as error:
        why = f"{type(error).__name__}: {text_of(error)}"
        raise SettingError(f"{setting}: importing it failed: {why} ({places(error)[-1]})") from error
    found = getattr(module, "OPERATIONS", None)
    if not isinstance(found, Operations):
        kind = "has no OPERATIONS" if found is None else f"OPERATIONS is {type(found).__name__}, expected Operations"
        raise SettingError(f"{setting}: {module.__file__ or name}: {kind}")
    return found
