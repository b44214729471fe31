"""A batch from event to answer: every outcome's message, lanes, and the deadline."""

import json
import time
import tracemalloc
from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from threading import Event, Semaphore, Thread, get_ident
from typing import Any
from unittest.mock import ANY

import pytest

from adapters.sqs.envelope import unwrap
from adapters.sqs.notes import Notes
from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import PermanentError
from domain.job import Job
from domain.outcome import Outcome
from domain.record import Claim, Status
from tests.support.notes import KnownSecret, signed
from tests.support.sqs import Worker, record

TEST_EVENT = '{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"b"}'


def body(job_id: str = "1", **payload: Any) -> str:
    return json.dumps({"job_id": job_id, **payload})


def failing(*job_ids: str, error: BaseException | None = None) -> Callable[[Job, Attempt], object]:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id in job_ids:
            raise error or OSError("told to fail")
        return "ok"

    return run


def reasons(worker: Worker) -> list[str]:
    return [reason["reason"] for reason in buried(worker)]


def buried(worker: Worker) -> list[dict[str, Any]]:
    return [json.loads(letter.attributes["onejob"]["StringValue"]) for letter in worker.queue.letters]


# What becomes of a message


MARKS = "\u0301\u0323" * 70_000
"""Of which normal form C would sort 280 KB for 20 seconds, while no other thread runs."""


@pytest.mark.parametrize(
    "hostile",
    [body(MARKS), body("1", tenant=MARKS), body("1", operation=MARKS)],
    ids=["job_id", "tenant", "operation"],
)
def test_a_message_with_an_endless_name_costs_its_neighbours_nothing(hostile: str) -> None:
    worker = Worker()
    neighbours = [record(f"m{number}", body(f"job-{number}")) for number in range(9)]
    began = time.thread_time()
    assert worker.handle(record("hostile", hostile), *neighbours) == []
    assert time.thread_time() - began < 1, "seconds of the processor"
    assert sorted(worker.runs) == [f"job-{number}" for number in range(9)]
    assert [reason.partition("_")[0] for reason in reasons(worker)] == ["invalid"]


def test_executed_and_skipped_messages_are_done() -> None:
    worker = Worker()
    assert worker.handle(record("a", body()), record("b", body())) == []
    assert worker.handle(record("c", body())) == []
    assert worker.runs == ["1"]
    assert worker.queue.timeouts == {}
    assert worker.queue.deleted == [], "Lambda deletes what is not reported"


def test_a_duplicate_of_a_running_job_looks_again_soon_and_no_later_than_its_lease_ends() -> None:
    worker = Worker()
    job = worker.batches.factory.job({"job_id": "1"})
    worker.memory.claim(job, owner="another", lease=timedelta(seconds=60))
    for receives, seconds in ((1, 1), (2, 1), (5, 8), (7, 32), (8, 61), (90, 61)):
        assert worker.handle(record("a", body(), receives=receives)) == ["a"]
        assert worker.queue.timeouts == {"a": seconds}
        worker.queue.timeouts.clear()


@pytest.mark.parametrize(("receives", "seconds"), [(1, 5), (2, 10), (3, 20), (7, 320), (8, 450), (100, 450)])
def test_a_failed_message_comes_back_after_its_backoff(receives: int, seconds: int) -> None:
    """With the least jitter: half of 10 s, doubled for each receive, of 900 s at most."""
    worker = Worker(failing("1"), max_attempts=1000)
    assert worker.handle(record("a", body(), receives=receives)) == ["a"]
    assert worker.queue.timeouts == {"a": seconds}


def test_an_outage_is_waited_out_for_a_minute_at_least() -> None:
    worker = Worker()
    worker.store._faults = {"claim": ["fails"] * 3}
    assert worker.handle(record("a", body())) == ["a"]
    assert worker.queue.timeouts == {"a": 60}
    assert worker.runs == []


def test_a_rejected_message_is_buried_with_its_reason_and_done() -> None:
    worker = Worker(failing("1", error=PermanentError("card_expired", "card: expected a later date")))
    assert worker.handle(record("a", body())) == []
    (letter,) = worker.queue.letters
    assert letter.message.body == body()
    assert buried(worker) == [
        {
            "reason": "card_expired",
            "detail": "card: expected a later date",
            "error_type": "PermanentError",
            "attempts": 1,
            "receives": 1,
            "first_sent": None,
            "message_id": "a",
            "request_id": "request-1",
            "operation": "default",
            "mac": ANY,
        }
    ]


