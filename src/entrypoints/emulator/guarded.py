"""What runs in the emulator's own environment: ministack on 127.0.0.1 behind a guard, until standard input ends.

An emulator of Lambda executes what it is sent. A web page can send to a loopback port, and does not even need an
answer to do harm; so whatever a browser marks as its own (`Origin`, `Sec-Fetch-Site`) is refused.
"""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib import import_module
from threading import Thread
from typing import Any

type Send = Callable[[dict[str, Any]], Awaitable[None]]
type Asgi = Callable[[dict[str, Any], Callable[[], Awaitable[dict[str, Any]]], Send], Awaitable[None]]

FROM_A_BROWSER = frozenset({b"origin", b"sec-fetch-site"})


def guard(app: Asgi) -> Asgi:
    """The same application, refusing requests (HTTP and WebSocket) that a browser sent."""

    async def guarded(scope: dict[str, Any], receive: Callable[[], Awaitable[dict[str, Any]]], send: Send) -> None:
        names = {name.lower() for name, _ in scope.get("headers", ())}
        if not names & FROM_A_BROWSER:
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"requests from a browser are refused\n"})

    return guarded


def main() -> None:
    """Print the port, serve, and leave nothing behind."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    os.environ["GATEWAY_PORT"] = str(port)  # ministack writes it into the URLs that it hands out
    app = import_module("ministack.app").app
    config = import_module("hypercorn.config").Config()
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel = "WARNING"
    config.keep_alive_timeout = 75
    serve = import_module("hypercorn.asyncio").serve
    print(port, flush=True)  # noqa: T201
    try:
        asyncio.run(_serve_until_told(serve, guard(app), config))
    finally:
        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)
        os.killpg(os.getpgrp(), signal.SIGKILL)  # with the functions that it still runs


async def _serve_until_told(serve: Callable[..., Awaitable[None]], app: Asgi, config: Any) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def wait_for_the_parent() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(stop.set)

    Thread(target=wait_for_the_parent, daemon=True).start()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    await serve(app, config, shutdown_trigger=stop.wait)


if __name__ == "__main__":
    main()
