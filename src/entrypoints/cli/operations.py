"""The operation that `--operation` names: a registered one, or any function or `Operation` of the user's."""

import importlib
import os
import sys
from dataclasses import replace
from typing import Any, cast

from domain.identity import NAME
from domain.operation import DEFAULT_OPERATION, FromBody, Operation, OperationFunction, Operations
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.registered import operations_module, registered_operations


def chosen_operations(operation: str | None, name: str | None) -> tuple[Operations, str]:
    """The operations to run, and the one that is meant by lines that name none. Raises `UnusableOptionError`."""
    known = registered_operations()
    if operation is not None and ":" in operation:
        found = _imported(operation)
        if isinstance(found, Operation):
            return _under_a_name(found, name or found.name, known.from_body)
        named = name or operation.rpartition(":")[2].rpartition(".")[2]
        return _under_a_name(found, named, known.from_body)
    chosen = operation or DEFAULT_OPERATION
    registered = known.find(chosen)
    if registered is None:
        raise UnusableOptionError(
            f"--operation {chosen}: not in OPERATIONS of {operations_module()} (ONEJOB_OPERATIONS names the module); "
            "a function of yours is named package.module:function"
        )
    if name is None:
        return known, chosen
    return _under_a_name(registered, name, known.from_body)


def _under_a_name(
    named: OperationFunction | Operation, name: str, from_body: FromBody | None
) -> tuple[Operations, str]:
    if not NAME.fullmatch(name):
        raise UnusableOptionError(f"--name {name}: expected 1 to 64 characters of A-Z a-z 0-9 _ -")
    try:
        operation = replace(named, name=name) if isinstance(named, Operation) else Operation(name, named)
        return Operations(operation, from_body=from_body), name
    except TypeError as error:
        raise UnusableOptionError(f"--operation: {error}") from error


def _imported(operation: str) -> OperationFunction | Operation:
    """What `package.module:NAME` names: a function, or an `Operation`. The current folder is searched last."""
    module_name, _, attribute = operation.partition(":")
    where = ""
    try:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        module = importlib.import_module(module_name)
        where = f" (in {getattr(module, '__file__', None) or 'a built-in module'})"
        found: Any = module
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise UnusableOptionError(f"--operation {operation}: {type(error).__name__}: {error}{where}") from error
    if isinstance(found, Operation):
        return found
    if not callable(found):
        raise UnusableOptionError(f"--operation {operation}: is neither a function nor an Operation{where}")
    return cast(OperationFunction, found)
