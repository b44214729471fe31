"""Every test here runs over every store."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.contract.harness import STORES, Harness


@pytest.fixture(params=list(STORES))
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    if request.param.startswith("dynamodb") and find_spec("boto3") is None:
        pytest.skip("this environment has no boto3")
    with STORES[request.param]() as made:
        yield made
