"""The simulator itself: some seeds, the same over both stores, replayed exactly, and that it can fail and shrink."""

import argparse
import os
import subprocess
import sys

import pytest

from adapters.sqs import batch
from domain.record import Record
from tests.planted.near import NEAR
from tests.simulation import planted
from tests.simulation.__main__ import EXPECTED, Tally, chunk
from tests.simulation.backends import memory_backend
from tests.simulation.dynamodb import dynamodb_backend
from tests.simulation.plan import plan
from tests.simulation.planted import BUGS, ROOT, look_for
from tests.simulation.run import simulate
from tests.simulation.shrink import shrink

SEEDS = 700


@pytest.fixture(scope="module")
def tally() -> Tally:
    return chunk(0, SEEDS, "memory")


def test_every_rule_holds(tally: Tally) -> None:
    assert tally.failing == {}


@pytest.mark.parametrize("seed", [248535, 252087, 276403, 289165, 324910, 347120, 357615, 390793, 1979269])
def test_a_seed_that_failed_by_a_rule_that_was_too_narrow_holds(seed: int) -> None:
    """Workers that sleep between a request and its answer; a message that SQS itself delivers again and again; a claim
    that lands once more, in another life, after its worker has its answer.
    """
    assert simulate(plan(seed)).violation is None


def test_a_seed_that_found_a_job_beside_one_that_runs_alone_holds() -> None:
    assert simulate(plan(16551)).violation is None


def test_calm_and_hostile_worlds_both_ran(tally: Tally) -> None:
    assert {plan(seed).hostile for seed in range(SEEDS)} == {True, False}
    assert tally.never_met() == []
    assert set(EXPECTED) == set(tally.counts)


def test_a_count_of_zero_is_told() -> None:
    tally = chunk(0, 2, "memory")
    assert "windows: retention over" in tally.never_met()


def test_both_stores_give_the_same_traces() -> None:
    assert chunk(5_000, 5_060, "both").failing == {}


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_a_seed_replays_exactly_whatever_the_hash_seed(hash_seed: str) -> None:
    code = "from tests.simulation.plan import plan; from tests.simulation.run import simulate; "
    code += "print(*[line for seed in range(40) for line in simulate(plan(seed)).trace], sep='\\n')"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [line for seed in range(40) for line in simulate(plan(seed)).trace]


def test_whatever_the_code_raises_is_a_failing_seed_with_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(places: list[object]) -> list[str]:
        raise error

    for error in (KeyError("m1"), SystemExit(3)):
        monkeypatch.setattr(batch, "_not_done", broken)
        result = simulate(plan(3))
        assert result.violation is not None
        assert result.violation.startswith(f"{type(error).__name__} in test_simulation.py, broken: ")
        assert result.trace
    assert set(chunk(0, 20, "memory").failing) == set(range(20))


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lease that is never live."""
    monkeypatch.setattr(Record, "lease_is_over", lambda self, now: True)


@pytest.mark.usefixtures("forgetful")
def test_what_fails_is_made_small_and_still_fails() -> None:
    failing = next(seed for seed in range(200) if simulate(plan(seed)).violation)
    small = shrink(plan(failing), memory_backend)
    assert small.violation is not None
    assert len(small.plan.messages) <= len(plan(failing).messages)
    assert not any(simulate(smaller).violation == small.violation for smaller in small.plan.simpler())


@pytest.mark.usefixtures("forgetful")
def test_the_difference_between_stores_is_told() -> None:
    assert any("the stores differ" in one for one in chunk(0, 60, "both").failing.values())


def test_every_planted_bug_has_its_place() -> None:
    for bug in BUGS:
        assert (ROOT / "src" / bug.file).read_text().count(bug.old) == 1, bug.name
    assert len({bug.name for bug in BUGS}) == len(BUGS) >= 20
    both = {*BUGS, *(one.bug for one in NEAR)}
    assert len({bug.name for bug in both}) == len(both)
    assert f"{len(both)} bugs planted" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    "name", ["unconditional release", "acknowledging a deferred message", "a KeyError in the batch code"]
)
def test_a_planted_bug_is_found(name: str) -> None:
    (bug,) = [one for one in BUGS if one.name == name]
    assert look_for(bug, 40).found_in > 0


def test_a_bug_that_is_none_is_not_found() -> None:
    none = planted.Bug(
        "none", planted.MEMORY, "max_answer_bytes: int | None = None", "max_answer_bytes: int | None = 100_000"
    )
    assert look_for(none, 20).found_in == 0


def test_the_double_answers_for_a_whole_run() -> None:
    told = plan(11)
    assert simulate(told, dynamodb_backend).trace == simulate(told).trace != ()


def test_the_parts_of_the_table_are_the_table() -> None:
    parts = [planted._part(f"{number}/4") for number in (1, 2, 3, 4)]
    assert sorted(bug.name for first, step in parts for bug in BUGS[first::step]) == sorted(bug.name for bug in BUGS)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "/", "1/0", "-1/4", "a/b"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="K/N"):
        planted._part(text)
