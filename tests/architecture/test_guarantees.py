"""What docs/guarantees.md and docs/scale.md say is shown by files that exist and scripts that print it."""

import re
from pathlib import Path

import pytest

from benchmarks.scale import IN_FLIGHT, Load, need, table

ROOT = Path(__file__).parents[2]
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text()
SCALE = (ROOT / "docs" / "scale.md").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(tests/[\w/.]+)`", GUARANTEES))))
def test_every_test_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("page", [GUARANTEES, SCALE], ids=["guarantees", "scale"])
def test_every_link_leads_somewhere(page: str) -> None:
    for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page):
        assert (ROOT / "docs" / link).exists(), link


def test_every_command_is_a_task() -> None:
    tasks = (ROOT / "justfile").read_text()
    for name in re.findall(r"`uv run just ([\w-]+)", GUARANTEES + SCALE):
        assert re.search(rf"^{name}\b.*:$", tasks, re.M), name


def test_the_table_of_scale_is_what_the_script_prints() -> None:
    assert table([Load(jobs_a_day=10**power) for power in range(5, 10)]) in SCALE


def test_needs_follow_from_rates() -> None:
    small, large = need(Load(jobs_a_day=86_400, peak=1, duplicates=0)), need(Load(jobs_a_day=86_400_000_0, peak=1))
    assert (small.jobs_a_second, small.writes_a_second, small.tables, small.concurrency) == (1, 2, 1, 1)
    assert large.tables > 0
    assert large.retried_minute_in_flight > IN_FLIGHT
    slow = need(Load(jobs_a_day=10**9, operation_seconds=2))
    assert slow.concurrency > 5 * need(Load(jobs_a_day=10**9)).concurrency
