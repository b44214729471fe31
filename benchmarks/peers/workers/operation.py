"""The business operation that every peer runs, and what goes wrong in it. Standard library only.

An effect is one line appended to a file that no peer knows of. What shall happen to a worker comes with each
invocation, as steps before the effect, after it, and at the end (after the handler returned).
"""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from typing import Any

type Step = Sequence[Any]
type Script = Mapping[str, Sequence[Step]]

_script: list[Script] = [{}]


class RefusedError(Exception):
    """What no retry mends."""


def follow(script: Script) -> None:
    """From now on."""
    _script[0] = script


def perform(point: str) -> None:
    """The steps of that point: `kill`, `stop`, `wait` seconds, `raise`, or a fault of the store."""
    for step in _script[0].get(point, ()):
        match step:
            case ["kill"]:
                os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(60)
            case ["stop"]:
                os.kill(os.getpid(), signal.SIGSTOP)
                time.sleep(0.2)  # another thread may have taken the signal: the stop is upon all of them by then
            case ["wait", seconds]:
                time.sleep(seconds)
            case ["raise"]:
                raise ConnectionError("told to fail")
            case ["store", *fault]:
                url = f"{os.environ['AWS_ENDPOINT_URL_DYNAMODB']}/_fault"
                urllib.request.urlopen(urllib.request.Request(url, json.dumps(fault).encode()), timeout=5).read()
            case _:
                raise ValueError(f"unknown step {step}")


def operate(job: Mapping[str, Any], lost: Callable[[], bool] = lambda: False) -> object:
    """One run. `lost` is asked just before the effect: whether the peer knows that the lease is gone."""
    perform("before")
    if job.get("poison"):
        raise RefusedError("no retry mends this")
    if lost():
        raise ConnectionError("the lease is lost")
    _append("effect", job)
    perform("after")
    return job.get("answer", "done")


def note_answer(job: Mapping[str, Any], answer: object) -> None:
    """What a delivery was answered, the first one and each replay."""
    _append("answer", job, answer=answer)


def _append(kind: str, job: Mapping[str, Any], **more: object) -> None:
    line = json.dumps({"kind": kind, "job": dict(job), "pid": os.getpid(), **more}) + "\n"
    file = os.open(os.environ["PEER_LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, line.encode())
    os.close(file)
