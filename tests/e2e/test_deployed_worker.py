"""The real stack with its real bundle on the emulator, watched through the AWS API only."""

import json

from tests.support.deployed import Watched


def test_the_same_job_twice_is_one_effect_and_one_skip(worker: Watched) -> None:
    body = '{"job_id":"job-001"}'
    sent = worker.send(body) + worker.send(body)
    worker.until_events("job-001", "business_operation_executed", "job_skipped")
    executed, skipped = (line for line in worker.lines("job-001") if line["event"] != "job_deferred")
    assert {executed["sqs_message_id"], skipped["sqs_message_id"]} == set(sent)
    record = worker.records()["job-001"]
    assert record["status"] == "COMPLETED"
    assert record["owner"] == executed["execution_id"] == json.loads(record["data"])["execution_id"]


def test_a_partial_batch_sends_back_what_failed_and_nothing_else(worker: Watched) -> None:
    names = [f"part-{number}" for number in range(8)]
    worker.send(*(f'{{"job_id":"{name}"}}' for name in names), '{"job_id":"flaky","operation":"fails_once"}')
    for name in names:
        worker.until_events(name, "business_operation_executed")
    worker.until_events("flaky", "job_failed", "business_operation_executed")
    failed, executed = worker.lines("flaky")
    assert (failed["attempt"], executed["attempt"]) == (1, 2)
    assert failed["sqs_message_id"] == executed["sqs_message_id"]
    assert [worker.events(name) for name in names] == [["business_operation_executed"]] * 8


def test_poison_is_in_the_dead_letter_queue_with_its_reason(worker: Watched) -> None:
    malformed, refused = '{"job_id":"poison"', '{"job_id":"refused","operation":"refuses"}'
    malformed_id, refused_id = worker.send(malformed, refused)
    told = worker.dead_letter(malformed)
    assert (told["reason"], told["message_id"], told["receives"]) == ("not_json", malformed_id, 1)
    told = worker.dead_letter(refused)
    assert (told["reason"], told["detail"], told["message_id"]) == ("account_closed", "account: closed", refused_id)
    worker.until_events("refused", "job_rejected")


def test_a_duplicate_that_meets_a_running_job_is_deferred_and_answered(worker: Watched) -> None:
    body = '{"job_id":"long","operation":"slow"}'
    (first,) = worker.send(body)
    worker.until(lambda: worker.records().get("long", {}).get("status") == "INPROGRESS")
    (second,) = worker.send(body)
    worker.until(lambda: "job_skipped" in worker.events("long"), lambda: worker.events("long"))
    told = {line["event"]: line for line in worker.lines("long")}
    assert told.keys() == {"business_operation_executed", "job_deferred", "job_skipped"}
    assert told["business_operation_executed"]["sqs_message_id"] == first
    assert told["job_deferred"]["sqs_message_id"] == told["job_skipped"]["sqs_message_id"] == second
    assert worker.records()["long"]["attempts"] == 1
