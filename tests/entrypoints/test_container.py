"""Every part fits every other: what mypy cannot see of the wiring is resolved here."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

import entrypoints
from adapters.sqs.message import NotAnSqsBatchError, read_event
from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.stores.sqlite.store import SQLiteIdempotencyStore
from adapters.stores.valkey.commands import WAIT
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from adapters.system import SystemClock
from domain.service import no_heartbeat
from entrypoints import sqs_worker
from entrypoints.cli.opening import open_store
from entrypoints.client_config import sdk_config
from entrypoints.container import Container
from entrypoints.settings import (
    CONNECT_TIMEOUT_SECONDS,
    LONGEST_REQUEST_SECONDS,
    READ_TIMEOUT_SECONDS,
    Backend,
    SettingError,
    Settings,
)
from entrypoints.sqs_worker import make_handler
from entrypoints.store_registry import VALKEY_ANSWERS
from tests.support.aws import TABLE, in_process
from tests.support.jobs import operations
from tests.support.sqs import Context, event, record
from tests.support.valkey import emptied

STORES: dict[Backend, Any] = {
    Backend.DYNAMODB: DynamoDBIdempotencyStore,
    Backend.SQLITE: SQLiteIdempotencyStore,
    Backend.MEMORY: MemoryIdempotencyStore,
    Backend.VALKEY: ValkeyIdempotencyStore,
}
every_backend = pytest.mark.parametrize("backend", list(STORES))


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For whatever a backend writes."""
    monkeypatch.chdir(tmp_path)


def container(settings: Settings | None = None) -> Container:
    made = Container()
    made.operations.override(operations())
    if settings:
        made.settings.override(settings)
    return made


def close_stores(made: Container) -> None:
    made.store().close()
    made.admin().close()


@contextmanager
def worker(backend: Backend, **settings: str) -> Iterator[Container]:
    """The parts of a worker whose environment says this, with moto for its AWS."""
    with in_process(), ExitStack() as stack:
        os.environ.update({"IDEMPOTENCY_BACKEND": backend, "IDEMPOTENCY_TABLE": TABLE} | settings)
        if backend is Backend.VALKEY:
            os.environ["IDEMPOTENCY_VALKEY_URL"] = stack.enter_context(emptied()).url
        made = container()
        if backend in (Backend.SQLITE, Backend.VALKEY):
            stack.callback(close_stores, made)
        yield made


@contextmanager
def recorded_clients() -> Iterator[dict[str, Any]]:
    """The boto3 clients that are made from now on, by their service; one each."""
    made: dict[str, Any] = {}
    make: Any = boto3.client

    def client(service: str, **options: Any) -> Any:
        assert service not in made
        made[service] = make(service, **options)
        return made[service]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("boto3.client", client)
        yield made


def batch(*bodies: str) -> dict[str, Any]:
    return event(*(record(f"m-{number}", body) for number, body in enumerate(bodies)))


def events_told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [line.get("event", "metrics") for line in lines]


# The container.


@every_backend
def test_every_part_is_made_for_every_backend(backend: Backend) -> None:
    with worker(backend) as made:
        parts = {name: provider() for name, provider in made.providers.items()}
        assert isinstance(parts["store"], STORES[backend])
        assert parts["settings"].backend is backend
        assert isinstance(parts["clock"], SystemClock)


def test_there_is_a_store_and_a_test_for_every_backend_that_settings_know() -> None:
    assert set(Backend) == set(STORES)


