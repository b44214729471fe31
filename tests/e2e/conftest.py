"""The project deployed once for all end-to-end tests, with operations of its own, by the real CDK command line."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from entrypoints.emulator.deployment import Deployment
from entrypoints.emulator.launcher import emulator
from tests.support.deployed import Watched
from tests.support.project import copied_project

BUSINESS = Path(__file__).with_name("business.py")
SMALL = {"timeout": "6", "margin": "3", "grace": "0"}
"""The least that is allowed: the visibility timeout is then 36 s."""
HANGING = '{"job_id":"hanging","operation":"hangs_once"}'


@dataclass(frozen=True)
class Deployed:
    deployment: Deployment
    watched: Watched


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    project = copied_project(tmp_path_factory.mktemp("project"), BUSINESS)
    with emulator() as aws:
        deployment = Deployment(aws, tmp_path_factory.mktemp("cdk"), project)
        deployment.bootstrap()
        watched = Watched(aws, deployment.deploy(SMALL))
        watched.send(HANGING)  # waited for in test_takeover.py: it takes a visibility timeout
        yield Deployed(deployment, watched)


@pytest.fixture
def worker(deployed: Deployed) -> Watched:
    return deployed.watched
