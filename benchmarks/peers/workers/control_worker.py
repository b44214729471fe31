# /// script
# requires-python = ">=3.13"
# dependencies = []
# ///
"""No idempotency at all: shows what the queue and the faults do by themselves, and that doubles are counted."""

import json
from typing import Any

from benchmarks.peers.workers.operation import note_answer, operate
from benchmarks.peers.workers.runtime import serve


def handler(event: Any, context: object) -> dict[str, Any]:
    failed = []
    for record in event["Records"]:
        job = json.loads(record["body"])
        try:
            note_answer(job, operate(job))
        except Exception:
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


if __name__ == "__main__":
    serve(handler)
