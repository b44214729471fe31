"""The counting can fail: each kind of fault is seen when it is there, and only then."""

from typing import Any

import pytest

from benchmarks.peers.counts import Counts, count

GOOD, OTHER, BAD = {"job_id": "1"}, {"job_id": "1", "amount": 2}, {"job_id": "bad"}


def effect(job: object) -> dict[str, Any]:
    return {"kind": "effect", "job": job, "pid": 1}


def answer(job: object, value: object) -> dict[str, Any]:
    return {"kind": "answer", "job": job, "pid": 1, "answer": value}


def counted(**options: Any) -> Counts:
    nothing: dict[str, Any] = {"healthy": [GOOD], "bad": [], "ledger": [], "letters": [], "queued": 0, "receives": 1}
    return count(**nothing | options)


def test_one_effect_is_no_fault() -> None:
    counts = counted(ledger=[effect(GOOD)])
    assert (counts.effects, counts.faults, counts.not_buried) == (1, (0, 0, 0), 0)


def test_effects_beyond_the_first_are_double() -> None:
    assert counted(ledger=[effect(GOOD)] * 3).faults == (2, 0, 0)


def test_another_payload_is_another_job() -> None:
    assert counted(healthy=[GOOD, OTHER], ledger=[effect(GOOD), effect(OTHER)]).faults == (0, 0, 0)
    assert counted(bad=[OTHER], ledger=[effect(GOOD)]).faults == (0, 1, 0)


def test_a_job_that_is_nowhere_is_lost() -> None:
    assert counted().faults == (0, 1, 0)


def test_a_job_that_is_still_queued_or_buried_is_not_lost() -> None:
    assert counted(queued=1).faults == (0, 0, 0)
    assert counted(healthy=[], bad=[BAD], letters=[BAD]).faults == (0, 0, 0)


@pytest.mark.parametrize("ledger", [[], [effect(GOOD)]])
def test_a_dead_letter_of_a_healthy_job_is_wrong_whether_it_ran_or_not(ledger: list[Any]) -> None:
    assert counted(ledger=ledger, letters=[GOOD]).faults == (0, 0, 1)


def test_a_bad_job_that_ran_lacks_its_letter() -> None:
    counts = counted(healthy=[], bad=[BAD], ledger=[effect(BAD)])
    assert (counts.faults, counts.not_buried) == ((0, 0, 0), 1)


def test_false_zero_and_null_are_three_answers() -> None:
    ledger = [effect(GOOD), *(answer(GOOD, value) for value in (0, 0, False, None))]
    assert counted(ledger=ledger).other_answers == 2
