"""`onejob work` over a queue with a fifth of duplicates, two processes, one killed half-way: what came of each job.

Every job's effect is recorded outside, none twice but what was in flight at the kill; nothing is lost or buried.
The suite takes a few jobs; `just work-proof 10000` is the long form.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import boto3
import pytest

from tests.support.aws import TABLE, emulated
from tests.support.sqs_aws import Queues, make_queues

JOBS = int(os.environ.get("ONEJOB_WORK_JOBS", "300"))
SEED = int(os.environ.get("ONEJOB_SEED", "1"))
DUPLICATES = 0.2
IS_SHORT = JOBS < 1000
LEASE_SECONDS = 3 if IS_SHORT else 5

OPERATION = """
import os, threading

def record(job, attempt):
    for step in ("begun", "ended"):  # an effect takes a while: a kill may fall between
        line = f"{job.job_id} {attempt.number} {attempt.execution_id} {os.getpid()} {step}\\n".encode()
        file = os.open("effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line)
        os.close(file)
        if step == "begun":
            threading.Event().wait(0.1)
    return attempt.number
"""


@dataclass(frozen=True)
class Effect:
    """A line of the file that the operation writes."""

    job_id: str
    attempt: int
    execution_id: str
    process: int
    step: str


def effects(step: str) -> list[Effect]:
    lines = Path("effects").read_text().splitlines() if Path("effects").exists() else []
    told = [line.split() for line in lines if line.endswith(step)]
    return [Effect(job, int(number), run, int(process), at) for job, number, run, process, at in told]


START = """
from datetime import timedelta
from adapters.sqs import visibility
from entrypoints.cli.app import main
visibility.FIRST_BACKOFF = timedelta(seconds={backoff})
main()
"""
"""A few jobs wait for few things: a duplicate that was deferred does not keep the suite for ten seconds."""


def start(queues: Queues) -> "subprocess.Popen[bytes]":
    code = START.format(backoff=1 if IS_SHORT else 10)
    command = [sys.executable, "-c", code, "work", "--queue-url", queues.url]
    options = ["--operation", "mine:record", "--lease", str(LEASE_SECONDS), "--poll-seconds", "1"]
    settings = {"IDEMPOTENCY_BACKEND": "dynamodb", "IDEMPOTENCY_TABLE": TABLE, "IDEMPOTENCY_NAMESPACE": "proof"}
    environment = os.environ | settings | {"DEAD_LETTER_QUEUE_URL": queues.dead_letter_url}
    with Path("log").open("ab") as log:
        return subprocess.Popen([*command, *options], stdout=log, stderr=log, env=environment)


def fill(queues: Queues, jobs: list[str]) -> int:
    """Every job once and a fifth of them again, in any order; how many messages that is."""
    random = Random(SEED)
    deliveries = jobs + random.sample(jobs, int(len(jobs) * DUPLICATES))
    random.shuffle(deliveries)
    bodies = [json.dumps({"job_id": job_id}) for job_id in deliveries]

    def send(start: int) -> None:
        entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(bodies[start : start + 10])]
        answer = queues.sqs.send_message_batch(QueueUrl=queues.url, Entries=entries)  # type: ignore[arg-type]
        assert len(answer["Successful"]) == len(entries)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(send, range(0, len(bodies), 10)))
    return len(bodies)


def records() -> dict[str, dict[str, Any]]:
    pages = boto3.client("dynamodb").get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return {item["job_id"]["S"]: item for page in pages for item in page["Items"]}


def until(is_so: Callable[[], bool], seconds: float, *workers: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, Path("log").read_text()[-3000:]
        assert all(worker.poll() is None for worker in workers), Path("log").read_text()[-3000:]
        time.sleep(0.02 if IS_SHORT else 0.2)


def is_half_way(process: int) -> bool:
    """Half of the jobs are done, and that process is in the middle of some."""
    text = Path("effects").read_text() if Path("effects").exists() else ""
    begun, ended = (text.count(f" {process} {step}\n") for step in ("begun", "ended"))
    return text.count(" ended\n") >= JOBS / 2 and begun > ended


def test_killed_half_way_every_job_is_done_once_but_what_was_in_flight_and_nothing_is_buried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OPERATION)
    jobs = [str(number) for number in range(JOBS)]
    patience = 20 + JOBS / 20
    with emulated():
        queues = make_queues(visibility=LEASE_SECONDS)
        messages = fill(queues, jobs)
        began = time.monotonic()
        killed, _ = workers = [start(queues), start(queues)]
        try:
            until(lambda: is_half_way(killed.pid), patience, *workers)
            os.kill(killed.pid, signal.SIGKILL)
            killed.wait()
            in_progress = {item["owner"]["S"] for item in records().values() if item["status"]["S"] == "INPROGRESS"}
            in_flight = {
                one.job_id for one in effects("begun") if one.process == killed.pid and one.execution_id in in_progress
            }
            workers[0] = start(queues)
            until(lambda: queues.counts() == (0, 0), patience, *workers)
            for worker in workers:
                worker.terminate()
            assert [worker.wait(30) for worker in workers] == [0, 0], Path("log").read_text()[-3000:]
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        took = time.monotonic() - began
        by_job = Counter(one.job_id for one in effects("ended"))
        begun = Counter(one.job_id for one in effects("begun"))
        twice = {job_id for job_id, times in by_job.items() if times > 1}
        buried = sum(queues.counts(queues.dead_letter_url))
        lost = set(jobs) - set(by_job)
        log = [json.loads(line) for line in Path("log").read_text().splitlines() if line.startswith("{")]
        told = Counter(line["event"] for line in log if "event" in line)
        print(
            f"\nseed {SEED}: {JOBS:,} jobs, {messages:,} messages, {took:.1f} s; effects {sum(by_job.values()):,}, "
            f"jobs with an effect {len(by_job):,}, in flight at the kill {len(in_flight)}, twice {len(twice)}, "
            f"lost {len(lost)}, buried {buried}"
        )
        print(f"log: {dict(told)}")
        assert not lost
        assert buried == 0
        for job_id, times in begun.items():
            assert times == 1 or (times == 2 and job_id in in_flight), f"{job_id}: begun {times} times"
        attempts = [(one.job_id, one.attempt) for one in effects("begun")]
        assert len(set(attempts)) == len(attempts), "no attempt number is given twice"
        assert {item["status"]["S"] for item in records().values()} == {"COMPLETED"}
        assert len(records()) == JOBS
    assert told["business_operation_executed"] >= JOBS - len(in_flight) - 20
