"""The operation that `--operation` names: a registered one, or any function of the user's."""

import importlib
import os
import sys
from typing import Any, cast

from domain.identity import NAME
from domain.operation import DEFAULT_OPERATION, FromBody, Operation, OperationFunction, Operations
from entrypoints.cli.errors import UnusableOptionError


def chosen_operations(operation: str | None, name: str | None) -> tuple[Operations, str]:
    """The operations to run, and the one that is meant by lines that name none. Raises `UnusableOptionError`."""
    from domain.business import OPERATIONS

    if operation is not None and ":" in operation:
        function = _imported(operation)
        named = name or operation.rpartition(":")[2].rpartition(".")[2]
        return _under_a_name(function, frozenset(), named, OPERATIONS.from_body)
    registered = operation or DEFAULT_OPERATION
    found = OPERATIONS.find(registered)
    if found is None:
        raise UnusableOptionError(
            f"--operation {registered}: not registered in domain/business.py; "
            "a function of yours is named package.module:function"
        )
    if name is None:
        return OPERATIONS, registered
    return _under_a_name(found.run, found.volatile, name, OPERATIONS.from_body)


def _under_a_name(
    run: OperationFunction, volatile: frozenset[str], name: str, from_body: FromBody | None
) -> tuple[Operations, str]:
    if not NAME.fullmatch(name):
        raise UnusableOptionError(f"--name {name}: expected 1 to 64 characters of A-Z a-z 0-9 _ -")
    try:
        return Operations(Operation(name, run, volatile), from_body=from_body), name
    except TypeError as error:
        raise UnusableOptionError(f"--operation: {error}") from error


def _imported(operation: str) -> OperationFunction:
    """A function by `package.module:function`; the current folder is searched last."""
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
    if not callable(found):
        raise UnusableOptionError(f"--operation {operation}: is not a function{where}")
    return cast(OperationFunction, found)
