"""The stored item: its format is a contract with Powertools and with records already written."""

from datetime import UTC, datetime, timedelta

from domain.answer import Answer
from domain.record import Acquired, Claim
from tests.support.aws import dynamodb_admin, dynamodb_store, in_process, item
from tests.support.clock import FakeClock
from tests.support.jobs import job

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
JOB = job("job-001", amount=10)


def test_the_format_of_an_item_changes_by_decision_only() -> None:
    with in_process():
        clock = FakeClock(NOW)
        store = dynamodb_store(clock, timedelta(days=1))
        claimed = store.claim(JOB, owner="run-1", lease=timedelta(seconds=60))
        assert isinstance(claimed, Acquired)
        common = {
            "id": f"test.default#{JOB.key.digest}",
            "job_id": "job-001",
            "operation": "default",
            "attempts": 1,
            "first_seen": SECONDS * 1000,
            "last_seen": SECONDS * 1000,
            "validation": JOB.fingerprint,
            "expiration": SECONDS + 86_400,
        }
        lease = {"in_progress_expiration": (SECONDS + 60) * 1000}
        assert item(JOB.key) == common | lease | {"status": "INPROGRESS", "owner": "run-1", "unended": 1}
        counted = claimed.claim.life.counted().ended().rejected(NOW)
        store.release(claimed.claim, "TimeoutError", life=counted)
        released = {"in_progress_expiration": 0, "last_error": "TimeoutError"}
        life = {"runs": 1, "unended": 0, "rejected_at": SECONDS * 1000, "released_by": "run-1"}
        assert item(JOB.key) == common | released | life | {"status": "INPROGRESS"}
        store.claim(JOB, owner="run-2", lease=timedelta(seconds=60))
        store.complete(Claim(JOB.key, "run-2", 2), Answer('{"ok":true}', None))
        done = {"status": "COMPLETED", "owner": "run-2", "data": '{"ok":true}', "attempts": 2}
        assert item(JOB.key) == common | lease | {"last_error": "TimeoutError"} | done
        admin = dynamodb_admin(clock, timedelta(days=1))
        shown = admin.look(JOB.key)
        assert shown is not None
        admin.forget(shown)
        forgotten = common | released | {"status": "INPROGRESS", "attempts": 2, "epoch": 2, "life": 2}
        del forgotten["validation"]
        assert item(JOB.key) == forgotten


def test_an_omitted_answer_is_null_to_powertools_and_says_why_to_us() -> None:
    with in_process():
        store = dynamodb_store(FakeClock(), timedelta(days=1))
        store.claim(JOB, owner="run-1", lease=timedelta(seconds=60))
        store.complete(Claim(JOB.key, "run-1", 1), Answer("null", "too_large: 500000 bytes"))
        assert item(JOB.key)["data"] == "null"
        assert item(JOB.key)["omitted"] == "too_large: 500000 bytes"


def test_times_are_rounded_up_never_to_end_too_early() -> None:
    with in_process():
        clock = FakeClock(NOW)
        clock.time = NOW + timedelta(microseconds=1)
        dynamodb_store(clock, timedelta(days=1)).claim(JOB, owner="run-1", lease=timedelta(microseconds=1500))
        assert item(JOB.key)["in_progress_expiration"] == SECONDS * 1000 + 2
        clock.time = NOW + timedelta(microseconds=200_000)
        other = job("2")
        dynamodb_store(clock, timedelta(days=1)).claim(other, owner="run-1", lease=timedelta(seconds=1))
        assert item(other.key)["expiration"] == SECONDS + 86_401


def test_a_claim_stays_under_one_kilobyte_for_any_legal_id() -> None:
    """One write unit; and room for the answer in 400 KB."""
    with in_process():
        clock = FakeClock()
        store = dynamodb_store(clock, timedelta(days=1))
        longest = job("é" * 128, operation="o" * 64, tenant="t" * 256)
        store.claim(longest, owner="o" * 32, lease=timedelta(seconds=60))
        store.release(Claim(longest.key, "o" * 32, 1), "Fehlerklässe" * 100)
        store.claim(longest, owner="o" * 32, lease=timedelta(seconds=60))
        stored = item(longest.key)
        size = sum(len(name) + len(str(value).encode()) for name, value in stored.items())
        assert stored["last_error"].startswith("Fehlerkl?sse")
        assert size + (64 - len("test")) < 1024


def test_a_takeover_drops_the_old_answer_from_the_item() -> None:
    with in_process():
        clock = FakeClock()
        store = dynamodb_store(clock, timedelta(seconds=60))
        store.claim(JOB, owner="run-1", lease=timedelta(seconds=10))
        store.complete(Claim(JOB.key, "run-1", 1), Answer("null", "too_large: 9 bytes"))
        clock.advance(seconds=62)
        store.claim(JOB, owner="run-2", lease=timedelta(seconds=10))
        assert not {"data", "omitted"} & item(JOB.key).keys()
