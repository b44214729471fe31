"""The runner of the near table: it finds a bug, finds none where there is none, and runs the copy."""

from tests.planted.near import NEAR, run_all
from tests.simulation.planted import BUGS, MEMORY, ROOT, Bug

KILLER = "tests/domain/test_lease.py::test_a_renewal_moves_the_end"


def test_every_bug_has_its_place_and_a_test_that_is_there() -> None:
    assert len({one.bug.name for one in NEAR}) == len(NEAR) >= 24
    for one in NEAR:
        assert (ROOT / "src" / one.bug.file).read_text().count(one.bug.old) == 1, one.bug.name
        assert one.tests
        for test in one.tests:
            file, _, name = test.partition("::")
            assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), test


def test_every_source_with_a_bug_is_python() -> None:
    """What cannot be imported is found by nobody: it only breaks the runner."""
    for bug in (*BUGS, *(one.bug for one in NEAR)):
        text = (ROOT / "src" / bug.file).read_text()
        assert text.count(bug.old) == 1, bug.name
        if bug.file.endswith(".py"):
            compile(text.replace(bug.old, bug.new), bug.name, "exec")


def test_a_bug_is_found_and_one_that_is_none_is_not() -> None:
    (bug,) = (one.bug for one in NEAR if one.bug.name == "a renewal extends nothing")
    none = Bug("none", MEMORY, "max_answer_bytes: int | None = None", "max_answer_bytes: int | None = 100_000")
    told = dict(run_all([("bug", bug, [KILLER]), ("none", none, [KILLER])], 2))
    assert (told["bug"].is_red, told["bug"].failed) == (True, KILLER)
    assert (told["none"].is_red, told["none"].status) == (False, 0)


def test_tests_that_cannot_be_run_find_nothing() -> None:
    broken = Bug("no Python", "domain/lease.py", "class Lease:", "class Lease(:")
    told = dict(run_all([("not there", None, [f"{KILLER}_now"]), ("broken", broken, [KILLER])], 2))
    assert [(ran.is_red, ran.status == 0) for ran in told.values()] == [(False, False)] * 2