@every_backend
def test_a_command_closes_whichever_store_it_opened(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[object] = []
    close = STORES[backend].close

    def recorded(store: object) -> None:
        closed.append(store)
        close(store)

    with worker(backend) as made:
        monkeypatch.setattr(STORES[backend], "close", recorded)
        with ExitStack() as stack:
            open_store(made, backend, stack)
            assert closed == []
        assert closed == [made.store()]


@every_backend
def test_parts_are_made_once_and_shared(backend: Backend) -> None:
    with worker(backend) as made:
        batches, service = made.sqs_batches(), made.service()
        for name in ("settings", "clock", "crew", "events", "queue", "store", "service", "sqs_batches"):
            assert made.providers[name]() is made.providers[name](), name
        assert batches.process == service.process
        assert service.store is made.store()
        assert batches.queue is made.queue()
        assert batches.crew is made.crew()
        assert service.events is made.events()
        assert batches.events is made.events()
        assert service.clock is batches.clock is made.clock()


def test_a_worker_has_no_heartbeat_unless_it_is_told() -> None:
    made = container(Settings(backend=Backend.MEMORY))
    assert made.service().heartbeat is no_heartbeat
    told = container(Settings(backend=Backend.MEMORY))
    told.heartbeat.override(told.renewing_heartbeat)
    assert told.service().heartbeat is told.renewing_heartbeat()


def test_two_containers_share_nothing() -> None:
    settings = Settings(backend=Backend.MEMORY)
    assert container(settings).store() is not container(settings).store()


def test_each_setting_reaches_the_part_that_needs_it() -> None:
    settings = Settings(
        backend=Backend.MEMORY,
        namespace="shop",
        retention=timedelta(days=2),
        max_attempts=7,
        deadline_margin=timedelta(seconds=8),
        lease_grace=timedelta(seconds=9),
    )
    made = container(settings)
    batches, service = made.sqs_batches(), made.service()
    assert (service.max_attempts, service.margin) == (7, timedelta(seconds=8))
    assert (batches.retention, batches.margin, batches.grace) == (
        timedelta(days=2),
        timedelta(seconds=8),
        timedelta(seconds=9),
    )
    assert batches.factory.job({"job_id": "1"}).key.namespace == "shop"


@every_backend
def test_records_are_kept_for_the_retention(backend: Backend) -> None:
    with worker(backend, IDEMPOTENCY_EXPIRES_AFTER_SECONDS="7200") as made:
        job = made.job_factory().job({"job_id": "1"})
        made.store().claim(job, owner="a", lease=timedelta(seconds=10))
        kept = made.store().find(job.key)
        assert kept is not None
        left = kept.expires_at - made.clock().now()
        assert timedelta(seconds=7100) < left <= timedelta(seconds=7201)


def test_a_container_without_operations_makes_no_worker() -> None:
    made = Container()
    made.settings.override(Settings(backend=Backend.MEMORY))
    with pytest.raises(Exception, match="operations"):
        made.sqs_batches()


# How the SDK is told to talk.


def test_one_try_of_the_sdk_fits_the_deadline_margin() -> None:
    settings = Settings(backend=Backend.DYNAMODB)
    config: Any = sdk_config(settings)
    assert config.retries["total_max_attempts"] == 1
    assert (config.connect_timeout, config.read_timeout) == (CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS)
    assert timedelta(seconds=config.connect_timeout + config.read_timeout) < settings.deadline_margin


@pytest.mark.parametrize("concurrency", [1, 10, 1000])
def test_every_thread_has_a_connection_and_two_are_to_spare(concurrency: int) -> None:
    config: Any = sdk_config(Settings(backend=Backend.DYNAMODB, concurrency=concurrency))
    assert config.max_pool_connections >= concurrency + 2


def test_the_clients_talk_as_told_whatever_the_environment_says() -> None:
    environment = {"AWS_MAX_ATTEMPTS": "9", "AWS_RETRY_MODE": "legacy", "JOB_CONCURRENCY": "20"}
    with worker(Backend.DYNAMODB, **environment) as parts, recorded_clients() as clients:
        parts.store()
        parts.queue().delete(read_event(batch("{}")))
    assert list(clients) == ["dynamodb", "sqs"]
    for (service, client), tries in zip(clients.items(), (1, 2), strict=True):
        config = client.meta.config
        assert (config.connect_timeout, config.read_timeout, config.max_pool_connections) == (1, 2, 38)
        assert config.retries == {"mode": "standard", "total_max_attempts": tries}, service


def test_a_request_to_valkey_fits_the_deadline_margin_with_all_that_may_come_before_it() -> None:
    with worker(Backend.VALKEY, JOB_CONCURRENCY="20", IDEMPOTENCY_VALKEY_REPLICAS="2") as parts:
        store: Any = parts.store()
        pool = store._commands.client.connection_pool
        told = pool.connection_kwargs
        assert told["socket_connect_timeout"] + VALKEY_ANSWERS * told["socket_timeout"] <= LONGEST_REQUEST_SECONDS
        assert timedelta(0) < WAIT < timedelta(seconds=told["socket_timeout"])
        assert (pool.max_connections, store._commands._replicas) == (38, 2)


def test_without_its_client_valkey_is_refused_with_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "adapters.stores.valkey.server", raising=False)
    monkeypatch.setitem(sys.modules, "valkey", None)
    made = container(Settings(backend=Backend.VALKEY, valkey_url="redis://h"))
    with pytest.raises(SettingError, match="uv sync --group valkey"):
        made.store()


# The handler.


@every_backend
def test_two_deliveries_of_one_job_run_it_once(backend: Backend, capsys: pytest.CaptureFixture[str]) -> None:
    with worker(backend) as made:
        handler = make_handler(operations(), made)
        answers = [handler(batch('{"job_id":"job-001"}'), Context()) for _ in range(2)]
    assert answers == [{"batchItemFailures": []}] * 2
    assert events_told(capsys) == ["business_operation_executed", "metrics", "job_skipped", "metrics"]


