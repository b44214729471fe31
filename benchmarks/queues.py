"""`onejob run` beside queues that also work a backlog off from one SQLite file: jobs that do nothing, all in a file of
lines, from the first line read to the last result on disk.

What each does for a job, every step a commit that survives a power cut (WAL, `synchronous=FULL`) unless said otherwise:

    onejob         claim, complete with the answer; jobs at hand share a commit; a job that is done is skipped
    huey           put, take, result (`fsync=True`); a job that is done runs again
    huey, OFF      the same with `fsync=False`: `synchronous=OFF`, a power cut may lose or corrupt
    persist-queue  put, take, acknowledge; no results; a job that is done runs again
"""

import json
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final

from benchmarks import run_file, sides
from benchmarks.pairs import Comparison, Section, in_turn

WORKERS: Final = 10
GOAL: Final = 1.0


def queues(pairs: int, few: int, many: int) -> Section:
    """Seconds for a few jobs, in pairs, and for many once."""
    small, large = _rounds(pairs, few), _rounds(1, many) if many else Section("")
    return Section("`onejob run` on SQLite", [*small.comparisons, *large.comparisons], small.counted)


def _rounds(pairs: int, jobs: int) -> Section:
    peers: dict[str, Callable[[Path], float]] = {
        "huey": partial(_huey, True),
        "huey, OFF": partial(_huey, False),
        "persist-queue": _persist_queue,
    }
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        (folder / "mine.py").write_text(run_file.OPERATION)
        lines = (f'{{"job_id":"j{number}","n":{number}}}\n' for number in range(jobs))
        (folder / "jobs.jsonl").write_text("".join(lines))
        floor = run_file.floor(folder)
        onejob, *theirs = in_turn(
            pairs, partial(_onejob, folder, jobs), *(partial(_fresh, peer, folder) for peer in peers.values())
        )
    comparisons = [
        Comparison(
            name=f"{jobs} jobs", unit="s", ours=onejob, theirs=times, against=peer, goal=None if "OFF" in peer else GOAL
        )
        for peer, times in zip(peers, theirs, strict=True)
    ]
    return Section("", comparisons, {"two_commits_a_job_per_second": round(floor)})


def _onejob(folder: Path, jobs: int) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        done = run_file.run(folder, "--db", f"{name}/records.sqlite")
    assert done["executed"] == jobs, done
    return float(done["seconds"])


def _fresh(peer: Callable[[Path], float], folder: Path) -> float:
    return sides.fresh(peer, folder)


def _jobs(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "jobs.jsonl").read_text().splitlines()]


def _huey(durable: bool, folder: Path) -> float:
    from huey import SqliteHuey

    with tempfile.TemporaryDirectory(dir=folder) as name:
        huey = SqliteHuey("jobs", filename=f"{name}/huey.sqlite", fsync=durable, store_none=True)
        ran: list[object] = []

        @huey.task()
        def nothing(job: object) -> None:
            ran.append(None)

        began = time.perf_counter()
        jobs = _jobs(folder)
        for job in jobs:
            nothing(job)
        consumer = huey.create_consumer(workers=WORKERS, worker_type="thread", initial_delay=0.01, periodic=False)
        consumer.start()
        while len(ran) < len(jobs) or huey.result_count() < len(jobs):
            time.sleep(0.02)
        took = time.perf_counter() - began
        consumer.stop(graceful=True)
    return took


def _persist_queue(folder: Path) -> float:
    from persistqueue import SQLiteAckQueue

    with tempfile.TemporaryDirectory(dir=folder) as name:
        queue = SQLiteAckQueue(name, multithreading=True, auto_commit=True)
        began = time.perf_counter()
        for job in _jobs(folder):
            queue.put(job)

        def work() -> None:
            while queue.size:
                queue.ack(queue.get())

        worker = Thread(target=work)
        worker.start()
        worker.join()
        took = time.perf_counter() - began
        queue.close()
    return took
