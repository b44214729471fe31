"""The proof of `onejob work` excuses a second effect by what the window says, and by nothing else."""

from dataclasses import replace

import pytest

from tests.support.work_proof.count import Run, explanations, in_flight, repeats
from tests.support.work_proof.faults import Fault, Kind

LEASE = 2.0
FIRST = Run("1", 1, 1, worker=7, begun=10, asked=10.1, effect=10.2)
SECOND = Run("1", 2, 1, worker=8, begun=15, asked=15.1, effect=15.2, ended=15.3)


def why(*faults: Fault, first: Run = FIRST) -> set[str]:
    return explanations(first, SECOND, faults, LEASE)


def test_nothing_befell_it_nothing_is_excused() -> None:
    assert why() == set()


@pytest.mark.parametrize("kind", ["killed", "suspended", "store cut", "both cut"])
def test_excused_if_it_befell_the_first_one_between_effect_and_record(kind: Kind) -> None:
    assert why(Fault(kind, 7, 11, 14))
    assert why(Fault(kind, 7, 9, 12))
    assert not why(Fault(kind, 8, 11, 14)), "another worker"
    assert not why(Fault(kind, 7, 7, 10)), "over before it asked for its lease"
    assert not why(Fault(kind, 7, 15.1, 18)), "the second one ran already"


@pytest.mark.parametrize("kind", ["suspended", "store cut", "both cut"])
def test_not_excused_by_less_than_its_lease(kind: Kind) -> None:
    assert not why(Fault(kind, 7, 11, 12.9))


@pytest.mark.parametrize("kind", ["queue cut", "answers lost"])
def test_not_excused_by_the_queue_or_a_lost_answer(kind: Kind) -> None:
    assert not why(Fault(kind, 7, 11, 14))


def test_suspended_after_it_asked_until_after_the_other_one() -> None:
    late = replace(FIRST, effect=20.0)
    assert why(Fault("suspended", 7, 16, 19), first=late)
    assert not why(Fault("suspended", 7, 16, 19))


def test_a_clock_that_is_off_excuses_claims_that_it_dated_and_no_others() -> None:
    assert why(Fault("clock back", 7, 9, 11)) == {"clock"}
    assert why(Fault("clock forward", 8, 14, 16)) == {"clock"}
    assert not why(Fault("clock back", 8, 9, 11))
    assert not why(Fault("clock forward", 7, 9, 11))
    assert not why(Fault("clock forward", 8, 10, 11))


def test_a_clock_that_is_off_may_take_the_job_over_and_not_run_it() -> None:
    third = replace(SECOND, attempt=3)
    forward = Fault("clock forward", 9, 11, 12.5)
    assert not why(forward), "there was no claim between"
    assert explanations(FIRST, third, [forward], LEASE) == {"clock"}, "an attempt that never began is anyone's"
    assert not explanations(FIRST, third, [Fault("clock forward", 9, 8, 10)], LEASE)
    between = Run("1", 2, 1, worker=9, begun=12)
    assert explanations(FIRST, third, [forward], LEASE, [between]) == {"clock"}
    assert not explanations(FIRST, third, [forward], LEASE, [replace(between, worker=6)])


def test_what_repeats_and_what_was_in_flight() -> None:
    without, third = Run("1", 3, 1, worker=7, begun=30), replace(SECOND, attempt=4)
    assert repeats([third, without, FIRST]) == [(FIRST, third, [without])]
    assert repeats([FIRST, without]) == []
    faults = [Fault("killed", 8, 15.1, 16), Fault("queue cut", 8, 15.4, 19), Fault("suspended", 7, 12, 13)]
    assert in_flight([FIRST, SECOND], faults) == {"killed": 1, "queue cut": 0, "suspended": 1}