def test_an_unreadable_message_is_buried_with_its_reason_and_its_batch_mates_run() -> None:
    worker = Worker()
    assert worker.handle(record("a", "not json"), record("b", body()), record("c", "{}")) == []
    assert reasons(worker) == ["not_json", "missing_job_id"]
    assert worker.runs == ["1"]
    assert worker.events.told == [("rejected_unread", "not_json"), ("rejected_unread", "missing_job_id")]


def test_a_burial_that_fails_keeps_the_message() -> None:
    worker = Worker(failing("1", error=PermanentError("no")))
    worker.queue.burying_fails = True
    assert worker.handle(record("a", body()), record("b", "not json", receives=2)) == ["a", "b"]
    assert worker.queue.timeouts == {"a": 5, "b": 10}
    assert ("dead_letter_failed", "a") in worker.events.told


@pytest.mark.parametrize(
    "text",
    [
        TEST_EVENT,
        '{"Type":"SubscriptionConfirmation","TopicArn":"arn:aws:sns:us-east-1:1:t","Token":"x","Message":"You have"}',
        '{"AutoScalingGroupName":"g","Event":"autoscaling:TEST_NOTIFICATION"}',
    ],
)
def test_what_a_service_sends_when_it_is_set_up_is_done(text: str) -> None:
    worker = Worker()
    assert worker.handle(record("a", text)) == []
    assert worker.queue.letters == []
    assert worker.events.told == [("test_event", "a")]


def test_a_message_older_than_the_retention_is_stale_since_its_record_may_be_gone() -> None:
    worker = Worker()
    sent = worker.clock.now() - timedelta(days=28)
    assert worker.handle(record("a", body(), sent_at=sent)) == []
    assert worker.runs == ["1"]
    worker.handle(record("b", body("2"), sent_at=sent - timedelta(seconds=1)))
    assert worker.runs == ["1"]
    assert reasons(worker) == ["stale"]


def test_the_age_of_a_redriven_message_counts_from_its_first_sending() -> None:
    worker = Worker()
    old = round((worker.clock.now() - timedelta(days=29)).timestamp() * 1000)
    burial = signed({"first_sent": old}, body(), worker.batches.notes)
    worker.handle(record("a", body(), sent_at=worker.clock.now(), attributes=burial))
    assert reasons(worker) == ["stale"]
    assert buried(worker)[0]["first_sent"] == old


@pytest.mark.parametrize("mac", [None, "0" * 32])
def test_an_age_that_no_worker_wrote_makes_no_job_stale(mac: str | None) -> None:
    worker = Worker()
    old = round((worker.clock.now() - timedelta(days=40)).timestamp() * 1000)
    claim = {"onejob": {"dataType": "String", "stringValue": json.dumps({"first_sent": old, "mac": mac})}}
    assert worker.handle(record("a", body(), sent_at=worker.clock.now(), attributes=claim)) == []
    assert (len(worker.runs), buried(worker)) == (1, [])


def test_a_failing_visibility_call_changes_no_outcome() -> None:
    worker = Worker(failing("2"))
    worker.queue.settling_fails = True
    assert worker.handle(record("a", body()), record("b", body("2"))) == ["b"]
    assert worker.events.told == [("settling_failed", (0, 1))]


def test_what_nobody_foresaw_fails_one_message_and_no_other() -> None:
    worker = Worker()

    def broken(job: Job, **rest: Any) -> Outcome:
        if job.job_id == "1":
            raise KeyError("bug")
        return worker.service.process(job, **rest)

    worker.batches = replace(worker.batches, process=broken)
    assert worker.handle(record("a", body()), record("b", body("2"))) == ["a"]
    assert worker.events.told == [("crashed", "KeyError")]
    assert worker.queue.timeouts == {"a": 5}


def test_a_message_that_breaks_the_reading_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    monkeypatch.setattr("adapters.sqs.batch.unwrap", lambda text: 1 / 0 if text == body() else unwrap(text))
    assert worker.handle(record("a", body()), record("b", body("2"))) == ["a"]
    assert worker.events.told == [("crashed", "ZeroDivisionError")]