def test_messages_that_are_not_done_are_answered_by_id() -> None:
    """There is no dead-letter queue, so that the malformed one cannot be buried."""
    with worker(Backend.MEMORY):
        handler = make_handler(operations())
        answer = handler(batch('{"job_id":"1"}', "not json", '{"job_id":"2"}'), Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


def test_the_invocation_ends_when_its_context_says(capsys: pytest.CaptureFixture[str]) -> None:
    with worker(Backend.MEMORY):
        answer = make_handler(operations())(batch('{"job_id":"1"}'), Context(seconds=4.9))
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m-0"}]}
    assert "no_time_to_start" in events_told(capsys)


def test_what_is_no_batch_is_refused_and_metrics_are_flushed_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    made = container(Settings(backend=Backend.MEMORY))
    handler = make_handler(operations(), made)
    made.events().no_time_to_start(1)
    with pytest.raises(NotAnSqsBatchError):
        handler({"detail": {}}, Context())
    assert events_told(capsys) == ["no_time_to_start", "metrics"]


def test_an_sqs_client_is_made_only_when_a_batch_needs_it() -> None:
    with worker(Backend.DYNAMODB), recorded_clients() as clients:
        handler = make_handler(operations())
        assert list(clients) == ["dynamodb"]
        handler(batch('{"job_id":"1"}'), Context())
        assert list(clients) == ["dynamodb"]
        handler(batch("not json"), Context())
        assert list(clients) == ["dynamodb", "sqs"]


@pytest.fixture
def _built_anew() -> Iterator[None]:
    vars(sqs_worker).pop("handler", None)
    yield
    vars(sqs_worker).pop("handler", None)


@pytest.mark.usefixtures("_built_anew")
def test_the_module_builds_its_handler_once_when_it_is_asked_for() -> None:
    with worker(Backend.MEMORY):
        first = sqs_worker.handler
        assert sqs_worker.handler is first
        assert first(batch('{"job_id":"1"}'), Context()) == {"batchItemFailures": []}


@pytest.mark.usefixtures("_built_anew")
def test_a_bad_setting_is_told_to_whoever_asks_for_the_handler() -> None:
    with worker(Backend.MEMORY, MAX_ATTEMPTS="0"), pytest.raises(SettingError, match="MAX_ATTEMPTS='0'"):
        _ = sqs_worker.handler


def test_the_module_has_nothing_else_to_build() -> None:
    with pytest.raises(AttributeError, match=r"entrypoints\.sqs_worker' has no attribute 'lambda_handler'"):
        _ = sqs_worker.lambda_handler
    assert not hasattr(sqs_worker, "__wrapped__")


# The start of a worker, each in a process of its own.


def start(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    clean = {"PATH": os.defpath, "PYTHONPATH": str(Path(entrypoints.__file__).parents[1])}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=clean | environment, capture_output=True, text=True, timeout=60)


DEPLOYED = {
    "AWS_LAMBDA_FUNCTION_NAME": "worker",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "t",
    "AWS_SECRET_ACCESS_KEY": "t",
    "IDEMPOTENCY_TABLE": "records",
}


def loaded(*names: str) -> str:
    return f"; import sys; print(sorted({set(names)!r} & set(sys.modules)))"


def test_importing_the_worker_builds_nothing() -> None:
    code = "import entrypoints.sqs_worker as worker; print('handler' in vars(worker))"
    done = start(code + loaded("boto3", "botocore", "aws_lambda_powertools", "operations"))
    assert (done.stdout, done.stderr) == ("False\n[]\n", "")


def test_asking_for_the_handler_builds_it() -> None:
    done = start("from entrypoints.sqs_worker import handler; print(handler.__name__)", **DEPLOYED)
    assert (done.stdout, done.stderr) == ("handle\n", "")


@pytest.mark.parametrize(
    ("name", "text"),
    [("IDEMPOTENCY_TABLE", ""), ("IDEMPOTENCY_BACKEND", "memory"), ("JOB_CONCURRENCY", "0"), ("MAX_ATTEMPTS", "many")],
)
def test_a_bad_setting_stops_the_start_and_is_named(name: str, text: str) -> None:
    done = start("from entrypoints.sqs_worker import handler", **DEPLOYED | {name: text})
    assert done.returncode == 1
    assert f"SettingError: {name}" in done.stderr


def test_an_unknown_name_cannot_be_imported() -> None:
    done = start("from entrypoints.sqs_worker import lambda_handler", **DEPLOYED)
    assert done.returncode == 1
    assert "ImportError: cannot import name 'lambda_handler'" in done.stderr


def test_a_deployed_worker_loads_no_tracing_no_command_line_and_nothing_for_tests() -> None:
    unwanted = (
        "aws_xray_sdk",
        "typer",
        "click",
        "rich",
        "moto",
        "pytest",
        "_pytest",
        "entrypoints.cli",
        "adapters.stores.memory",
    )
    done = start("from entrypoints.sqs_worker import handler" + loaded(*unwanted, "boto3"), **DEPLOYED)
    assert (done.stdout, done.stderr) == ("['boto3']\n", "")
