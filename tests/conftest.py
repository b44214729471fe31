"""Shared by all tests; imports nothing beyond the standard library and pytest."""

import signal
import sys
from collections.abc import Iterator

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a background job of a shell: the commands that the tests start and interrupt would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _no_emulator_is_left_running() -> Iterator[None]:
    yield
    if "tests.support.aws" in sys.modules:
        from tests.support.aws import stop_shared_emulator

        stop_shared_emulator()
