"""`onejob serve`, put together: the Lambda handler, its store, the web server that calls it, and signals."""

import os
import signal
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from adapters.forks import install_handler
from domain.errors import UnusableStoreError
from domain.identity import NAME
from domain.job_factory import JobFactory
from entrypoints.cli.commands.serve.server import HttpServer
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.opening import open_store
from entrypoints.cli.operations import chosen_operations
from entrypoints.cli.output import say
from entrypoints.container import Container
from entrypoints.http_api import Handler, make_handler
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import Backend

UNUSABLE: Final = 2
INTERRUPTED: Final = 130

DEV_DEFAULTS: Final = {
    "HTTP_ALLOW_ANONYMOUS": "true",
    "LEASE_GRACE_SECONDS": "0",
    "POWERTOOLS_METRICS_DISABLED": "true",
}
"""Unless the environment says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What the command line says."""

    port: int
    operation: str | None
    name: str | None
    store: Backend
    db: Path
    namespace: str
    timeout: timedelta


def serve_http(options: ServeOptions) -> int:
    """Serve until a signal, and answer the exit status. Every foreseeable error is a line on standard error."""
    try:
        with ExitStack() as stack:
            server = HttpServer(options.port, _handler(options, stack), options.timeout)
            say(f"{server.url}/jobs   (POST; what may be asked: {server.url}/openapi.json; Ctrl-C stops)")
            return _until_stopped(server)
    except (SettingError, UnusableStoreError, UnusableOptionError) as error:
        say(f"onejob serve: {error}")
        return UNUSABLE
    except OSError as error:
        say(f"onejob serve: --port {options.port}: {error.strerror}")
        return 1


def _handler(options: ServeOptions, stack: ExitStack) -> Handler:
    if not NAME.fullmatch(options.namespace):
        raise UnusableOptionError(f"--namespace {options.namespace}: expected 1 to 64 of A-Z a-z 0-9 _ -")
    operations, default_operation = chosen_operations(options.operation, options.name)
    environment = {
        **DEV_DEFAULTS,
        **os.environ,
        "IDEMPOTENCY_BACKEND": options.store,
        "IDEMPOTENCY_DB": str(options.db),
        "IDEMPOTENCY_NAMESPACE": options.namespace,
    }
    container = Container()
    container.settings.override(Settings.from_environment(environment))
    container.http_settings.override(HttpSettings.from_environment(environment))
    container.job_factory.override(JobFactory(options.namespace, operations, default_operation))
    container.heartbeat.override(container.renewing_heartbeat)  # nobody ends what outlives its time-out
    open_store(container, options.store, stack)
    return make_handler(operations, container)


def _until_stopped(server: HttpServer) -> int:
    try:
        server.serve_forever(poll_interval=0.1)
    except (KeyboardInterrupt, SystemExit) as stopped:
        status = stopped.code if isinstance(stopped, SystemExit) and isinstance(stopped.code, int) else INTERRUPTED
        install_handler(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # an exception may be lost between two threads
        try:
            say("stopping: what runs is finished; Ctrl-C leaves at once")
            server.server_close()
        except (KeyboardInterrupt, SystemExit):
            sys.stdout.flush()
            os._exit(status)
        return status
    return 0