def test_the_failures_are_answered_in_order() -> None:
    worker = Worker(failing("2", "4"))
    records = [record(f"m{number}", body(str(number))) for number in range(1, 6)]
    assert worker.handle(*records) == ["m2", "m4"]


def test_when_all_fail_nothing_is_raised() -> None:
    assert Worker(failing("1")).handle(record("a", body())) == ["a"]


def test_the_lease_outlasts_the_invocation_by_the_grace() -> None:
    worker = Worker(failing("1", error=KeyboardInterrupt()), ends_process=lambda error: True)
    end = worker.clock.now() + timedelta(seconds=30)
    with pytest.raises(KeyboardInterrupt):
        worker.handle(record("a", body()), seconds=30)
    held = worker.record_of("1")
    assert held is not None
    assert held.lease_until == end + timedelta(seconds=30)


# Lanes


def test_records_of_one_job_run_one_after_another_whatever_their_payload() -> None:
    worker = Worker()
    records = [record("a", body(amount=1)), record("b", body(amount=2)), record("c", body(amount=1))]
    assert worker.handle(*records) == []
    assert worker.runs == ["1"]
    assert reasons(worker) == ["payload_mismatch"]


def test_the_rest_of_a_lane_goes_back_with_the_record_that_stopped_it() -> None:
    worker = Worker(failing("1"))
    lane = [record("a", body(), receives=4), record("b", body()), record("c", body())]
    assert worker.handle(*lane, record("d", body("2"))) == ["a", "b", "c"]
    assert worker.queue.timeouts == {"a": 40, "b": 40, "c": 40}
    assert worker.runs == ["1", "2"]


def test_fifo_groups_keep_their_order_and_stop_at_the_first_that_is_not_done() -> None:
    worker = Worker(failing("3"))
    records = [record(f"r{number}", body(str(number)), group="g") for number in range(1, 6)]
    assert worker.handle(*records) == ["r3", "r4", "r5"]
    assert worker.runs == ["1", "2", "3"]
    assert worker.queue.timeouts == {"r3": 5, "r4": 5, "r5": 5}


def test_fifo_groups_do_not_wait_for_one_another() -> None:
    worker = Worker(failing("1"))
    records = [record("a", body("1"), group="g"), record("b", body("2"), group="h")]
    assert worker.handle(*records) == ["a"]
    assert worker.runs == ["1", "2"]


def test_a_buried_message_gives_up_its_place_in_its_group() -> None:
    worker = Worker(failing("2", error=PermanentError("no")))
    records = [
        record("a", "not json", group="g"),
        record("b", body("2"), group="g"),
        record("c", body("3"), group="g"),
    ]
    assert worker.handle(*records) == []
    assert reasons(worker) == ["not_json", "no"]
    assert worker.runs == ["2", "3"]


def test_a_message_that_cannot_be_buried_stops_its_group() -> None:
    worker = Worker()
    worker.queue.burying_fails = True
    assert worker.handle(record("a", "not json", group="g"), record("b", body("2"), group="g")) == ["a", "b"]
    assert worker.runs == []


def test_a_group_id_on_a_standard_queue_orders_nothing() -> None:
    worker = Worker(failing("1"))
    standard = "arn:aws:sqs:us-east-1:000000000000:jobs"
    records = [record(f"m{number}", body(str(number)), group="tenant", queue=standard) for number in (1, 2)]
    assert worker.handle(*records) == ["m1"]
    assert worker.runs == ["1", "2"]


# Receives are not attempts


def test_deferrals_and_late_starts_never_bury_a_healthy_job() -> None:
    worker = Worker(max_attempts=1)
    job = worker.batches.factory.job({"job_id": "1"})
    worker.memory.claim(job, owner="another", lease=timedelta(hours=1))
    for receives in range(1, 6):
        assert worker.handle(record("a", body(), receives=receives)) == ["a"], "deferred"
    for receives in range(6, 11):
        assert worker.handle(record("a", body(), receives=receives), seconds=4) == ["a"], "not started"
    worker.memory.complete(Claim(job.key, "another", 1), Answer("null"))
    assert worker.handle(record("a", body(), receives=11)) == []
    assert worker.queue.letters == []
    fresh = Worker(max_attempts=1)
    assert fresh.handle(record("a", body(), receives=11)) == []
    assert fresh.runs == ["1"]


