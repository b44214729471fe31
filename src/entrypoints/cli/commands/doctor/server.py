"""What `onejob doctor` looks at in a Valkey or Redis server of records. Nothing on it is changed."""

from typing import Final

from adapters.stores.valkey.admin import ValkeyStoreAdmin
from domain.errors import StoreUnavailableError
from entrypoints.cli.commands.doctor.finding import Finding, ok, warn

MANY: Final = 0.25
"""Warn when more than this share of the records is over. A weekly purge of records that are kept for 28 days stays
below it.
"""

FEW: Final = 100
"""Do not warn when fewer records than this are over."""

SCHEDULE: Final = "schedule `onejob purge --backend valkey` (docs/stores.md, Purge)"


def purge_finding(admin: ValkeyStoreAdmin) -> Finding:
    """Whether somebody purges the server: by a sample of its records, since no key expires by itself."""
    subject = "purge of valkey"
    try:
        seen, over = admin.sample()
    except StoreUnavailableError as error:
        return warn(subject, f"{error}: whether records are purged is not known", "grant +scan (docs/stores.md)")
    text = f"{over:,} of {seen:,} records looked at are over, and only a purge deletes them"
    if over >= FEW and over > MANY * seen:
        return warn(subject, f"{text}: memory grows until no job is begun", SCHEDULE)
    return ok(subject, f"{text}: {SCHEDULE}")
