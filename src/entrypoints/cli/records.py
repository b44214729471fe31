"""The store of records, opened for an operator: which one, whose job, and who is asking."""

import getpass
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from botocore.exceptions import BotoCoreError, ClientError

from adapters.sqs.notes import UNSIGNED, Notes
from adapters.system import new_secret
from domain.errors import UnusableStoreError
from domain.identity import JobKey, clean_id, clean_name, job_key
from domain.job import Job
from domain.ports.clock import Clock
from domain.ports.store_admin import StoreAdmin
from domain.record import ClaimAnswer, Record
from domain.shared_secret import SharedSecret
from entrypoints.cli.aws import Aws, explained, is_no_url
from entrypoints.cli.output import say
from entrypoints.cli.tables import iso
from entrypoints.container import Container
from entrypoints.settings import SettingError, Settings
from entrypoints.store_registry import Backend, Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsOptions:
    """Where records are: as in a worker's environment, unless told otherwise."""

    backend: str | None = None
    table: str | None = None
    db: str | None = None
    namespace: str | None = None
    region: str | None = None
    endpoint_url: str | None = None

    @property
    def aws(self) -> Aws:
        return Aws(self.region, self.endpoint_url)

    @property
    def is_told(self) -> bool:
        """Whether it is said at all where records are."""
        return bool(self.backend or self.table or self.db)

    def settings(self, environment: Mapping[str, str]) -> Settings:
        """Raises `SettingError`."""
        named = {
            "IDEMPOTENCY_BACKEND": self.backend or ("dynamodb" if self.table else "sqlite" if self.db else None),
            "IDEMPOTENCY_TABLE": self.table,
            "IDEMPOTENCY_DB": self.db,
            "IDEMPOTENCY_NAMESPACE": self.namespace,
        }
        told = {name: value for name, value in named.items() if value is not None}
        settings = Settings.from_environment({**environment, **told})
        if settings.backend.reach is Reach.PROCESS:
            raise SettingError(
                f"IDEMPOTENCY_BACKEND={settings.backend} is gone with its process: "
                "--table NAME or --db FILE says where records are"
            )
        if self.region is not None and settings.table_region not in (None, self.region):
            raise SettingError(f"--table {settings.table} is in {settings.table_region}, but --region is {self.region}")
        return settings


@dataclass(frozen=True, slots=True)
class Records:
    """An open store, as its operator uses it. `notes` tells what its workers wrote on dead letters."""

    settings: Settings
    admin: StoreAdmin
    clock: Clock
    aws: Aws
    notes: Notes = UNSIGNED

    def key(self, job_id: str, operation: str, tenant: str | None) -> JobKey:
        """Raises `InvalidJobError`."""
        identity = clean_id(job_id, "job_id")
        whose = None if tenant is None else clean_id(tenant, "tenant")
        return job_key(self.settings.namespace, clean_name(operation, "operation"), identity, whose)

    def who(self) -> str:
        """For the audit: AWS's name of the caller, or this machine's user."""
        user = f"{_user()}@{os.uname().nodename}"
        if self.settings.backend is not Backend.DYNAMODB:
            return user
        try:
            return self.aws.client("sts").get_caller_identity()["Arn"]
        except Exception as error:
            return f"{user} (AWS does not say who: {explained(error)})"


def _user() -> str:
    try:
        return getpass.getuser()
    except OSError:  # a container's, which has no name
        return f"uid {os.getuid()}"


@contextmanager
def open_records(options: RecordsOptions) -> Iterator[Records]:
    """Raises `SettingError`, `UnusableStoreError`."""
    settings = options.settings(os.environ)
    if settings.backend is Backend.SQLITE and not settings.db.exists():  # to look must not make one
        raise SettingError(f"{settings.db}: there is no such file: --db, or IDEMPOTENCY_DB, names it")
    container = Container()
    container.settings.override(settings)
    with _environment_of(options), ExitStack() as stack:
        admin = _admin(container, settings)
        stack.callback(admin.close)
        secret = SharedSecret(admin.look, partial(_claim, container, stack), settings.namespace, new_secret)
        yield Records(settings, admin, container.clock(), options.aws, Notes(secret))


def _claim(container: Container, stack: ExitStack, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
    """By a worker's store, which an operator opens only for this: once, and closes with `stack`."""
    store = container.store()
    stack.callback(store.close)
    return store.claim(job, owner=owner, lease=lease)


def _admin(container: Container, settings: Settings) -> StoreAdmin:
    try:
        return container.admin()
    except (SettingError, UnusableStoreError, ClientError, BotoCoreError):
        raise
    except ValueError as error:
        if is_no_url(error):
            raise
        raise SettingError(f"IDEMPOTENCY_BACKEND={settings.backend}: {error}") from error
    except Exception as error:  # a backend's own, whose client need not be installed
        raise SettingError(f"IDEMPOTENCY_BACKEND={settings.backend}: {error}") from error


@contextmanager
def _environment_of(options: RecordsOptions) -> Iterator[None]:
    """The container's clients are made as boto3 finds AWS: what was told goes where boto3 looks."""
    told = {"AWS_DEFAULT_REGION": options.region, "AWS_ENDPOINT_URL": options.endpoint_url}
    before = {name: os.environ.get(name) for name in told}
    os.environ.update({name: value for name, value in told.items() if value is not None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def audit(who: str, before: Record, after: Record | None, now: datetime, **more: str) -> None:
    """A line on standard error that tells who let which job run again; no `after`: perhaps it did not land."""
    line = {
        "event": "job_forgotten" if after else "job_forget_uncertain",
        "at": iso(now),
        "who": who,
        "key": str(before.key),
        "job_id": before.job_id,
        "before": _audited(before, now),
        "after": _audited(after, now) if after else None,
        **more,
    }
    say(json.dumps(line))


def _audited(record: Record, now: datetime) -> dict[str, object]:
    return {
        "status": record.state(now),
        "epoch": record.epoch,
        "attempts": record.attempts,
        "last_seen": iso(record.last_seen),
    }
