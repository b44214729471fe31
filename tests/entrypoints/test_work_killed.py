"""`onejob work` over a queue with a fifth of duplicates, three processes that are killed, cut off from store and queue,
suspended and clock-stepped, each for longer than its lease: what came of each job.

Every job has an effect or is in the dead-letter queue for an error of its own; an effect happens twice only in the
window of docs/guarantees.md. The suite takes a few jobs; `just work-proof 10000` is the long form.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from itertools import batched
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import boto3
import pytest

from tests.support.aws import TABLE, emulated
from tests.support.cut_proxy import CutProxy
from tests.support.sqs_aws import Queues, make_queues
from tests.support.work_proof.count import by_job, explanations, in_flight, read_runs, repeats
from tests.support.work_proof.faults import Fault, Faults
from tests.support.work_proof.slot import Slot
from tests.support.work_proof.worker import Drawn

JOBS = int(os.environ.get("ONEJOB_WORK_JOBS", "300"))
SEED = int(os.environ.get("ONEJOB_SEED", "1"))
IS_SHORT = JOBS < 1000
LEASE_SECONDS = 2 if IS_SHORT else 3
PAUSE_SECONDS = 0.5 if IS_SHORT else 3
CONCURRENCY = 6 if IS_SHORT else 20
WORKERS = 3
DUPLICATES = 0.2
NEAR = 20
"""Half of the duplicates come within so many messages: they may meet their job while it runs."""

FILLING_SECONDS = max(7, JOBS / 80)
"""Jobs come during all of the faults."""


def deliveries(jobs: list[str]) -> list[str]:
    """Every job once and a fifth of them again: of the long ones each, soon."""
    random = Random(SEED)
    order = list(enumerate(random.sample(jobs, len(jobs))))
    is_long = {job_id for job_id in jobs if Drawn.of(str(SEED), job_id).is_long}
    again = sorted(random.sample(order, len(order)), key=lambda one: one[1] not in is_long)
    moved = [
        (place + random.uniform(0, NEAR) if job_id in is_long or number % 2 else random.uniform(0, len(jobs)), job_id)
        for number, (place, job_id) in enumerate(again[: int(len(jobs) * DUPLICATES)])
    ]
    return [job_id for _, job_id in sorted([*order, *moved])]


def fill(queues: Queues, job_ids: list[str], stopped: Event) -> None:
    """Over `FILLING_SECONDS`, ten messages at a time, unless it is stopped."""
    began = time.monotonic()
    for number, batch in enumerate(batched(job_ids, 10, strict=False)):
        if stopped.wait(max(0.0, began + FILLING_SECONDS * number * 10 / len(job_ids) - time.monotonic())):
            return
        entries = [{"Id": str(n), "MessageBody": json.dumps({"job_id": job_id})} for n, job_id in enumerate(batch)]
        answer = queues.sqs.send_message_batch(QueueUrl=queues.url, Entries=entries)  # type: ignore[arg-type]
        assert len(answer["Successful"]) == len(entries)


@contextmanager
def workers(queues: Queues, port: int) -> Iterator[list[Slot]]:
    options = ["--operation", "tests.support.work_proof.worker:record", "--lease", str(LEASE_SECONDS)]
    settings = {
        "IDEMPOTENCY_BACKEND": "dynamodb",
        "IDEMPOTENCY_TABLE": TABLE,
        "IDEMPOTENCY_NAMESPACE": "proof",
        "DEAD_LETTER_QUEUE_URL": queues.dead_letter_url,
        "JOB_CONCURRENCY": str(CONCURRENCY),
        "PROOF_SEED": str(SEED),
        "PROOF_BACKOFF": "1" if IS_SHORT else "3",
    }
    arguments = ["work", "--queue-url", queues.url, *options, "--poll-seconds", "1"]
    slots = [
        Slot(number, arguments, os.environ | settings, CutProxy(port), CutProxy(port)) for number in range(WORKERS)
    ]
    started: list[Slot] = []
    try:
        for slot in slots:
            slot.start()
            started.append(slot)
        for slot in slots:
            slot.wait_until_started()
        yield slots
    finally:
        for slot in started:
            slot.close()


def work_off(queues: Queues, slots: list[Slot], job_ids: list[str]) -> list[Fault]:
    """Fill the queue and inflict faults meanwhile; wait until nothing is left, and stop the workers. The faults."""
    stopped = Event()
    of_each = [Faults(slot, SEED, LEASE_SECONDS, PAUSE_SECONDS) for slot in slots]

    enough = time.monotonic() + 2 * FILLING_SECONDS

    def is_over() -> bool:
        """The short form takes one round, the long one as many as it has jobs for; a slow machine is given an end."""
        if IS_SHORT or stopped.is_set():
            return True
        return filling.done() and (time.monotonic() > enough or sum(queues.counts()) < JOBS / 10)

    with ThreadPoolExecutor(WORKERS + 1) as threads:
        filling: Future[None] = threads.submit(fill, queues, job_ids, stopped)
        inflicting = [threads.submit(faults.inflict, is_over) for faults in of_each]
        try:
            for each in as_completed([filling, *inflicting]):
                each.result()
        finally:
            stopped.set()
    patience = time.monotonic() + 60 + JOBS / 20
    while queues.counts() != (0, 0):
        assert time.monotonic() < patience, f"seed {SEED}: {queues.counts()} messages are left, {told()}"
        assert all(slot.process.poll() is None for slot in slots), f"seed {SEED}: a worker ended"
        time.sleep(0.05)
    assert [slot.stop() for slot in slots] == [0] * WORKERS
    return [fault for faults in of_each for fault in faults.done]


def records() -> dict[str, dict[str, Any]]:
    pages = boto3.client("dynamodb").get_paginator("scan").paginate(TableName=TABLE, ConsistentRead=True)
    return {item["job_id"]["S"]: item for page in pages for item in page["Items"]}


def dead_letters(queues: Queues) -> Counter[str]:
    """By job id."""
    found: Counter[str] = Counter()
    while received := queues.receive(min(10, sum(queues.counts(queues.dead_letter_url))), url=queues.dead_letter_url):
        found.update(json.loads(message["Body"])["job_id"] for message in received)
        entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(received)]
        queues.sqs.delete_message_batch(QueueUrl=queues.dead_letter_url, Entries=entries)  # type: ignore[arg-type]
    return found


def told() -> Counter[str]:
    """The events of all logs."""
    lines = [line for log in Path().glob("log.*") for line in log.read_text().splitlines() if line.startswith("{")]
    return Counter(event["event"] for event in map(json.loads, lines) if "event" in event)


def test_killed_cut_off_suspended_and_clock_stepped_no_job_is_lost_or_buried_or_done_twice_but_in_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = [str(number) for number in range(JOBS)]
    job_ids = deliveries(jobs)
    with emulated() as aws:
        queues = make_queues(visibility=LEASE_SECONDS)
        began = time.monotonic()
        with workers(queues, aws.port) as slots:
            faults = work_off(queues, slots, job_ids)
        took = time.monotonic() - began
        stored, letters = records(), dead_letters(queues)
    runs = read_runs(Path())
    attempts = by_job(runs)
    done = {run.job for run in runs if run.effect is not None}
    fails_for_good = {job_id for job_id in jobs if Drawn.of(str(SEED), job_id).fails_for_good}
    lost, buried = set(jobs) - done - set(letters), set(letters) - fails_for_good
    why = [
        (second, explanations(first, second, faults, LEASE_SECONDS, between))
        for first, second, between in repeats(runs)
    ]
    reasons = Counter(" or ".join(sorted(found - {"clock"} or found)) or "NOT EXPLAINED" for _, found in why)
    kinds, flying = Counter(fault.kind for fault in faults), in_flight(runs, faults)
    print(
        f"\nseed {SEED}: {JOBS:,} jobs, {len(job_ids):,} messages, {took:.0f} s; in flight at "
        + ", ".join(f"{kinds[kind]} {kind} {flying[kind]}" for kind in sorted(kinds))
        + f"; runs {len(runs):,}, effects {sum(run.effect is not None for run in runs):,}, twice {len(why)} "
        f"{dict(reasons)}, failed for good {len(letters):,}, lost {len(lost)}, healthy buried {len(buried)}"
    )
    print(f"log: {dict(told())}")

    def history(job_id: str) -> str:
        times = [run.begun for run in attempts.get(job_id, [])] or [0]
        near = [fault for fault in faults if fault.overlaps(min(times) - LEASE_SECONDS, max(times))]
        return f"seed {SEED}, job {job_id}: {attempts.get(job_id)}, {stored.get(job_id)}, faults {near}"

    for job_id in sorted(lost | buried):
        pytest.fail(f"{'lost' if job_id in lost else 'buried'}: {history(job_id)}")
    for run, found in why:
        assert found, f"twice without a reason: {history(run.job)}"
    assert set(letters) == fails_for_good
    assert not done & fails_for_good
    for job_id in sorted(done):
        assert stored[job_id]["status"]["S"] == "COMPLETED", history(job_id)
    for job_id, of_job in attempts.items():
        numbers = [run.attempt for run in of_job]
        assert len(set(numbers)) == len(numbers), f"an attempt number is given twice: {history(job_id)}"
        assert {run.epoch for run in of_job} == {1}, history(job_id)
    assert len(kinds) == 8
    assert sum(flying.values()) > 0
