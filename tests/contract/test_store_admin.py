"""The contract of `StoreAdmin`: each condition of its docstrings, over every store."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.answer import Answer
from domain.attempt import Attempt
from domain.errors import LeaseHeldError, LeaseLostError, RecordChangedError
from domain.job import Job
from domain.life import Life
from domain.record import Acquired, Claim, Completed, Record, State
from tests.contract.harness import RETENTION, Harness
from tests.support.jobs import job

LEASE = timedelta(seconds=60)
LATER = timedelta(seconds=2)
"""More than any store rounds up."""
JOB = job("job-001", amount=10)
CORRECTED = job("job-001", amount=11)


def acquire(harness: Harness, what: Job = JOB, owner: str = "a") -> Claim:
    answer = harness.store.claim(what, owner=owner, lease=LEASE)
    assert isinstance(answer, Acquired), answer
    return answer.claim


def complete(harness: Harness, what: Job = JOB) -> None:
    harness.store.complete(acquire(harness, what), Answer('"done"'))


def look(harness: Harness, what: Job = JOB) -> Record:
    found = harness.admin.look(what.key)
    assert found is not None
    return found


def state(harness: Harness, what: Job = JOB) -> State:
    return look(harness, what).state(harness.clock.now())


# look and records


def test_there_is_no_record_of_what_was_never_claimed(harness: Harness) -> None:
    assert harness.admin.look(JOB.key) is None


def test_a_record_tells_when_it_was_first_and_last_seen(harness: Harness) -> None:
    first = harness.clock.now()
    claim = acquire(harness)
    assert (look(harness).first_seen, look(harness).last_seen) == (first, first)
    harness.clock.advance(seconds=3)
    harness.store.release(claim, "OSError")
    assert (look(harness).first_seen, look(harness).last_seen) == (first, harness.clock.now())
    harness.clock.advance(seconds=3)
    claim = acquire(harness, owner="b")
    assert (look(harness).first_seen, look(harness).last_seen) == (first, harness.clock.now())
    harness.clock.advance(seconds=3)
    harness.store.complete(claim, Answer("1"))
    assert (look(harness).first_seen, look(harness).last_seen) == (first, harness.clock.now())


def test_a_record_says_in_which_state_it_is(harness: Harness) -> None:
    claim = acquire(harness)
    assert state(harness) is State.RUNNING
    harness.clock.advance(seconds=60)
    assert state(harness) is State.RUNNING, "at its very end a lease is still held"
    harness.clock.advance(seconds=1)
    assert state(harness) is State.LAPSED
    harness.store.release(claim, "OSError")
    assert state(harness) is State.RELEASED
    harness.store.complete(acquire(harness, owner="b"), Answer("1"))
    assert state(harness) is State.COMPLETED
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    assert state(harness) is State.EXPIRED


def test_all_records_are_read_whatever_their_number(harness: Harness) -> None:
    jobs = [job(f"job-{number}") for number in range(25)]
    for each in jobs:
        acquire(harness, each)
    records = {record.key: record for record in harness.admin.records()}
    assert records.keys() == {each.key for each in jobs}
    assert records == {each.key: look(harness, each) for each in jobs}


def test_there_are_no_records_in_an_empty_store(harness: Harness) -> None:
    assert list(harness.admin.records()) == []


# forget


def test_a_completed_job_that_is_forgotten_runs_again_as_another_attempt_of_another_epoch(harness: Harness) -> None:
    complete(harness)
    before = look(harness)
    forgotten = harness.admin.forget(before)
    assert forgotten == look(harness)
    assert forgotten.state(harness.clock.now()) is State.RELEASED
    assert (forgotten.answer, forgotten.fingerprint, forgotten.owner) == (None, None, None)
    assert (forgotten.attempts, forgotten.epoch, forgotten.first_seen) == (1, 2, before.first_seen)
    claim = acquire(harness)
    assert (claim.attempt, claim.epoch) == (2, 2)
    assert look(harness).epoch == 2


def test_a_corrected_payload_may_run_after_that(harness: Harness) -> None:
    complete(harness)
    harness.admin.forget(look(harness))
    claim = acquire(harness, CORRECTED)
    harness.store.complete(claim, Answer("2"))
    assert harness.store.claim(CORRECTED, owner="b", lease=LEASE) == Completed(Answer("2"))


def test_each_epoch_has_effect_keys_of_its_own(harness: Harness) -> None:
    keys = set()
    for _ in range(3):
        claim = acquire(harness)
        attempt = Attempt(claim.attempt, claim.owner, None, lambda: False, claim.key, claim.epoch)
        keys.add(attempt.effect_key("charge"))
        harness.store.complete(claim, Answer("1"))
        harness.admin.forget(look(harness))
    assert len(keys) == 3
    assert f"{JOB.key}#charge" in keys


def test_an_epoch_lasts_for_a_claim_that_comes_back_too(harness: Harness) -> None:
    acquire(harness)
    harness.admin.forget(look(harness), force=True)
    claim = acquire(harness, owner="b")
    assert acquire(harness, owner="b") == claim


def test_a_failed_job_can_be_forgotten_and_one_that_was_forgotten(harness: Harness) -> None:
    harness.store.release(acquire(harness), "OSError")
    assert harness.admin.forget(look(harness)).last_error == "OSError"
    assert harness.admin.forget(look(harness)).epoch == 3


def test_a_lapsed_job_is_forgotten_by_force_alone_since_it_may_have_had_its_effect(harness: Harness) -> None:
    acquire(harness)
    harness.clock.advance(seconds=61)
    before = look(harness)
    with pytest.raises(LeaseHeldError):
        harness.admin.forget(before)
    assert look(harness) == before
    assert harness.admin.forget(before, force=True).epoch == 2


def test_a_running_job_is_forgotten_by_force_alone(harness: Harness) -> None:
    claim = acquire(harness)
    before = look(harness)
    with pytest.raises(LeaseHeldError):
        harness.admin.forget(before)
    assert look(harness) == before
    harness.admin.forget(before, force=True)
    with pytest.raises(LeaseLostError):
        harness.store.renew(claim, LEASE)
    with pytest.raises(LeaseLostError):
        harness.store.complete(claim, Answer("1"))
    assert acquire(harness, owner="b").attempt == 2


def test_a_lease_that_was_renewed_since_it_was_shown_is_still_held(harness: Harness) -> None:
    claim = acquire(harness)
    harness.clock.advance(seconds=61)
    shown = look(harness)
    harness.store.renew(claim, LEASE)
    with pytest.raises(LeaseHeldError):
        harness.admin.forget(shown)
    assert harness.admin.forget(shown, force=True).epoch == 2, "a renewal is no change"


@pytest.mark.parametrize("force", [False, True])
def test_what_changed_since_it_was_shown_is_left_as_it_is(harness: Harness, force: bool) -> None:
    claim = acquire(harness)
    harness.clock.advance(seconds=61)
    shown = look(harness)
    harness.store.complete(claim, Answer('"kept"'))
    completed = look(harness)
    with pytest.raises(RecordChangedError):
        harness.admin.forget(shown, force=force)
    assert look(harness) == completed
    harness.admin.forget(completed)
    forgotten = look(harness)
    with pytest.raises(RecordChangedError):
        harness.admin.forget(completed, force=force)
    assert look(harness) == forgotten
    with pytest.raises(RecordChangedError):
        harness.admin.forget(replace(shown, key=job("never").key), force=force)


def test_a_job_taken_over_since_it_was_shown_is_left_as_it_is(harness: Harness) -> None:
    acquire(harness)
    harness.clock.advance(seconds=61)
    shown = look(harness)
    acquire(harness, owner="b")
    with pytest.raises(RecordChangedError):
        harness.admin.forget(shown, force=True)


def test_what_was_forgotten_is_remembered_for_a_whole_retention(harness: Harness) -> None:
    complete(harness)
    harness.clock.advance(seconds=(RETENTION - LATER).total_seconds())
    harness.admin.forget(look(harness))
    harness.clock.advance(seconds=(RETENTION - LATER).total_seconds())
    harness.admin.purge()
    assert look(harness).epoch == 2


# purge


def purge(harness: Harness, limit: int = 1000) -> tuple[int, int]:
    """To the end: how many were seen and deleted."""
    seen = deleted = 0
    after = None
    for _ in range(100):
        page = harness.admin.purge(after=after, limit=limit)
        assert page.seen <= limit
        seen, deleted, after = seen + page.seen, deleted + page.deleted, page.after
        if after is None:
            return seen, deleted
    raise AssertionError("a purge comes to its end")


def test_a_purge_deletes_what_nobody_answers_for_and_nothing_else(harness: Harness) -> None:
    old = [job(f"old-{number}") for number in range(7)]
    for each in old:
        complete(harness, each)
    harness.store.release(acquire(harness, job("failed")), "OSError")
    acquire(harness, job("lapsed"))
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    complete(harness, job("new"))
    acquire(harness, job("running"))
    assert purge(harness, limit=4) == (11, 9)
    assert {record.job_id for record in harness.admin.records()} == {"new", "running"}
    assert purge(harness) == (2, 0)


def test_a_lease_outlasts_every_purge(harness: Harness) -> None:
    lease = RETENTION * 2
    harness.store.claim(JOB, owner="a", lease=lease)
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    assert purge(harness) == (1, 0)
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    assert purge(harness) == (1, 1)


def test_a_purge_of_nothing_is_over_at_once(harness: Harness) -> None:
    assert purge(harness) == (0, 0)


def test_a_purged_job_is_a_new_one(harness: Harness) -> None:
    complete(harness)
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    purge(harness)
    assert harness.admin.look(JOB.key) is None
    assert acquire(harness).attempt == 1


# restart


def test_a_forgotten_job_begins_another_life(harness: Harness) -> None:
    harness.store.release(acquire(harness), "OSError", life=Life(runs=3))
    forgotten = harness.admin.forget(look(harness))
    assert (forgotten.life, forgotten.attempts) == (Life(2), 1)
    assert look(harness) == forgotten


def test_a_restarted_job_begins_another_life_and_is_as_it_was(harness: Harness) -> None:
    harness.store.release(acquire(harness), "OSError", life=Life(runs=3, rejected_at=harness.clock.now()))
    before = look(harness)
    harness.admin.restart(before)
    assert look(harness) == replace(before, life=Life(2))
    harness.admin.restart(look(harness))
    assert look(harness) == replace(before, life=Life(3))


@pytest.mark.parametrize("how", ["release", "begin", "both"])
def test_an_attempt_that_was_under_way_counts_nothing_in_another_life(harness: Harness, how: str) -> None:
    harness.store.release(acquire(harness), "OSError", life=Life(runs=3))
    held = acquire(harness, owner="b")
    harness.admin.restart(look(harness))
    if how != "release":
        harness.store.begin(held, held.life.counted())
        assert look(harness).life == Life(2)
    if how != "begin":
        harness.store.release(held, "KeyError", life=held.life.counted().ended())
        assert (look(harness).owner, look(harness).last_error) == (None, "KeyError"), "it is released all the same"
        harness.store.release(held, "KeyError", life=held.life.counted().ended())
    assert look(harness).life == Life(2)
    harness.clock.advance(seconds=61)
    assert acquire(harness, owner="c").life == Life(2, unended=1)


def test_who_was_forgotten_by_force_learns_it_at_its_release_too(harness: Harness) -> None:
    held = acquire(harness)
    harness.admin.forget(look(harness), force=True)
    before = look(harness)
    with pytest.raises(LeaseLostError):
        harness.store.release(held, "OSError")
    assert look(harness) == before


def test_who_gave_a_job_back_that_was_forgotten_since_is_refused_a_repetition(harness: Harness) -> None:
    held = acquire(harness)
    harness.store.release(held, "OSError")
    harness.admin.forget(look(harness))
    before = look(harness)
    with pytest.raises(LeaseLostError):
        harness.store.release(held, "OSError")
    assert look(harness) == before


def test_what_changed_since_it_was_shown_is_not_restarted(harness: Harness) -> None:
    harness.store.release(acquire(harness), "OSError", life=Life(runs=3))
    shown = look(harness)
    acquire(harness, owner="b")
    before = look(harness)
    with pytest.raises(RecordChangedError):
        harness.admin.restart(shown)
    assert look(harness) == before
    with pytest.raises(RecordChangedError):
        harness.admin.restart(replace(shown, key=job("nobody").key))
    assert harness.admin.look(job("nobody").key) is None


def test_an_admin_that_is_closed_twice_leaves_the_records(harness: Harness) -> None:
    acquire(harness)
    before = harness.store.find(JOB.key)
    harness.admin.close()
    harness.admin.close()
    assert harness.store.find(JOB.key) == before is not None
