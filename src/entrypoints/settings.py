"""The environment, read once into a frozen value. A bad setting stops the start, and the message names it."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from domain.identity import NAME
from entrypoints.store_registry import Backend as Backend  # its names are values of a setting
from entrypoints.store_registry import Reach

CONNECT_TIMEOUT_SECONDS: Final = 1
READ_TIMEOUT_SECONDS: Final = 2
LONGEST_REQUEST_SECONDS: Final = CONNECT_TIMEOUT_SECONDS + READ_TIMEOUT_SECONDS
"""One try of a request to AWS takes at most so long. The SDK makes one: `JobService` tries again, and knows the
deadline. A last try that starts at the deadline margin (5 s by default) so ends within it; a second one inside the SDK
would not.
"""

QUEUE_URL: Final = r"https?://[^\s/]+/[0-9]+/[A-Za-z0-9_-]{1,80}(\.fifo)?"
VALKEY_URL: Final = (
    r"(redis|valkey)s?://([^\s:@/?#]*(:[^\s@/?#]*)?@)?"
    r"([^\s:@/?#\[\]]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[0-9]*)?(\?[^\s#]*)?"
)

_SECURE_OPTIONS: Final[Mapping[str, Set[str]]] = {
    "ssl_cert_reqs": {"required", "optional"},  # which are the same for a client (module ssl)
    "ssl_check_hostname": {"1", "true", "yes", "on"},
}

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


class SettingError(Exception):
    """A setting is missing or cannot be used; the text says which, and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker is told. docs/settings.md has the table."""

    backend: Backend
    table: str | None = None
    db: Path = Path(".onejob/records.sqlite")
    db_allow_network: bool = False
    valkey_url: str | None = field(default=None, repr=False)  # it may hold a password
    valkey_replicas: int = 0
    namespace: str = "onejob"
    retention: timedelta = timedelta(days=28)
    concurrency: int = 10
    max_attempts: int = 5
    deadline_margin: timedelta = timedelta(seconds=5)
    lease_grace: timedelta = timedelta(seconds=30)
    dead_letter_queue_url: str | None = None
    log_error_messages: bool = False
    service: str = "onejob"
    metrics_namespace: str = "onejob"
    metrics_enabled: bool = True

    @property
    def table_region(self) -> str | None:
        """The region that the table's ARN names; None where it is told by its name alone."""
        table = self.table or ""
        return table.split(":")[3] or None if re.match("arn:[^:]*:dynamodb:[^:]*:", table) else None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Raises `SettingError`."""
        read = Reader(environment)
        in_lambda = "AWS_LAMBDA_FUNCTION_NAME" in environment
        backend = read.backend("dynamodb" if in_lambda else None)
        table = read.text("IDEMPOTENCY_TABLE")
        if table is not None and not re.fullmatch(r"[A-Za-z0-9_.-]{3,255}|arn:\S+", table):
            raise SettingError(f"IDEMPOTENCY_TABLE={table!r}: expected the name or the ARN of a DynamoDB table")
        if backend is Backend.DYNAMODB and table is None:
            raise SettingError("IDEMPOTENCY_TABLE is not set: the name of the DynamoDB table for job records")
        if environment.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "lambda-managed-instances":
            raise SettingError(
                "AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances: there code runs on after a "
                "time-out, beside the attempt that takes over; use Lambda's default kind of function"
            )
        valkey_url = read.valkey_url("IDEMPOTENCY_VALKEY_URL")
        if backend is Backend.VALKEY and valkey_url is None:
            raise SettingError("IDEMPOTENCY_VALKEY_URL is not set: the server for job records, as rediss://HOST:PORT")
        if backend is not Backend.DYNAMODB and in_lambda:
            why = "has no client in the bundle" if backend.reach is Reach.NETWORK else "forgets with the sandbox"
            raise SettingError(f"IDEMPOTENCY_BACKEND={backend} {why}: inside Lambda use dynamodb")
        if backend is Backend.VALKEY and not read.flag("IDEMPOTENCY_VALKEY_ALLOW_INSECURE"):
            require_encrypted(valkey_url or "")
        default = cls(backend=backend)
        return cls(
            backend=backend,
            table=table,
            db=Path(read.text("IDEMPOTENCY_DB") or default.db),
            db_allow_network=read.flag("IDEMPOTENCY_DB_ALLOW_NETWORK"),
            valkey_url=valkey_url,
            valkey_replicas=read.whole("IDEMPOTENCY_VALKEY_REPLICAS", default.valkey_replicas, least=0, most=100),
            namespace=read.namespace("IDEMPOTENCY_NAMESPACE", default.namespace),
            retention=read.seconds("IDEMPOTENCY_EXPIRES_AFTER_SECONDS", default.retention, least=60),
            concurrency=read.whole("JOB_CONCURRENCY", default.concurrency, least=1, most=1000),
            max_attempts=read.whole("MAX_ATTEMPTS", default.max_attempts, least=1, most=1_000_000),
            deadline_margin=read.seconds(
                "DEADLINE_MARGIN_SECONDS", default.deadline_margin, least=LONGEST_REQUEST_SECONDS, most=450
            ),
            lease_grace=read.seconds("LEASE_GRACE_SECONDS", default.lease_grace, least=0, most=3600),
            dead_letter_queue_url=read.url("DEAD_LETTER_QUEUE_URL"),
            log_error_messages=read.flag("LOG_ERROR_MESSAGES"),
            service=read.text("POWERTOOLS_SERVICE_NAME") or default.service,
            metrics_namespace=read.text("POWERTOOLS_METRICS_NAMESPACE") or default.metrics_namespace,
            metrics_enabled=not read.flag("POWERTOOLS_METRICS_DISABLED"),
        )


def require_encrypted(url: str) -> None:
    """Of a server beyond this machine, TLS, and of every TLS that it knows the server. Raises `SettingError`, which
    shows nothing of the URL but its host.

    What is not understood counts as insecure.
    """
    parts = urlsplit(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    if parts.scheme in ("redis", "valkey"):
        if not _is_loopback(host := parts.hostname or ""):
            raise SettingError(
                f"IDEMPOTENCY_VALKEY_URL: {parts.scheme}:// to {host} sends passwords and answers in the clear, and "
                f"anyone between them may change them: use {parts.scheme}s://, or set "
                "IDEMPOTENCY_VALKEY_ALLOW_INSECURE=true"
            )
        return
    for name, secure in _SECURE_OPTIONS.items():
        if not all(value.lower() in secure for value in options.get(name, [])):
            raise SettingError(
                f"IDEMPOTENCY_VALKEY_URL: with this {name} any server may pose as yours: leave it out "
                "(?ssl_ca_certs=FILE names an authority of yours), or set IDEMPOTENCY_VALKEY_ALLOW_INSECURE=true"
            )


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


class Reader:
    """Texts of an environment, checked. Every method raises `SettingError`, which names the setting."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str | None:
        return self._environment.get(name, "").strip() or None

    def backend(self, default: str | None) -> Backend:
        name = self.text("IDEMPOTENCY_BACKEND") or default
        known = ", ".join(Backend)
        if name is None:
            raise SettingError(f"IDEMPOTENCY_BACKEND is not set: outside Lambda say which, one of {known}")
        found = next((one for one in Backend if one == name), None)
        if found is None:
            raise SettingError(f"IDEMPOTENCY_BACKEND={name!r}: expected one of {known}")
        return found

    def namespace(self, name: str, default: str) -> str:
        text = self.text(name) or default
        if not NAME.fullmatch(text):
            raise SettingError(f"{name}={text!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ -")
        return text

    def url(self, name: str) -> str | None:
        text = self.text(name)
        if text is not None and not re.fullmatch(QUEUE_URL, text):
            raise SettingError(f"{name}={text!r}: expected the URL of an SQS queue")
        return text

    def valkey_url(self, name: str) -> str | None:
        text = self.text(name)
        if text is not None and not re.fullmatch(VALKEY_URL, text):  # which may hold a password: it is not shown
            raise SettingError(
                f"{name}: expected redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE], or rediss:// for TLS, "
                "with what is special in a password percent-encoded"
            )
        return text

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            raise SettingError(f"{name}={text!r}: expected a whole number from {least} to {most}")
        return int(text)

    def seconds(self, name: str, default: timedelta, *, least: int, most: int = 100 * 366 * 86_400) -> timedelta:
        return timedelta(seconds=self.whole(name, int(default.total_seconds()), least=least, most=most))

    def flag(self, name: str) -> bool:
        text = (self.text(name) or "").lower()
        if text not in _TRUE | _FALSE:
            raise SettingError(f"{name}={text!r}: expected true or false")
        return text in _TRUE
