"""The project deployed once for all end-to-end tests, with operations of its own, by the real CDK command line.

Everything is sent at once, and each test waits for its own: back-off, leases and visibility timeouts pass meanwhile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from entrypoints.emulator.deployment import Deployment
from entrypoints.emulator.launcher import emulator
from tests.support.deployed import Watched
from tests.support.project import copied_project

OPERATIONS = Path(__file__).with_name("operations.py")
SMALL = {"timeout": "6", "margin": "3", "grace": "0", "http": "true"}
"""The least that is allowed: the visibility timeout is then 36 s."""

TWICE = '{"job_id":"job-001"}'
PARTS = [f"part-{number}" for number in range(8)]
FLAKY = '{"job_id":"flaky","operation":"fails_once"}'
MALFORMED = '{"job_id":"poison"'
REFUSED = '{"job_id":"refused","operation":"refuses"}'
LONG = "long"
"""The id of a job that still runs when it is sent again."""

HANGING = '{"job_id":"hanging","operation":"hangs_once"}'


@dataclass(frozen=True)
class Deployed:
    """The worker, and the ids of what it was sent, by body."""

    deployment: Deployment
    watched: Watched
    sent: dict[str, list[str]]


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    project = copied_project(tmp_path_factory.mktemp("project"), OPERATIONS)
    with emulator() as aws:
        deployment = Deployment(aws, tmp_path_factory.mktemp("cdk"), project)
        deployment.bootstrap()
        watched = Watched(aws, deployment.deploy(SMALL))
        yield Deployed(deployment, watched, _send_everything(watched))


def _send_everything(worker: Watched) -> dict[str, list[str]]:
    sent = {
        HANGING: worker.send(HANGING),
        TWICE: worker.send(TWICE) + worker.send(TWICE),
        FLAKY: worker.send(*(f'{{"job_id":"{name}"}}' for name in PARTS), FLAKY)[-1:],
    }
    sent[MALFORMED], sent[REFUSED] = ([message_id] for message_id in worker.send(MALFORMED, REFUSED))
    sent[LONG] = send_while_it_runs(worker, LONG)
    return sent


def send_while_it_runs(worker: Watched, job_id: str) -> list[str]:
    """A job that takes two seconds, and once more when it has been claimed."""
    body = f'{{"job_id":"{job_id}","operation":"slow"}}'
    first = worker.send(body)
    worker.until(lambda: job_id in worker.records())
    return first + worker.send(body)


@pytest.fixture
def worker(deployed: Deployed) -> Watched:
    return deployed.watched
