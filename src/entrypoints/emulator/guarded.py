"""What runs in the emulator's own environment: ministack on 127.0.0.1 behind a guard, until standard input ends.

An emulator of Lambda executes what it is sent. A web page can send to a loopback port, and does not even need an
answer to do harm; so whatever a browser marks as its own (`Origin`, `Sec-Fetch-Site`) is refused, and whatever is
addressed to another host (a page whose name was rebound to 127.0.0.1 sends its own name).
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import Any

type Send = Callable[[dict[str, Any]], Awaitable[None]]
type Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[dict[str, Any]]], Send], Awaitable[None]]

FOLDER_PREFIX = "onejob-emulator-"
FROM_A_BROWSER = frozenset({b"origin", b"sec-fetch-site"})


def guard(app: Asgi) -> Asgi:
    """The same application, refusing requests (HTTP and WebSocket) that a browser may have sent."""

    async def guarded(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
        headers = {name.lower(): value for name, value in scope.get("headers", ())}
        host = headers.get(b"host", b"localhost").partition(b":")[0].lower()
        is_ours = host in (b"127.0.0.1", b"localhost") or host.endswith((b".localhost", b".127.0.0.1"))
        if scope["type"] == "lifespan" or (is_ours and not headers.keys() & FROM_A_BROWSER):
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"requests from a browser are refused\n"})

    return guarded


def take_metric_math(provisioners: Any) -> None:
    """Let a stack have alarms on expressions, which ministack's CloudFormation refuses: each is made on the first
    metric of its expression. None goes off either way: nothing feeds the emulator's metrics.
    """
    record = provisioners._cw_metric_alarm_record

    def with_a_metric(name: str, properties: dict[str, Any]) -> Any:
        stats = [one["MetricStat"] for one in properties.get("Metrics") or () if one.get("MetricStat")]
        if stats:
            metric = {**stats[0]["Metric"], "Period": stats[0]["Period"], "Statistic": stats[0]["Stat"]}
            properties = {key: value for key, value in properties.items() if key != "Metrics"} | metric
        return record(name, properties)

    provisioners._cw_metric_alarm_record = with_a_metric


def grant_batches(iam_actions: Any) -> None:
    """A batch request of SQS needs the permission for the single one; ministack (`AUTH=true`) asks for its own name."""
    named = iam_actions.extract_iam_action

    def named_as_by_iam(service: str, *request: Any) -> Any:
        action = named(service, *request)
        return action.removesuffix("Batch") if service == "sqs" and action else action

    iam_actions.extract_iam_action = named_as_by_iam


def main() -> None:
    """Print the port, and serve until the end. Its one argument is the folder that is its own and goes with it."""
    folder = Path(sys.argv[1])
    if not folder.name.startswith(FOLDER_PREFIX):
        sys.exit(f"{folder} is not a folder of the emulator")
    Thread(target=_end_with_the_parent, args=(folder,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: _end(folder))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    os.environ["GATEWAY_PORT"] = str(port)  # ministack writes it into the URLs that it hands out
    app = import_module("ministack.app").app
    grant_batches(import_module("ministack.core.iam_actions"))
    take_metric_math(import_module("ministack.services.cloudformation.provisioners"))
    config = import_module("hypercorn.config").Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    if os.environ.get("USE_SSL"):
        config.certfile, config.keyfile = os.environ["MINISTACK_SSL_CERT"], os.environ["MINISTACK_SSL_KEY"]
    print(port, flush=True)  # noqa: T201
    try:
        asyncio.run(import_module("hypercorn.asyncio").serve(guard(app), config))
    finally:
        _end(folder)


def _end_with_the_parent(folder: Path) -> None:
    """The parent holds the other end of standard input, and the system closes it however the parent ends."""
    sys.stdin.read()
    _end(folder)


def _end(folder: Path) -> None:
    """At once, with the functions that still run. They go first, or they would write into the folder again."""
    for process in _children():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _children() -> list[int]:
    """Where the system tells (Linux)."""
    try:
        return [int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    main()
