"""What runs in the emulator's own environment: ministack on 127.0.0.1 behind a guard, until standard input ends.

An emulator of Lambda executes what it is sent. A web page can send to a loopback port, and does not even need an
answer to do harm; so whatever a browser marks as its own (`Origin`, `Sec-Fetch-Site`) is refused, and whatever is
addressed to another host (a page whose name was rebound to 127.0.0.1 sends its own name).

A loopback port does not tell who connects: any other user of the machine can. So a request has to show the access key
that was made for this start (or one that the emulator issued to who showed it): as the credential of its signature,
which every AWS SDK sends by itself, or in a header of ours.
"""

import asyncio
import hashlib
import hmac
import os
import re
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
KEY_VARIABLE = "ONEJOB_EMULATOR_KEY"
"""In the environment that the launcher gives; other users cannot read it there."""
KEY_HEADER = "x-onejob-emulator-key"
"""For requests that no SDK signs."""
_KEY_MODULES = ("core.lambda_runtime", "services.lambda_svc", "services.sts", "services.iam")
_SIGNED = re.compile(rb"AWS4-HMAC-SHA256 +Credential=([^/,\s]+)/")
_PRESIGNED = re.compile(rb"(?:^|&)X-Amz-Credential=([^/%&]+)(?:/|%2F)", re.IGNORECASE)


def guard(app: Asgi, key: str, is_issued: Callable[[str], bool] = lambda _: False) -> Asgi:
    """The same application, refusing requests (HTTP and WebSocket) that a browser may have sent, and those that show
    neither `key` nor an access key that the emulator issued.
    """

    def is_known(shown: bytes | None) -> bool:
        if shown is None:
            return False
        return hmac.compare_digest(shown, key.encode()) or is_issued(shown.decode("latin-1"))

    async def guarded(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
        headers = {name.lower(): value for name, value in scope.get("headers", ())}
        host = headers.get(b"host", b"localhost").partition(b":")[0].lower()
        is_ours = host in (b"127.0.0.1", b"localhost") or host.endswith((b".localhost", b".127.0.0.1"))
        is_ours = is_ours and not headers.keys() & FROM_A_BROWSER
        if scope["type"] == "lifespan" or (is_ours and is_known(shown_key(headers, scope.get("query_string", b"")))):
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"refused: from a browser, or without the key\n"})

    return guarded


def shown_key(headers: dict[bytes, bytes], query: bytes) -> bytes | None:
    """The access key that a request shows, by our header, its signature, or its presigned URL."""
    if (told := headers.get(KEY_HEADER.encode())) is not None:
        return told
    found = _SIGNED.match(headers.get(b"authorization", b"")) or _PRESIGNED.search(query)
    return found[1] if found else None


def issued_keys(sts: Any, iam: Any) -> Callable[[str], bool]:
    """Whether ministack issued an access key: of a session or a user. It draws them at random."""

    def is_issued(key: str) -> bool:
        return key in sts._sessions or any(key == known for _, known in iam._access_keys.to_dict())

    return is_issued


def give_functions_a_key(runtime: Any, lambdas: Any, sts: Any, key: str) -> None:
    """Functions call with `key`, or, where the emulator asks for permissions (`AUTH=true`), with a session of their
    role. Ministack would give them the account's number, or a key that is derived from names: anybody can tell those.
    """
    of_function = runtime.execution_credentials

    def with_a_key(config: dict[str, Any]) -> dict[str, str]:
        credentials: dict[str, str] = of_function(config)
        session = sts._sessions.pop(credentials["AWS_ACCESS_KEY_ID"], None)
        if session is None:
            return credentials | {"AWS_ACCESS_KEY_ID": key}
        digest = hmac.new(key.encode(), credentials["AWS_ACCESS_KEY_ID"].encode(), hashlib.sha256).hexdigest()
        own = f"ASIA{digest[:32].upper()}"
        sts.register_session(own, session)
        return credentials | {"AWS_ACCESS_KEY_ID": own}

    runtime.execution_credentials = lambdas.execution_credentials = with_a_key


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
    key = os.environ.pop(KEY_VARIABLE, "")
    if not key:
        sys.exit(f"{KEY_VARIABLE} is not set")
    Thread(target=_end_with_the_parent, args=(folder,), daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: _end(folder))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    os.environ["AWS_ACCESS_KEY_ID"] = key  # of whom ministack takes for root
    os.environ["GATEWAY_PORT"] = str(port)  # ministack writes it into the URLs that it hands out
    app = import_module("ministack.app").app
    grant_batches(import_module("ministack.core.iam_actions"))
    take_metric_math(import_module("ministack.services.cloudformation.provisioners"))
    runtime, lambdas, sts, iam = (import_module(f"ministack.{name}") for name in _KEY_MODULES)
    give_functions_a_key(runtime, lambdas, sts, key)
    config = import_module("hypercorn.config").Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    if os.environ.get("USE_SSL"):
        config.certfile, config.keyfile = os.environ["MINISTACK_SSL_CERT"], os.environ["MINISTACK_SSL_KEY"]
    print(port, flush=True)  # noqa: T201
    try:
        asyncio.run(import_module("hypercorn.asyncio").serve(guard(app, key, issued_keys(sts, iam)), config))
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
