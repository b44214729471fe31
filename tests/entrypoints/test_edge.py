"""Whatever is raised leaves a process by type and place: no text, note, cause or group with a payload value in it."""

import asyncio
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dependency_injector.providers import Object

from adapters.error_place import UnexpectedError, texts_are_wanted
from adapters.sqs.message import NotAnSqsBatchError
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.system import SystemClock
from domain.errors import StoreUnavailableError
from entrypoints import cleanup, edge, http_api, sqs_worker
from entrypoints.container import Container
from entrypoints.settings import Backend, Settings
from tests.support.faulty_store import FaultyStore
from tests.support.http import http_event, iam_user
from tests.support.jobs import operations
from tests.support.sqs import Context, event, record

SECRET = "4111-1111"
ROOT = Path(__file__).parents[2]


class Unspeakable(BaseException):
    def __str__(self) -> str:
        raise ValueError(SECRET)

    __repr__ = __str__


def noted() -> BaseException:
    error = KeyError(SECRET)
    error.add_note(SECRET)
    error.__cause__ = error.__context__ = ValueError(SECRET)
    return error


ERRORS: list[BaseException] = [
    RuntimeError(SECRET),
    asyncio.CancelledError(SECRET),
    GeneratorExit(SECRET),
    BaseExceptionGroup(SECRET, [asyncio.CancelledError(SECRET), ValueError(SECRET)]),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
    noted(),
    Unspeakable(),
    KeyboardInterrupt(SECRET),
    SystemExit(SECRET),
]
each_error = pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)


def container(error: BaseException, *, texts: bool = False) -> Container:
    """Its store raises that, in each method."""
    parts = Container()
    settings = Settings(backend=Backend.MEMORY, namespace="test", log_error_messages=texts)
    parts.settings.override(Object(settings))
    memory = MemoryIdempotencyStore(SystemClock(), settings.retention)
    parts.store.override(Object(FaultyStore(memory, claim=[error] * 9, find=[error] * 9)))

    class Admin:
        def purge(self, **_: Any) -> Any:
            raise error

    parts.admin.override(Object(Admin()))
    return parts


def invoked(door: str, error: BaseException, *, texts: bool = False) -> object:
    parts = container(error, texts=texts)
    match door:
        case "sqs":
            return sqs_worker.make_handler(operations(), parts)(event(record("m", '{"job_id":"1"}')), Context())
        case "http":
            request = http_event(
                "POST",
                "/jobs",
                authorizer=iam_user(),
                headers={"idempotency-key": '"a"', "content-type": "application/json"},
                body="{}",
            )
            return http_api.make_handler(operations(), parts)(request, Context())
        case _:
            return cleanup.make_handler(parts)({}, Context(900))


@each_error
@pytest.mark.parametrize("door", ["sqs", "http", "purge"])
def test_no_text_of_what_is_raised_leaves_a_lambda_function(
    door: str, error: BaseException, capfd: pytest.CaptureFixture[str]
) -> None:
    raised, told = None, ""
    try:
        told = str(invoked(door, error))
    except BaseException as caught:
        raised = caught
    if raised is not None:
        told = "".join(traceback.format_exception(raised)) + str(raised) + repr(raised)
        assert isinstance(raised, UnexpectedError | KeyboardInterrupt | SystemExit)
        assert raised.__cause__ is raised.__context__ is None
        assert not isinstance(raised, UnexpectedError) or str(raised).startswith(f"{type(error).__name__} < ")
    assert SECRET not in told + "".join(capfd.readouterr())


def test_the_setting_lets_texts_out() -> None:
    with pytest.raises(RuntimeError, match=SECRET):
        invoked("purge", RuntimeError(SECRET), texts=True)


def test_errors_of_our_own_keep_their_texts_and_lose_what_is_behind_them() -> None:
    error = StoreUnavailableError("the store")
    error.__cause__ = ValueError(SECRET)
    with pytest.raises(StoreUnavailableError, match="the store") as raised:
        edge.by_type_and_place(_raises(error), known=(StoreUnavailableError,), texts=False)()
    assert SECRET not in "".join(traceback.format_exception(raised.value))
    with pytest.raises(NotAnSqsBatchError, match="expected an SQS batch"):
        sqs_worker.make_handler(operations(), container(error))({}, Context())


def _raises(error: BaseException) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


@pytest.fixture
def hooks() -> Iterator[None]:
    before = threading.excepthook, sys.unraisablehook, sys.excepthook
    edge.install_hooks()
    yield
    threading.excepthook, sys.unraisablehook, sys.excepthook = before


@each_error
@pytest.mark.usefixtures("hooks")
def test_what_ends_a_thread_is_told_by_type_and_place(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    thread = threading.Thread(target=_raises(error))
    thread.start()
    thread.join()
    told = capsys.readouterr().err
    assert SECRET not in told
    assert told.startswith(f"onejob: a thread ended: {type(error).__name__} < ") or isinstance(error, SystemExit)


@pytest.mark.usefixtures("hooks")
def test_what_nobody_can_catch_is_told_by_type_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    class Ends:
        def __del__(self) -> None:
            raise ValueError(SECRET)

    Ends()
    sys.excepthook(ValueError, ValueError(SECRET), None)
    told = capsys.readouterr().err
    assert "an error was ignored: ValueError < " in told
    assert "unexpected error: ValueError" in told
    assert SECRET not in told


@pytest.mark.parametrize("kind", ["asyncio.CancelledError", "RuntimeError", "SystemError"])
@pytest.mark.parametrize("texts", ["", "true"])
def test_a_command_that_breaks_tells_the_type_and_the_place_and_answers_1(kind: str, texts: str) -> None:
    code = (
        "import asyncio, entrypoints.cli.app as app\n"
        f"def broken(*_, **__): raise {kind}('{SECRET}')\n"
        "import entrypoints.cli.commands.run.run as run; run.run_file = broken\n"
        "app.main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LOG_ERROR_MESSAGES": texts}
    command = [sys.executable, "-c", code, "run", "none.jsonl"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert (SECRET in done.stderr) is bool(texts)
    assert kind.rpartition(".")[2] in done.stderr


def test_texts_are_wanted_as_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in {"true": True, "1": True, "false": False, "": False, " TRUE ": True}.items():
        monkeypatch.setenv("LOG_ERROR_MESSAGES", text)
        assert texts_are_wanted() is wanted
    edge.install_hooks()
    assert sys.excepthook is not edge._end
