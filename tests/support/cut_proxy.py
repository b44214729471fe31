"""Between a worker and AWS: a TCP proxy whose line is cut and mended, as a network does it.

Requests that were on their way when the line is cut may have landed; their answers are lost.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import Literal

type Cut = Literal["closed", "silent", "late"]
"""`closed`: every connection is closed, and so is each new one. `silent`: connections stay, what is sent is dropped.
`late`: what is sent arrives when the line is mended, as after TCP's retransmissions, even if its client has given up.
"""

CHUNK = 1 << 16


class CutProxy:
    """Serves until `close`. Thread-safe."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._cut: Cut | None = None
        self._mended = asyncio.Event()
        self._mended.set()
        self._clients: set[asyncio.StreamWriter] = set()
        self._servers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._is_open: Future[int] = Future()
        self._thread = Thread(target=lambda: asyncio.run(self._until_closed()), daemon=True)
        self._thread.start()
        self.port = self._is_open.result()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self, how: Cut) -> None:
        """From now on no answer arrives. Returns when it is so."""

        def do() -> None:
            self._cut = how
            self._mended.clear()
            if how == "closed":
                self._abort()

        self._do(do)

    def mend(self) -> None:
        """Connections from which something was dropped are closed."""

        def do() -> None:
            if self._cut == "silent":
                self._abort()
            self._cut = None
            self._mended.set()

        self._do(do)

    def close(self) -> None:
        self._do(self._closed.set)
        self._thread.join()

    async def _until_closed(self) -> None:
        self._loop, self._closed = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._is_open.set_result(server.sockets[0].getsockname()[1])
        await self._closed.wait()
        server.close()
        self._abort()
        for writer in self._servers:
            writer.transport.abort()
        if self._serving:
            await asyncio.wait(self._serving, timeout=5)
        await asyncio.sleep(0)  # what was aborted is closed in the next round of the loop

    def _do(self, action: Callable[[], None]) -> None:
        async def done() -> None:
            action()

        asyncio.run_coroutine_threadsafe(done(), self._loop).result()

    def _abort(self) -> None:
        for client in self._clients:
            client.transport.abort()

    async def _serve(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._cut == "closed":
            client.transport.abort()
            return
        self._clients.add(client)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            answers, server = await asyncio.open_connection("127.0.0.1", self._server_port)
            self._servers.add(server)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(requests, server))
                both.create_task(self._pump(answers, client))
        finally:
            self._serving.discard(task)
            self._clients.discard(client)
            client.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(CHUNK):
                if self._cut == "silent":
                    continue
                await self._mended.wait()
                target.write(data)
                await target.drain()
        target.close()
