"""A process that claims and completes what it can of one file; run by test_processes.py, several at a time.

Arguments: file, name, first and last number of the jobs. Prints the ids that it acquired.
"""

import sys
from datetime import timedelta
from pathlib import Path

from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.system import SystemClock
from domain.answer import Answer
from domain.record import Acquired
from tests.support.jobs import job

if __name__ == "__main__":
    path, name, first, last = sys.argv[1:]
    store = SQLiteIdempotencyStore(Path(path), SystemClock(), timedelta(days=1))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(first), int(last)):
        answer = store.claim(job(str(number)), owner=name, lease=timedelta(seconds=60))
        if isinstance(answer, Acquired):
            print(number, flush=True)
            if number % 2:
                store.complete(answer.claim, Answer(f'"{name}"'))
    store.close()
