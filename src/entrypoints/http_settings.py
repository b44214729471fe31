"""What the HTTP API is told, beside what every worker is (`entrypoints.settings`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from entrypoints.settings import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpSettings:
    """See the settings table in docs/http.md."""

    tenant_claim: str = "sub"
    allow_anonymous: bool = False
    jobs_queue_url: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Raises `SettingError`."""
        told, default = Reader(environment), cls()
        return cls(
            tenant_claim=told.text("HTTP_TENANT_CLAIM") or default.tenant_claim,
            allow_anonymous=told.flag("HTTP_ALLOW_ANONYMOUS"),
            jobs_queue_url=told.url("JOBS_QUEUE_URL"),
        )
