"""Situations reported in public, by their ids: an operator sends dead letters back."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.redriven import World, redriven_world

BODY = '{"job_id":"1"}'


@pytest.fixture
def world() -> Iterator[World]:
    with redriven_world() as made:
        yield made


def test_D20_by_command_a_failed_job_runs(world: World) -> None:
    world.dead_letter(BODY)
    assert world.redrive("--all")[1][0]["verdict"] == "runs"
    world.work()
    assert world.ran == [("#charge", 2)]


def test_D20_by_command_a_completed_job_is_answered_and_forced_it_runs_in_epoch_2_with_an_audit_entry(
    world: World,
) -> None:
    world.broken = False
    world.dead_letter(BODY)
    world.letter(BODY)
    assert world.redrive("--all")[1][0]["verdict"] == "answered"
    world.work()
    assert len(world.ran) == 1
    world.letter(BODY)
    world.redrive("--all", "--force")
    world.work()
    assert world.ran == [("#charge", 1), ("#2#charge", 2)]
    entry = json.loads(world.stderr)
    assert (entry["event"], entry["after"]["epoch"]) == ("job_forgotten", 2)
    assert entry["who"].startswith("arn:aws:")


def test_D20_by_command_one_whose_record_is_gone_runs_only_while_it_would_still_be_kept(world: World) -> None:
    world.broken = False
    for age, verdict in ((timedelta(days=27), "runs"), (timedelta(days=29), "stale_redrive")):
        world.letter(f'{{"job_id":"{age.days}"}}', datetime.now(UTC) - age)
        assert [row["verdict"] for row in world.redrive("--all")[1]] == [verdict]
    world.work()
    assert len(world.ran) == 1
    assert world.letters == (1, 0)