def test_a_job_that_always_fails_is_buried_after_its_attempts() -> None:
    worker = Worker(failing("1"), max_attempts=3)
    answers = [worker.handle(record("a", body(), receives=receives)) for receives in range(1, 5)]
    assert answers == [["a"], ["a"], ["a"], []]
    assert worker.runs == ["1", "1", "1"]
    (reason,) = buried(worker)
    assert (reason["reason"], reason["error_type"], reason["attempts"], reason["receives"]) == (
        "attempts_exhausted",
        "OSError",
        4,
        4,
    )


# The deadline


def test_nothing_starts_with_less_than_the_margin_left() -> None:
    worker = Worker()
    assert worker.handle(record("a", body()), record("b", body("2")), seconds=5) == ["a", "b"]
    assert worker.runs == []
    assert set(worker.queue.timeouts.values()) <= set(range(1, 11))
    assert worker.events.told == [("no_time_to_start", 2)]
    assert worker.store.calls == {}


def test_a_lane_that_reaches_the_margin_starts_no_more() -> None:
    def slow(job: Job, attempt: Attempt) -> object:
        worker.clock.advance(seconds=10)
        return None

    worker = Worker(slow)
    records = [record(f"m{number}", body(str(number)), group="g") for number in range(5)]
    assert worker.handle(*records, seconds=30) == ["m3", "m4"]
    assert worker.runs == ["0", "1", "2"]
    assert worker.queue.timeouts == {"m3": 1, "m4": 1}


@dataclass
class Invocation:
    """A handler at work in a thread of its own, whose first settling can be awaited."""

    worker: Worker
    records: list[dict[str, Any]]
    seconds: float
    settled: Event = field(default_factory=Event)
    answers: list[list[str]] = field(default_factory=list)

    def __enter__(self) -> "Invocation":
        self.worker.events.flush = self.settled.set  # type: ignore[method-assign]
        self._thread = Thread(target=self._run)
        self._thread.start()
        assert self.settled.wait(10), "everything else is settled while an operation still runs"
        assert not self.answers, "it never returns while an operation runs"
        return self

    def _run(self) -> None:
        self.answers.append(self.worker.handle(*self.records, seconds=self.seconds))

    def __exit__(self, *_: object) -> None:
        self._thread.join(10)


def test_a_hung_operation_holds_only_its_own_message() -> None:
    wake, others = Event(), Semaphore(0)

    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id != "hung":
            others.release()
            return "ok"
        assert all(others.acquire(timeout=10) for _ in range(9))
        return wake.wait(10)

    worker = Worker(run, threads=10)
    records = [record(f"m{number}", body(str(number))) for number in range(9)]
    with Invocation(worker, [*records, record("hung", body("hung"))], seconds=5.2) as invocation:
        assert sorted(worker.queue.deleted) == [f"m{number}" for number in range(9)]
        assert worker.queue.timeouts == {}
        wake.set()
    assert invocation.answers == [[]], "it came to its end in time after all"


def test_messages_that_wait_behind_a_hung_one_are_returned_unstarted() -> None:
    wake = Event()
    worker = Worker(lambda job, attempt: wake.wait(10), threads=1)
    records = [
        record("hung", body("1"), group="g"),
        record("b", body("2"), group="g"),
        record("c", body("3"), group="h"),
    ]
    with Invocation(worker, records, seconds=5.1) as invocation:
        assert worker.queue.timeouts == {"b": 1, "c": 1}
        wake.set()
    assert invocation.answers == [["b", "c"]]
    assert worker.runs == ["1"]


def test_a_hung_operation_that_fails_in_the_end_gets_its_own_visibility() -> None:
    wake = Event()

    def run(job: Job, attempt: Attempt) -> object:
        assert wake.wait(10)
        raise OSError

    worker = Worker(run, threads=1)
    records = [record("a", body(), group="g"), record("behind", body("2"), group="g")]
    with Invocation(worker, records, seconds=5.1) as invocation:
        assert worker.queue.timeouts == {"behind": 1}
        wake.set()
    assert invocation.answers == [["a", "behind"]]
    assert worker.queue.timeouts == {"behind": 1, "a": 5}, "each is set once"


