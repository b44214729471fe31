"""The operation that both sides run: as long, as large and as unlucky as its message asks."""

import time
from collections.abc import Mapping
from typing import Any


def work(message: Mapping[str, Any]) -> dict[str, Any]:
    """`ms` to take, `bytes` to answer, `fail` to raise."""
    if milliseconds := message.get("ms"):
        time.sleep(milliseconds / 1000)
    if message.get("fail"):
        raise OSError("told to fail")
    return {"ok": "x" * message.get("bytes", 2)}
