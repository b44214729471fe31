"""idemkit's decorator over its memory store: CPU of new calls and of duplicates. Runs in idemkit's own environment.

Prints milliseconds a call for each, as JSON, for `idempotent_sync` and for `idempotent` in one event loop.
"""

import asyncio
import json
import logging
import sys
import time
from typing import Any

from idemkit import InMemoryBackend, MethodConfig, idempotent, idempotent_sync


def main() -> None:
    """`idemkit_calls.py calls`."""
    logging.disable()
    calls = int(sys.argv[1])
    new, again = of_threads(calls)
    new_async, again_async = asyncio.run(in_a_loop(calls))
    print(json.dumps({"sync": [new, again], "async": [new_async, again_async]}))


def settings(calls: int) -> dict[str, Any]:
    return {"backend": InMemoryBackend(max_size=2 * calls), "config": MethodConfig(key_fields=["job_id"])}


def of_threads(calls: int) -> list[float]:
    @idempotent_sync(**settings(calls))
    def nothing(*, job_id: str) -> dict[str, str]:
        return {"ok": "xx"}

    nothing(job_id="warm")
    times = []
    for _ in range(2):  # first new, then the same again
        began = time.process_time()
        for number in range(calls):
            nothing(job_id=f"job-{number}")
        times.append((time.process_time() - began) * 1000 / calls)
    return times


async def in_a_loop(calls: int) -> list[float]:
    @idempotent(**settings(calls))
    async def nothing(*, job_id: str) -> dict[str, str]:
        return {"ok": "xx"}

    await nothing(job_id="warm")
    times = []
    for _ in range(2):
        began = time.process_time()
        for number in range(calls):
            await nothing(job_id=f"job-{number}")
        times.append((time.process_time() - began) * 1000 / calls)
    return times


if __name__ == "__main__":
    main()