def test_each_operation_that_ends_after_the_margin_is_settled_at_once() -> None:
    """While another one hangs: the time-out then takes only that one's message back."""
    gates = {name: Event() for name in ("good", "bad", "hung")}
    started = Semaphore(0)

    def run(job: Job, attempt: Attempt) -> object:
        started.release()
        assert gates[job.job_id].wait(10)
        if job.job_id == "bad":
            raise OSError
        return "ok"

    worker = Worker(run, threads=3)
    settled = Semaphore(0)
    answers: list[list[str]] = []
    worker.events.flush = settled.release  # type: ignore[method-assign]
    records = [record(name, body(name)) for name in gates]
    handler = Thread(target=lambda: answers.append(worker.handle(*records, seconds=5.5)))
    handler.start()
    assert all(started.acquire(timeout=10) for _ in gates)
    assert settled.acquire(timeout=10)
    assert (worker.queue.deleted, worker.queue.timeouts) == ([], {})
    gates["good"].set()
    assert settled.acquire(timeout=10)
    assert (worker.queue.deleted, worker.queue.timeouts) == (["good"], {})
    gates["bad"].set()
    assert settled.acquire(timeout=10)
    assert (worker.queue.deleted, worker.queue.timeouts) == (["good"], {"bad": 5})
    assert not answers
    gates["hung"].set()
    handler.join(10)
    assert answers == [["bad"]]


def test_what_is_turned_away_is_told_when_it_is_handled_and_not_before() -> None:
    worker = Worker(failing("1"))
    records = [record("a", body(), group="g"), record("b", "not json", group="g"), record("c", TEST_EVENT, group="g")]
    assert worker.handle(*records) == ["a", "b", "c"], "they wait behind a failing one"
    assert worker.events.told == []
    assert worker.handle(record("b", "not json"), record("c", TEST_EVENT), seconds=4) == ["b", "c"]
    assert worker.events.told == [("no_time_to_start", 2)]


def test_a_claim_that_took_too_long_comes_back_soon() -> None:
    worker = Worker()
    claim = worker.store.claim

    def slow(job: Job, **rest: Any) -> Any:
        answer = claim(job, **rest)
        worker.clock.advance(seconds=26)
        return answer

    worker.store.claim = slow  # type: ignore[method-assign]
    assert worker.handle(record("a", body()), seconds=30) == ["a"]
    assert (worker.runs, worker.queue.timeouts) == ([], {"a": 1})


def test_a_deletion_that_fails_is_told() -> None:
    wake = Event()
    worker = Worker(lambda job, attempt: job.job_id == "1" or wake.wait(10), threads=2)
    worker.queue.settling_fails = True
    with Invocation(worker, [record("a", body("1")), record("b", body("2"))], seconds=5.1) as invocation:
        assert worker.events.told == [("settling_failed", (1, 0))]
        wake.set()
    assert invocation.answers == [[]]


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("error", [CancelledError("x"), GeneratorExit(), KeyboardInterrupt(), SystemExit(1)])
def test_what_ends_no_process_fails_its_own_message(error: BaseException, number: int, threads: int) -> None:
    worker = Worker(failing("1", error=error), threads=threads)
    assert worker.handle(*(record(f"m{each}", body(str(each))) for each in range(1, number + 1))) == ["m1"]
    assert worker.queue.timeouts == {"m1": 5}
    failed = worker.record_of("1")
    assert failed is not None
    assert (failed.owner, failed.last_error, failed.life.runs) == (None, type(error).__name__, 1)


def test_an_interrupt_is_raised_again_after_everything_else_is_settled() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id == "2":
            raise KeyboardInterrupt
        if job.job_id == "3":
            raise OSError
        return None

    worker = Worker(run, ends_process=lambda error: isinstance(error, KeyboardInterrupt))
    records = [
        record("a", body("1")),
        record("b", body("2")),
        record("b2", body("2")),
        record("c", body("3")),
        record("d", body("4")),
    ]
    with pytest.raises(KeyboardInterrupt):
        worker.handle(*records)
    assert worker.queue.deleted == ["a", "d"]
    assert worker.queue.timeouts == {"b2": 1, "c": 5}
    held = worker.record_of("2")
    assert held is not None
    assert (held.status, held.owner) == (Status.IN_PROGRESS, "run-2")


