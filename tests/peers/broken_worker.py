"""A worker that gets everything wrong: says that all is done, and did half of it."""

import json
from typing import Any

from benchmarks.peers.workers.operation import operate
from benchmarks.peers.workers.runtime import serve


def handler(event: Any, context: object) -> dict[str, Any]:
    for record in event["Records"]:
        job = json.loads(record["body"])
        if job["job_id"] != "job-0":
            operate(job)
    return {"batchItemFailures": []}


if __name__ == "__main__":
    serve(handler)
