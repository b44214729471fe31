"""`kill -9` at random moments, two processes on one file of jobs and one database: what was promised, counted.

Every job's effect is recorded; none twice but what was in flight at a kill; the database is never corrupt. CI kills
a few times; `just kill-test 50` is the long form.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

KILLS = int(os.environ.get("ONEJOB_KILLS", "4"))
PROCESSES = 2
JOBS_A_KILL = 60

OPERATION = """
import os

def killer(job, attempt):
    if job.job_id == "7":
        os._exit(9)
    return record(job, attempt)

def record(job, attempt):
    for step in ("before", "after"):  # an effect takes a while: a kill may fall between
        line = f"{job.job_id} {attempt.number} {step}\\n".encode()
        file = os.open("effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.fsync(file)
        os.close(file)
    return attempt.number
"""


def start(operation: str = "record") -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", "from entrypoints.cli.app import main; main()", "run", "jobs.jsonl"]
    options = ["--operation", f"mine:{operation}", "--concurrency", "4", "--lease", "1", "--json"]
    with Path("log").open("ab") as log:
        return subprocess.Popen([*command, *options], stdout=log, stderr=log)


def effects() -> list[str]:
    return Path("effects").read_text().splitlines() if Path("effects").exists() else []


def rows(statement: str) -> list[Any]:
    with closing(sqlite3.connect(".onejob/records.sqlite", timeout=30)) as connection:
        return connection.execute(statement).fetchall()


def test_killed_at_random_moments_every_job_is_done_and_none_twice_but_what_was_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OPERATION)
    jobs = [str(number) for number in range(KILLS * JOBS_A_KILL)]
    Path("jobs.jsonl").write_text("".join(json.dumps({"job_id": job_id}) + "\n" for job_id in jobs))
    seed = int(os.environ.get("ONEJOB_SEED", "1"))
    random = Random(seed)
    in_flight: Counter[str] = Counter()

    for _ in range(KILLS):
        enough = len(effects()) + random.randrange(1, 2 * JOBS_A_KILL)
        workers = [start() for _ in range(PROCESSES)]
        deadline = time.monotonic() + 30
        while len(effects()) < enough and any(worker.poll() is None for worker in workers):
            assert time.monotonic() < deadline, Path("log").read_text()[-2000:]
            time.sleep(random.random() / 100)
        for worker in workers:
            worker.send_signal(signal.SIGKILL)
        for worker in workers:
            worker.wait()
        if Path(".onejob/records.sqlite").exists():
            assert rows("PRAGMA integrity_check") == [("ok",)]
            in_flight.update(row[0] for row in rows("SELECT job_id FROM record WHERE status = 'INPROGRESS'"))

    last = [start() for _ in range(PROCESSES)]
    assert [worker.wait(60) for worker in last] == [0, 0], Path("log").read_text()[-2000:]

    begun = Counter(line.split()[0] for line in effects() if line.endswith("before"))
    ended = Counter(line.split()[0] for line in effects() if line.endswith("after"))
    twice = {job_id: times - 1 for job_id, times in ended.items() if times > 1}
    print(
        f"seed {seed}: {KILLS} kills, {len(jobs)} jobs, {sum(in_flight.values())} in flight at a kill, "
        f"{sum(begun.values()) - sum(ended.values())} effects cut off, {sum(twice.values())} effects twice"
    )
    assert set(ended) == set(jobs), "each job's effect is recorded"
    for job_id, times in begun.items():
        assert times - 1 <= in_flight[job_id], f"{job_id}: begun {times} times, {in_flight[job_id]} kills"
    assert rows("SELECT count(*) FROM record WHERE status = 'COMPLETED'") == [(len(jobs),)]
    attempts = [line.split()[:2] for line in effects() if line.endswith("before")]
    assert len({tuple(each) for each in attempts}) == len(attempts), "no attempt number is given twice"


def test_a_job_that_kills_each_run_keeps_no_other_from_being_done_and_has_no_other_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OPERATION)
    jobs = [str(number) for number in range(40)]
    Path("jobs.jsonl").write_text("".join(json.dumps({"job_id": job_id}) + "\n" for job_id in jobs))
    assert start("killer").wait(60) == 9
    beside = {row[0] for row in rows("SELECT job_id FROM record WHERE status = 'INPROGRESS'")}
    for _ in range(10):  # of those that may have killed the first run, each is the first by chance
        assert start("killer").wait(60) == 9
        assert rows("PRAGMA integrity_check") == [("ok",)]
        (done,) = rows("SELECT count(*) FROM record WHERE status = 'COMPLETED'")[0]
        assert done >= len(jobs) - len(beside)
        if done == len(jobs) - 1:
            break
    else:
        pytest.fail("the jobs beside the one that kills are never done")
    begun = Counter(line.split()[0] for line in effects() if line.endswith("before"))
    assert set(begun) == set(jobs) - {"7"}
    assert {job_id for job_id, times in begun.items() if times > 1} <= beside
    assert max(begun.values()) <= 2
