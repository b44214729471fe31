"""The contract of `IdempotencyStore`: each condition of its docstrings, over every store."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest

from domain.answer import Answer
from domain.errors import LeaseLostError
from domain.job import Job
from domain.life import Life
from domain.record import Acquired, Busy, Claim, ClaimAnswer, Completed, Mismatch, Record, Status
from tests.contract.harness import RETENTION, Harness
from tests.support.jobs import job

LEASE = timedelta(seconds=60)
JOB = job("job-001", amount=10)
OTHER_PAYLOAD = job("job-001", amount=9999)
OTHER_SCHEME = replace(JOB, fingerprint="v2:" + JOB.fingerprint.partition(":")[2])
INSTANT = timedelta(milliseconds=1)
TTL_INSTANT = timedelta(seconds=1)
"""DynamoDB keeps retention in whole seconds, rounded up."""
ANSWER = Answer('{"ok":"é"}')


def claim(harness: Harness, owner: str = "a", what: Job = JOB, lease: timedelta = LEASE) -> ClaimAnswer:
    return harness.store.claim(what, owner=owner, lease=lease)


def acquire(harness: Harness, owner: str = "a", what: Job = JOB, lease: timedelta = LEASE) -> Claim:
    answer = claim(harness, owner, what, lease)
    assert isinstance(answer, Acquired)
    return answer.claim


def record(harness: Harness) -> Record:
    found = harness.store.find(JOB.key)
    assert found is not None
    return found


def attempt(answer: ClaimAnswer) -> int:
    assert isinstance(answer, Acquired), answer
    return answer.claim.attempt


# claim: who acquires


def test_a_job_without_a_record_is_acquired(harness: Harness) -> None:
    now = harness.clock.now()
    assert claim(harness) == Acquired(Claim(JOB.key, "a", 1))
    assert record(harness) == Record(
        key=JOB.key,
        job_id="job-001",
        status=Status.IN_PROGRESS,
        owner="a",
        attempts=1,
        lease_until=now + LEASE,
        expires_at=now + RETENTION,
        fingerprint=JOB.fingerprint,
        first_seen=now,
        last_seen=now,
        life=Life(unended=1),
    )


def test_of_simultaneous_claims_one_is_acquired(harness: Harness) -> None:
    if not harness.atomic_under_threads:
        pytest.skip("moto's conditional write is not atomic under threads")
    for round_number in range(10):
        what, barrier, answers = job(f"race-{round_number}"), Barrier(16), list[ClaimAnswer]()

        def race(owner: str, what: Job = what, barrier: Barrier = barrier, into: list[ClaimAnswer] = answers) -> None:
            barrier.wait()
            into.append(claim(harness, owner, what))

        _all_at_once([lambda owner=f"w{number}": race(owner) for number in range(16)])  # type: ignore[misc]
        assert len([answer for answer in answers if isinstance(answer, Acquired)]) == 1
        assert len([answer for answer in answers if isinstance(answer, Busy)]) == 15


def test_of_simultaneous_takeovers_one_is_acquired(harness: Harness) -> None:
    if not harness.atomic_under_threads:
        pytest.skip("moto's conditional write is not atomic under threads")
    acquire(harness, "killed")
    harness.clock.time += LEASE + INSTANT
    barrier, answers = Barrier(16), list[ClaimAnswer]()

    def race(owner: str) -> None:
        barrier.wait()
        answers.append(claim(harness, owner))

    _all_at_once([lambda owner=f"w{number}": race(owner) for number in range(16)])  # type: ignore[misc]
    assert [attempt(answer) for answer in answers if isinstance(answer, Acquired)] == [2]


def test_a_live_lease_is_busy_to_its_very_end(harness: Harness) -> None:
    end = harness.clock.now() + LEASE
    acquire(harness)
    assert claim(harness, "b") == Busy(end)
    harness.clock.time = end
    assert claim(harness, "b") == Busy(end)
    harness.clock.time = end + INSTANT
    assert attempt(claim(harness, "b")) == 2


def test_a_completed_record_answers_to_the_very_end_of_its_retention(harness: Harness) -> None:
    harness.store.complete(acquire(harness), ANSWER)
    end = harness.clock.now() + RETENTION
    harness.clock.time = end
    assert claim(harness, "b") == Completed(ANSWER)
    harness.clock.time = end + TTL_INSTANT
    assert attempt(claim(harness, "b")) == 2


def test_a_live_lease_is_judged_before_the_retention(harness: Harness) -> None:
    held = acquire(harness, lease=RETENTION / 2)
    harness.store.renew(held, RETENTION / 2)
    harness.clock.time += RETENTION / 2 - INSTANT
    long = RETENTION * 3
    harness.store.renew(held, long)
    end = harness.clock.now() + long
    harness.clock.time = end
    assert claim(harness, "b") == Busy(end)


def test_the_retention_is_never_shorter_than_the_lease(harness: Harness) -> None:
    acquire(harness, lease=RETENTION * 2)
    assert record(harness).expires_at >= harness.clock.now() + RETENTION * 2
    harness.clock.time += RETENTION * 2
    assert isinstance(claim(harness, "b"), Busy)


def test_a_lapsed_record_past_its_retention_is_free_for_any_payload(harness: Harness) -> None:
    acquire(harness)
    harness.clock.time += RETENTION + TTL_INSTANT
    assert claim(harness, "b", OTHER_PAYLOAD) == Acquired(Claim(JOB.key, "b", 2), None, verified=True)


def test_a_released_record_is_free_at_once(harness: Harness) -> None:
    harness.store.release(acquire(harness), "TimeoutError")
    assert claim(harness, "b") == Acquired(Claim(JOB.key, "b", 2), "TimeoutError")


# claim: fingerprints


def test_another_payload_is_a_mismatch_while_the_retention_runs(harness: Harness) -> None:
    held = acquire(harness)
    assert claim(harness, "b", OTHER_PAYLOAD) == Mismatch()
    harness.clock.time += LEASE + INSTANT
    assert claim(harness, "b", OTHER_PAYLOAD) == Mismatch()
    harness.store.complete(held, ANSWER)
    assert claim(harness, "b", OTHER_PAYLOAD) == Mismatch()
    harness.clock.time += RETENTION + TTL_INSTANT
    assert attempt(claim(harness, "b", OTHER_PAYLOAD)) == 2


def test_another_payload_is_a_mismatch_after_a_release(harness: Harness) -> None:
    harness.store.release(acquire(harness), "TimeoutError")
    assert claim(harness, "b", OTHER_PAYLOAD) == Mismatch()


def test_fingerprints_of_different_schemes_match(harness: Harness) -> None:
    end = harness.clock.now() + LEASE
    held = acquire(harness)
    assert claim(harness, "b", OTHER_SCHEME) == Busy(end, verified=False)
    harness.store.complete(held, ANSWER)
    assert claim(harness, "b", OTHER_SCHEME) == Completed(ANSWER, verified=False)


def test_a_scheme_is_the_whole_name_before_the_colon(harness: Harness) -> None:
    """One scheme may begin as another does: `v1` without an ignore list, `v1-…` with one, `v10` some day."""

    def payload(job_id: str, scheme: str, digest: str) -> Job:
        return replace(job(job_id), fingerprint=f"{scheme}:{digest}")

    for number, (old, new) in enumerate(
        [("v1", "v10"), ("v10", "v1"), ("v1", "v1-a"), ("v1-a", "v1"), ("v1-a", "v1-b")]
    ):
        what, other = payload(f"{number}", old, "1"), payload(f"{number}", new, "2")
        end = harness.clock.now() + LEASE
        acquire(harness, what=what)
        assert claim(harness, "b", other) == Busy(end, verified=False)
        harness.clock.time = end + INSTANT
        assert claim(harness, "b", payload(f"{number}", old, "2")) == Mismatch()
        taken = Claim(what.key, "b", 2)
        assert claim(harness, "b", other) == Acquired(taken, None, verified=False)
        harness.store.complete(taken, ANSWER)
        assert claim(harness, "c", what) == Completed(ANSWER, verified=False)


def test_a_lapsed_record_of_another_scheme_is_taken_over(harness: Harness) -> None:
    acquire(harness)
    harness.clock.time += LEASE + INSTANT
    assert claim(harness, "b", OTHER_SCHEME) == Acquired(Claim(JOB.key, "b", 2), None, verified=False)
    assert record(harness).fingerprint == OTHER_SCHEME.fingerprint


def test_a_forgotten_payload_matches_any(harness: Harness) -> None:
    harness.store.release(acquire(harness), "CardExpired", forget_payload=True)
    assert record(harness).fingerprint is None
    taken = claim(harness, "b", OTHER_PAYLOAD)
    assert taken == Acquired(Claim(JOB.key, "b", 2), "CardExpired", verified=False)
    assert record(harness).fingerprint == OTHER_PAYLOAD.fingerprint


# claim: what acquiring changes


def test_a_takeover_counts_on_and_keeps_what_was_seen(harness: Harness) -> None:
    first_seen = harness.clock.now()
    harness.store.release(acquire(harness), "TimeoutError")
    harness.clock.advance(seconds=5)
    acquire(harness, "b")
    harness.clock.time += LEASE + INSTANT
    assert claim(harness, "c") == Acquired(Claim(JOB.key, "c", 3), "TimeoutError")
    taken = record(harness)
    assert (taken.owner, taken.attempts, taken.first_seen, taken.last_error) == ("c", 3, first_seen, "TimeoutError")
    assert taken.lease_until == harness.clock.now() + LEASE


def test_running_again_drops_the_old_answer(harness: Harness) -> None:
    harness.store.complete(acquire(harness), Answer("null", "too_large: 9 bytes"))
    harness.clock.time += RETENTION + TTL_INSTANT
    held = acquire(harness, "b")
    assert record(harness).answer is None
    harness.store.complete(held, ANSWER)
    assert record(harness).answer == ANSWER


# claim: finding itself


def test_a_claim_whose_answer_was_lost_finds_itself(harness: Harness) -> None:
    acquire(harness)
    harness.clock.advance(seconds=1)
    assert claim(harness) == Acquired(Claim(JOB.key, "a", 1))


def test_a_claim_with_another_payload_is_not_itself(harness: Harness) -> None:
    acquire(harness)
    assert claim(harness, "a", OTHER_PAYLOAD) == Mismatch()
    assert isinstance(claim(harness, "a", OTHER_SCHEME), Busy)


def test_a_claim_that_ended_is_not_itself(harness: Harness) -> None:
    held = acquire(harness)
    harness.store.release(held, "Error")
    assert isinstance(claim(harness), Busy)
    held = acquire(harness, "b")
    assert held.attempt == 2
    harness.store.complete(held, ANSWER)
    assert claim(harness, "b") == Completed(ANSWER)


# complete


def test_a_completed_job_answers_and_keeps_its_owner(harness: Harness) -> None:
    harness.store.complete(acquire(harness), ANSWER)
    assert claim(harness, "b") == Completed(ANSWER)
    done = record(harness)
    assert (done.status, done.owner, done.attempts, done.answer) == (Status.COMPLETED, "a", 1, ANSWER)


@pytest.mark.parametrize("text", ["null", "{}", "[]", "0", '""', "false", "0.0", '"\\u0000"', '"é😀"', '{"a":[1]}'])
def test_an_answer_comes_back_as_it_was_stored(harness: Harness, text: str) -> None:
    harness.store.complete(acquire(harness), Answer(text))
    assert claim(harness, "b") == Completed(Answer(text))


def test_an_omitted_answer_comes_back_with_its_reason(harness: Harness) -> None:
    omitted = Answer("null", "unserializable: complex")
    harness.store.complete(acquire(harness), omitted)
    assert claim(harness, "b") == Completed(omitted)


@pytest.mark.parametrize("filling", ["x", "\x7f", "é"])
def test_the_largest_answer_can_be_stored(harness: Harness, filling: str) -> None:
    """Its size is checked on the text that is stored."""
    most = harness.store.max_answer_bytes or 1_000_000
    largest = Answer.of(filling * ((most - 2) // len(filling.encode())), most)
    assert len(largest.text.encode()) == most
    what = job("x" * 256, operation="o" * 64)
    harness.store.complete(acquire(harness, "o" * 32, what), largest)
    assert claim(harness, "b", what) == Completed(largest)


def test_completion_lands_after_the_lease_time_if_nobody_took_over(harness: Harness) -> None:
    held = acquire(harness)
    harness.clock.time += LEASE * 2
    harness.store.complete(held, ANSWER)
    assert claim(harness, "b") == Completed(ANSWER)


def test_completion_starts_the_retention_anew(harness: Harness) -> None:
    held = acquire(harness)
    harness.clock.advance(seconds=30)
    harness.store.complete(held, ANSWER)
    assert record(harness).expires_at == harness.clock.now() + RETENTION


def test_completion_repeated_by_the_same_pair_succeeds_and_changes_nothing(harness: Harness) -> None:
    held = acquire(harness)
    harness.store.complete(held, ANSWER)
    before = record(harness)
    harness.clock.advance(seconds=5)
    harness.store.complete(held, Answer('"another"'))
    assert record(harness) == before


# release and renew


def test_a_release_keeps_attempts_and_error_and_clears_the_owner(harness: Harness) -> None:
    harness.store.release(acquire(harness), "TimeoutError")
    free = record(harness)
    assert (free.owner, free.attempts, free.last_error) == (None, 1, "TimeoutError")
    assert free.fingerprint == JOB.fingerprint
    assert free.status is Status.IN_PROGRESS
    assert free.lease_until is not None
    assert free.lease_until.year == 1970


def test_a_release_without_an_error_keeps_the_last_one(harness: Harness) -> None:
    harness.store.release(acquire(harness), "TimeoutError")
    harness.store.release(acquire(harness, "b"), "")
    assert record(harness).last_error == "TimeoutError"


def test_a_release_lands_after_the_lease_time_if_nobody_took_over(harness: Harness) -> None:
    held = acquire(harness)
    harness.clock.time += LEASE * 2
    harness.store.release(held, "Error")
    assert record(harness).owner is None


def test_a_renewed_lease_is_busy_until_its_new_end(harness: Harness) -> None:
    held = acquire(harness)
    harness.clock.advance(seconds=50)
    harness.store.renew(held, LEASE)
    end = harness.clock.now() + LEASE
    harness.clock.time = end
    assert claim(harness, "b") == Busy(end)
    assert record(harness).expires_at == end - LEASE + RETENTION
    harness.clock.time = end + INSTANT
    assert attempt(claim(harness, "b")) == 2


def test_a_renewal_lands_after_the_lease_time_if_nobody_took_over(harness: Harness) -> None:
    held = acquire(harness)
    harness.clock.time += LEASE * 2
    harness.store.renew(held, LEASE)
    assert isinstance(claim(harness, "b"), Busy)


def test_a_renewal_that_lands_after_a_later_one_changes_nothing(harness: Harness) -> None:
    held = acquire(harness)
    asked = harness.clock.time
    harness.clock.advance(seconds=50)
    harness.store.renew(held, LEASE)
    before = record(harness)
    harness.clock.time = asked + INSTANT  # as the other one, delayed on its way, says
    harness.store.renew(held, LEASE)
    assert record(harness) == before
    harness.clock.time = asked + LEASE + 2 * INSTANT
    assert isinstance(claim(harness, "b"), Busy)


def test_a_renewal_never_makes_the_retention_shorter_than_the_lease(harness: Harness) -> None:
    held = acquire(harness)
    harness.store.renew(held, RETENTION * 2)
    assert record(harness).expires_at >= harness.clock.now() + RETENTION * 2


# The fence: complete, release and renew land under the same condition


WRITES: dict[str, Callable[[Harness, Claim], None]] = {
    "complete": lambda harness, held: harness.store.complete(held, Answer('"late"')),
    "release": lambda harness, held: harness.store.release(held, "Late"),
    "release and forget": lambda harness, held: harness.store.release(held, "Late", forget_payload=True),
    "renew": lambda harness, held: harness.store.renew(held, LEASE),
}


@pytest.fixture(params=list(WRITES))
def write(request: pytest.FixtureRequest) -> Callable[[Harness, Claim], None]:
    return WRITES[request.param]


type Write = Callable[[Harness, Claim], None]


def refused(harness: Harness, write: Write, held: Claim) -> None:
    before = harness.store.find(held.key)
    with pytest.raises(LeaseLostError):
        write(harness, held)
    assert harness.store.find(held.key) == before


def test_without_a_record_nothing_lands(harness: Harness, write: Write) -> None:
    refused(harness, write, Claim(JOB.key, "a", 1))


def test_a_late_worker_changes_nothing_while_another_runs(harness: Harness, write: Write) -> None:
    late = acquire(harness)
    harness.clock.time += LEASE + INSTANT
    acquire(harness, "b")
    refused(harness, write, late)


def test_a_late_worker_changes_nothing_after_another_completed(harness: Harness, write: Write) -> None:
    late = acquire(harness)
    harness.clock.time += LEASE + INSTANT
    harness.store.complete(acquire(harness, "b"), ANSWER)
    refused(harness, write, late)
    assert claim(harness, "c") == Completed(ANSWER)


def test_a_late_worker_changes_nothing_after_another_released(harness: Harness, write: Write) -> None:
    late = acquire(harness)
    harness.clock.time += LEASE + INSTANT
    harness.store.release(acquire(harness, "b"), "Error")
    refused(harness, write, late)


def test_the_owner_alone_is_no_fence(harness: Harness, write: Write) -> None:
    late = acquire(harness)
    harness.clock.time += LEASE + INSTANT
    acquire(harness)
    refused(harness, write, late)


def test_the_attempt_alone_is_no_fence(harness: Harness, write: Write) -> None:
    refused(harness, write, replace(acquire(harness), owner="b"))


@pytest.mark.parametrize("name", ["complete", "renew"])
def test_a_released_claim_is_no_longer_held(harness: Harness, name: str) -> None:
    held = acquire(harness)
    harness.store.release(held, "Error")
    refused(harness, WRITES[name], held)


@pytest.mark.parametrize("name", ["release", "release and forget"])
def test_a_release_repeated_for_the_same_attempt_succeeds_and_changes_nothing(harness: Harness, name: str) -> None:
    held = acquire(harness)
    harness.store.release(held, "Error")
    before = record(harness)
    WRITES[name](harness, held)
    assert record(harness) == before
    acquire(harness, "b")
    refused(harness, WRITES[name], held)


@pytest.mark.parametrize("name", ["release", "release and forget", "renew"])
def test_a_completed_claim_is_no_longer_held(harness: Harness, name: str) -> None:
    held = acquire(harness)
    harness.store.complete(held, ANSWER)
    refused(harness, WRITES[name], held)


def test_a_completed_record_is_completed_by_nobody_else(harness: Harness) -> None:
    held = acquire(harness)
    harness.store.complete(held, ANSWER)
    refused(harness, WRITES["complete"], replace(held, owner="b"))
    refused(harness, WRITES["complete"], replace(held, attempt=2))


# find, and keys


def test_nothing_is_found_where_nothing_was_claimed(harness: Harness) -> None:
    assert harness.store.find(JOB.key) is None


@pytest.mark.parametrize("other", [job("job-002"), job("job-001", tenant="acme"), job("job-001", operation="refund")])
def test_jobs_of_different_keys_do_not_meet(harness: Harness, other: Job) -> None:
    acquire(harness)
    assert attempt(claim(harness, "b", other)) == 1


def _all_at_once(tasks: list[Callable[[], None]]) -> None:
    threads = [Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# begin, and what is counted

REJECTED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def life(harness: Harness) -> Life:
    return record(harness).life


def test_each_claim_is_an_attempt_under_way_until_it_is_ended(harness: Harness) -> None:
    assert acquire(harness).life == Life(unended=1)
    harness.clock.time += LEASE + INSTANT
    held = acquire(harness, "b")
    assert held.life == life(harness) == Life(unended=2)
    harness.store.release(held, "Error")
    assert life(harness) == Life(unended=1)
    taken = acquire(harness, "c")
    assert (taken.attempt, taken.life) == (3, Life(unended=2))
    assert acquire(harness, "c").life == Life(unended=2), "a claim that finds itself"


def test_a_run_is_counted_under_the_fence(harness: Harness) -> None:
    held = acquire(harness)
    for _ in range(2):
        harness.store.begin(held, held.life.counted())
        assert life(harness) == Life(runs=1, unended=1)
    harness.clock.time += LEASE + INSTANT
    assert acquire(harness, "b").life == Life(runs=1, unended=2)
    with pytest.raises(LeaseLostError):
        harness.store.begin(held, Life(runs=5))
    assert life(harness) == Life(runs=1, unended=2)


@pytest.mark.parametrize("what", ["released", "completed", "gone"])
def test_a_run_of_an_attempt_that_ended_is_not_counted(harness: Harness, what: str) -> None:
    held = acquire(harness)
    if what == "released":
        harness.store.release(held, "Error")
    if what == "completed":
        harness.store.complete(held, ANSWER)
    if what == "gone":
        held = replace(held, key=job("nobody").key)
    before = life(harness)
    with pytest.raises(LeaseLostError):
        harness.store.begin(held, Life(runs=5))
    assert life(harness) == before


@pytest.mark.parametrize("counted", [Life(), Life(runs=3), Life(runs=3, unended=2), Life(rejected_at=REJECTED_AT)])
def test_a_release_counts_as_it_is_told(harness: Harness, counted: Life) -> None:
    harness.store.release(acquire(harness), "Error", life=Life(runs=2, rejected_at=REJECTED_AT))
    held = acquire(harness, "b")
    assert held.life == Life(runs=2, unended=1, rejected_at=REJECTED_AT)
    for _ in range(2):  # once more changes nothing
        harness.store.release(held, "", life=counted)
        assert life(harness) == counted
    assert acquire(harness, "c").life == counted.claimed()


def test_what_is_done_has_no_runs(harness: Harness) -> None:
    harness.store.release(acquire(harness), "Error", life=Life(runs=4, rejected_at=REJECTED_AT))
    harness.store.complete(acquire(harness, "b"), ANSWER)
    assert life(harness) == Life()


@pytest.mark.parametrize("how", ["completed", "released", "lapsed"])
def test_after_the_retention_another_life_begins_and_attempts_go_on(harness: Harness, how: str) -> None:
    harness.store.release(acquire(harness), "Error", life=Life(runs=4, rejected_at=REJECTED_AT))
    held = acquire(harness, "b")
    if how == "completed":
        harness.store.complete(held, ANSWER)
    if how == "released":
        harness.store.release(held, "Error", life=Life(runs=5))
    harness.clock.time += RETENTION + TTL_INSTANT
    taken = acquire(harness, "c")
    assert taken.attempt == 3
    assert taken.life == life(harness) == Life(2, unended=1)


def test_a_claim_drops_no_runs_while_the_retention_lasts(harness: Harness) -> None:
    harness.store.release(acquire(harness), "Error", life=Life(runs=4, rejected_at=REJECTED_AT))
    harness.clock.time += RETENTION
    assert acquire(harness, "b").life == Life(runs=4, unended=1, rejected_at=REJECTED_AT)


def test_a_claim_that_lands_after_its_own_release_takes_nothing(harness: Harness) -> None:
    """It was asked for before, by a try whose answer nobody waits for: it would hold the job, and its payload."""
    harness.store.release(acquire(harness), "CardExpired", forget_payload=True)
    before = record(harness)
    assert before.released_by == "a"
    assert isinstance(claim(harness, "a"), Busy)
    assert record(harness) == before
    assert attempt(claim(harness, "b", OTHER_PAYLOAD)) == 2
    assert record(harness).released_by is None


# close


def test_a_store_that_is_closed_twice_leaves_its_records_and_its_claims(harness: Harness) -> None:
    acquire(harness)
    before = harness.admin.look(JOB.key)
    harness.store.close()
    harness.store.close()
    assert harness.admin.look(JOB.key) == before is not None
