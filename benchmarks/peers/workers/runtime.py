"""A sandbox as Lambda has one: takes an invocation a line until it is killed. Standard library only."""

import json
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any
from uuid import uuid4

from benchmarks.peers.workers import operation


class Context:
    """What peers use of Lambda's context."""

    function_name = "worker"
    memory_limit_in_mb = 512

    def __init__(self, seconds: float) -> None:
        self.aws_request_id = str(uuid4())
        self._end = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.monotonic()) * 1000))


type Handler = Callable[[Any, Any], Any]


def serve(handler: Handler, *distributions: str) -> None:
    """Tell the versions of what is used, then answer invocations."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints is no answer
    versions = {"python": sys.version.split()[0]} | {name: version(name) for name in distributions}
    print(json.dumps({"versions": versions}), file=answers)
    for line in sys.stdin:
        invocation = json.loads(line)
        operation.follow(invocation["script"])
        try:
            answer = {"returned": handler(invocation["event"], Context(invocation["seconds"]))}
        except Exception as error:
            answer = {"raised": type(error).__name__}
        operation.perform("end")
        print(json.dumps(answer), file=answers)
