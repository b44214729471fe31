"""Shared by all tests; imports nothing beyond the standard library and pytest."""

import signal
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As in a background job of a shell: the commands that the tests start and interrupt would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


ON_ONE_STACK: Final = frozenset({"test_deployed_worker.py", "test_http.py", "test_takeover.py"})
"""End-to-end tests that share a deployment."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """All tests run side by side, one process a core, where pytest-xdist is installed; `-n0` undoes it. Tests that are
    named run in one process.
    """
    is_of_all = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not config.option.collectonly
    is_one_of_them = hasattr(config, "workerinput")
    if is_of_all and not is_one_of_them and getattr(config.option, "numprocesses", 0) is None:
        config.option.numprocesses = "auto"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests share what it sets up, so they stay in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            folder, _, name = file.rpartition("/")
            return folder if folder.endswith("e2e") and name in ON_ONE_STACK else file

    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session", autouse=True)
def _no_emulator_is_left_running() -> Iterator[None]:
    yield
    if "tests.support.aws" in sys.modules:
        from tests.support.aws import stop_shared_emulator

        stop_shared_emulator()