@pytest.mark.parametrize("number", [1, 2])
def test_a_message_that_is_the_whole_batch_needs_no_thread_of_its_own(number: int) -> None:
    threads: set[int] = set()
    worker = Worker(lambda job, attempt: threads.add(get_ident()), threads=2)
    assert worker.handle(*(record(str(each), f'{{"job_id":"{each}"}}') for each in range(number))) == []
    assert (get_ident() in threads) is (number == 1)


def test_a_job_whose_note_cannot_be_signed_stays_and_what_is_no_job_leaves_all_the_same() -> None:
    """A dead letter without its age could run long after its record is gone."""
    worker = Worker(failing("1", error=PermanentError("card_expired")))
    worker.batches = replace(worker.batches, notes=Notes(KnownSecret(is_away=True)))
    assert worker.handle(record("a", body()), record("b", "nonsense")) == ["a"]
    assert worker.queue.timeouts["a"] >= 60
    assert [told["message_id"] for told in buried(worker)] == ["b"]
    assert "mac" not in buried(worker)[0]
    assert ("dead_letter_failed", "a") in worker.events.told


def test_a_note_that_cannot_be_judged_waits_for_the_store_and_keeps_nobody_else_waiting() -> None:
    worker = Worker()
    secret = KnownSecret()
    worker.batches = replace(worker.batches, notes=Notes(secret))
    attributes = signed({"first_sent": 1_700_000_000_000}, body("1"), worker.batches.notes)
    secret.is_away = True
    assert worker.handle(record("a", body("1"), attributes=attributes), record("b", body("2"))) == ["a"]
    assert worker.queue.timeouts["a"] >= 60
    assert worker.runs == ["2"]


@pytest.mark.parametrize("receives", [1, 2])
def test_what_a_worker_died_with_runs_alone_when_the_rest_is_done_and_deleted(receives: int) -> None:
    deleted: list[list[str]] = []
    worker = Worker(lambda job, attempt: deleted.append(list(worker.queue.deleted)))
    worker.died_with("1", "2")
    records = [record(name, body(name), receives=receives) for name in ("1", "2", "3")]
    assert worker.handle(*records) == []
    assert worker.runs == ["3", "1", "2"]
    assert deleted == [[], ["3"], ["3", "1"]]


def test_what_kills_its_worker_again_takes_no_attempt_of_its_neighbours() -> None:
    def run(job: Job, attempt: Attempt) -> object:
        if job.job_id == "1":
            raise KeyboardInterrupt
        return None

    worker = Worker(run, ends_process=lambda error: isinstance(error, KeyboardInterrupt))
    worker.died_with("1", "2")
    with pytest.raises(KeyboardInterrupt):
        worker.handle(*(record(name, body(name), receives=2) for name in ("1", "2", "3")))
    assert worker.runs == ["3", "1"]
    innocent = worker.record_of("2")
    assert innocent is not None
    assert (innocent.attempts, innocent.life.runs, worker.queue.deleted) == (1, 0, ["3"])
    assert worker.queue.timeouts == {"2": 1}


def test_a_group_keeps_its_order_where_one_of_it_runs_alone() -> None:
    worker = Worker()
    worker.died_with("2")
    groups = {"1": "g", "2": "g", "3": "g", "4": "h"}
    assert worker.handle(*(record(name, body(name), receives=2, group=groups[name]) for name in groups)) == []
    assert worker.runs == ["1", "4", "2", "3"]


def test_what_is_to_run_alone_comes_back_soon_where_no_time_is_left() -> None:
    worker = Worker(lambda job, attempt: worker.clock.advance(seconds=26))
    worker.died_with("1")
    assert worker.handle(record("1", body("1"), receives=2), record("2", body("2"))) == ["1"]
    assert (worker.runs, worker.queue.timeouts["1"]) == (["2"], 1)


def test_a_batch_holds_no_payload_while_its_jobs_wait() -> None:
    held = '{"job_id":"%s","rows":[' + '{"a":1},' * 20_000 + "1]}"
    peaks: list[int] = []

    def run(job: Job, attempt: Attempt) -> object:
        peaks.append(tracemalloc.get_traced_memory()[0])
        return None

    worker = Worker(run)
    records = [record(name, held % name) for name in "12345678"]
    tracemalloc.start()
    assert worker.handle(*records) == []
    tracemalloc.stop()
    assert max(peaks) < 3 * 20_000 * 200, "one payload at a time, of about 4 MB"
