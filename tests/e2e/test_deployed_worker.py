"""The real stack with its real bundle on the emulator, watched through the AWS API only."""

import json
from typing import Any

from tests.e2e.conftest import FLAKY, LONG, MALFORMED, PARTS, REFUSED, TWICE, Deployed, send_while_it_runs
from tests.support.deployed import Watched


def test_the_same_job_twice_is_one_effect_and_one_skip(deployed: Deployed, worker: Watched) -> None:
    worker.until_events("job-001", "business_operation_executed", "job_skipped")
    told = {line["event"]: line for line in worker.lines("job-001")}
    executed, skipped = told["business_operation_executed"], told["job_skipped"]
    assert {executed["sqs_message_id"], skipped["sqs_message_id"]} == set(deployed.sent[TWICE])
    record = worker.records()["job-001"]
    assert record["status"] == "COMPLETED"
    assert record["owner"] == executed["execution_id"] == json.loads(record["data"])["execution_id"]


def test_poison_is_in_the_dead_letter_queue_with_its_reason(deployed: Deployed, worker: Watched) -> None:
    told = worker.dead_letter(MALFORMED)
    assert (told["reason"], told["receives"]) == ("not_json", 1)
    assert [told["message_id"]] == deployed.sent[MALFORMED]
    told = worker.dead_letter(REFUSED)
    assert (told["reason"], told["detail"]) == ("account_closed", "account: closed")
    assert [told["message_id"]] == deployed.sent[REFUSED]
    worker.until_events("refused", "job_rejected")


def test_a_partial_batch_sends_back_what_failed_and_nothing_else(deployed: Deployed, worker: Watched) -> None:
    worker.until_events("flaky", "job_failed", "business_operation_executed")
    failed, executed = worker.lines("flaky")
    assert (failed["attempt"], executed["attempt"]) == (1, 2)
    assert [failed["sqs_message_id"]] == [executed["sqs_message_id"]] == deployed.sent[FLAKY]
    for name in PARTS:
        worker.until_events(name, "business_operation_executed")


def test_a_duplicate_that_meets_a_running_job_is_deferred_and_answered(deployed: Deployed, worker: Watched) -> None:
    job_id, (first, second) = LONG, deployed.sent[LONG]
    told = answered(worker, job_id)
    for number in range(5):
        if "job_deferred" in told:
            break
        job_id = f"{LONG}-{number}"  # on a slow machine the second one comes too late to meet it
        first, second = send_while_it_runs(worker, job_id)
        told = answered(worker, job_id)
    assert told.keys() == {"business_operation_executed", "job_deferred", "job_skipped"}
    assert told["business_operation_executed"]["sqs_message_id"] == first
    assert told["job_deferred"]["sqs_message_id"] == told["job_skipped"]["sqs_message_id"] == second
    assert worker.records()[job_id]["attempts"] == 1


def answered(worker: Watched, job_id: str) -> dict[str, dict[str, Any]]:
    """Its log lines by event, once the duplicate is answered."""
    worker.until(lambda: "job_skipped" in worker.events(job_id), lambda: worker.events(job_id))
    return {line["event"]: line for line in worker.lines(job_id)}
