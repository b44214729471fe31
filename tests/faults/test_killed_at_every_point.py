"""`kill -9` at every boundary of a run, over real stores: a fresh process redelivers, and what was promised is counted.

The boundaries are those of each call of the store (nothing asked yet; landed, and the answer not seen) and of the
effect.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from domain.answer import Answer
from domain.record import Record, Status
from tests.faults.killed_worker import LEASE, opened
from tests.support.clock import FakeClock
from tests.support.jobs import job

ROOT = Path(__file__).parents[2]
NOW = datetime.now(UTC).replace(microsecond=0)
LATER = NOW + LEASE + timedelta(seconds=1)
"""When the lease of a killed worker is over; nobody waits for it."""


@dataclass
class Factory:
    """Where workers are made, each a process of its own."""

    backend: str
    folder: Path
    process: "subprocess.Popen[str]"

    def work(self, job_id: str, now: datetime, receives: int, *, fatal: int = 0, **story: Any) -> int:
        order = {"backend": self.backend, "folder": str(self.folder), "job_id": job_id, "now": now.isoformat()}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(order | {"receives": receives, "fatal": fatal, **story}), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def lines(self, job_id: str, what: str) -> list[str]:
        file = self.folder / f"{job_id}.{what}"
        return file.read_text().splitlines() if file.exists() else []

    def record(self, job_id: str) -> Record:
        with opened(self.backend, self.folder, FakeClock(LATER)) as store:
            found = store.find(job(job_id).key)
        assert found is not None
        return found


@contextmanager
def surroundings(backend: str) -> Iterator[None]:
    if backend == "sqlite":
        yield
        return
    if backend == "valkey":
        from tests.support.valkey import emptied as emptied_valkey

        with emptied_valkey() as server, pytest.MonkeyPatch.context() as patch:
            patch.setenv("ONEJOB_TEST_PORT", str(server.port))
            yield
        return
    from tests.support.aws import emulated

    with emulated():
        yield


@pytest.fixture(params=["sqlite", "valkey", "dynamodb"])
def factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Factory]:
    with surroundings(request.param):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.killed_worker", request.param],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        with process:
            yield Factory(request.param, tmp_path, process)
            process.communicate()


@dataclass
class Story:
    """A run, the attempts that raise in it, and the points that it passes when nobody kills it."""

    points: list[str]
    receives: int = 1
    fails: list[int] = field(default_factory=list)
    renews: bool = False


def around(*calls: str) -> list[str]:
    return [f"{when} {call}" for call in calls for when in ("before", "after")]


STORIES = {
    "a new job": Story(around("claim", "effect", "complete")),
    "a redelivered job, its lease renewed": Story(
        around("find", "claim", "renew", "effect", "complete"), receives=2, renews=True
    ),
    "a job that fails at first": Story(around("claim", "release"), fails=[1]),
}


@pytest.mark.parametrize("name", list(STORIES))
def test_killed_at_any_point_a_job_is_done_by_the_next_delivery(factory: Factory, name: str) -> None:
    story = STORIES[name]
    twice = []
    for fatal in count(1):
        job_id = f"killed-at-{fatal}"
        told = {"fails": story.fails, "renews": story.renews}
        status = factory.work(job_id, NOW, story.receives, fatal=fatal, **told)
        passed = factory.lines(job_id, "points")
        if status == 0:
            break
        assert status == -9
        assert passed == story.points[:fatal]
        assert factory.lines(job_id, "outcomes") == []
        redeliver(factory, job_id, story, passed)
        if len(factory.lines(job_id, "effects")) == 2:
            twice.append(passed[-1])
    assert passed == story.points, "the last run ended unharmed, and every point before it was fatal once"
    print(f"\n{factory.backend}, {name}: killed at {len(passed)} points, two effects at {twice}")
    assert twice == [point for point in ("after effect", "before complete") if point in story.points]


def redeliver(factory: Factory, job_id: str, story: Story, passed: list[str]) -> None:
    """In a fresh process, when the lease is over: done once and for all, whatever had landed."""
    claimed, completed = "after claim" in passed, "after complete" in passed
    attempt = 1 if completed or not claimed else 2
    assert factory.work(job_id, LATER, story.receives + 1, fails=[], renews=False) == 0
    assert factory.lines(job_id, "outcomes") == ["Skipped" if completed else "Executed"]
    record = factory.record(job_id)
    assert (record.status, record.attempts) == (Status.COMPLETED, attempt)
    assert record.answer == Answer.of({"attempt": attempt}, None)
    assert record.last_error == ("ConnectionError" if "after release" in passed else None)
    effects = factory.lines(job_id, "effects")
    assert effects[-1] == str(attempt)
    assert len(set(effects)) == len(effects), "no attempt number is given twice"
