"""The user's side: a function under a name, and the registry that a worker is given."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from domain.attempt import Attempt
from domain.identity import NAME
from domain.job import Job

DEFAULT_OPERATION: Final = "default"

_PATH: Final = re.compile(r"[./\[\]]|^\$")

type OperationFunction = Callable[[Job, Attempt], object]
type FromBody = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Operation:
    """`run(job, attempt)` does the work and returns the answer to store (see `domain.answer` for what it may hold).

    `volatile` lists top-level payload members that may differ between two deliveries of one request (a send
    time, a trace id); changing the list re-runs nothing. A path into a member is refused, since it would be taken for
    a name and ignore nothing: `meta.sent_at`, `/meta/sent_at`, `items[0]`, `$.meta`.

    Raises `TypeError` for a function that returns before it has run (`async def`, a generator), `ValueError` for an
    illegal name or a path.
    """

    name: str
    run: OperationFunction
    volatile: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"operation {self.name!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ -")
        if isinstance(self.volatile, str):
            raise TypeError(f"operation {self.name}: volatile is a set of names, not a string")
        for member in self.volatile:
            if not isinstance(member, str):
                raise TypeError(f"operation {self.name}: volatile is a set of names, not of {type(member).__name__}")
            if _PATH.search(member):
                raise ValueError(
                    f"operation {self.name}: volatile {member!r} is a path: only top-level members can be left out"
                )
        if _returns_before_running(self.run) or _returns_before_running(type(self.run).__call__):
            raise TypeError(f"operation {self.name}: an async or generator function runs nothing when it is called")


class Operations:
    """The operations that a worker knows. Raises `ValueError` when a name is registered twice, `TypeError` for a
    `from_body` that returns before it has run.

    `from_body(body)` makes a job message of a body without a `job_id`, as another service writes it (an S3
    notification, a CloudEvent): parsed, and out of its envelope. Two deliveries of one body must give one message. What
    it raises rejects the message: a `PermanentError` with its code, anything else as `untranslatable`.
    """

    def __init__(self, *operations: Operation, from_body: FromBody | None = None) -> None:
        if _returns_before_running(from_body) or _returns_before_running(type(from_body).__call__):
            raise TypeError("from_body: an async or generator function makes no message when it is called")
        self.from_body = from_body
        self._by_name = {operation.name: operation for operation in operations}
        if len(self._by_name) != len(operations):
            raise ValueError(f"an operation is registered twice: {', '.join(each.name for each in operations)}")

    def find(self, name: str) -> Operation | None:
        return self._by_name.get(name)

    def wrapped(self, wrap: Callable[[OperationFunction], OperationFunction]) -> "Operations":
        """The same names, volatile members and `from_body`, with `wrap` around each function."""
        wrapped = (replace(operation, run=wrap(operation.run)) for operation in self._by_name.values())
        return Operations(*wrapped, from_body=self.from_body)


def _returns_before_running(function: object) -> bool:
    return (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.isgeneratorfunction(function)
    )
