"""Shared by all tests; imports nothing beyond the standard library and pytest."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_emulator_is_left_running() -> Iterator[None]:
    yield
    if "tests.support.aws" in sys.modules:
        from tests.support.aws import stop_shared_emulator

        stop_shared_emulator()
