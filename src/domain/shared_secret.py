"""A secret that the workers and operators of one namespace have in common, kept where their records are.

It is the owner of a claim that never ends. A claim is atomic, so that one secret is made however many ask for it at
once; nothing completes or purges it, and it is no job's: no message can name its key's namespace.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final, Protocol

from domain.errors import StoreUnavailableError
from domain.identity import JobKey, fingerprint, job_key
from domain.job import Job
from domain.record import Acquired, ClaimAnswer, Record

NAMESPACE: Final = "onejob_secrets"
OPERATION: Final = "notes"
NEVER_ENDS: Final = timedelta(days=36_500)


class ClaimJob(Protocol):
    """`IdempotencyStore.claim`."""

    def __call__(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer: ...


class SharedSecret:
    """Thread-safe. `find` is `IdempotencyStore.find` or `StoreAdmin.look`; `new_secret` answers one nobody can guess.

    All threads of a process offer the same secret: their claims are one.
    """

    def __init__(
        self,
        find: Callable[[JobKey], Record | None],
        claim: ClaimJob,
        namespace: str,
        new_secret: Callable[[], str],
    ) -> None:
        key = job_key(NAMESPACE, OPERATION, namespace)
        self._job = Job(key=key, job_id=namespace, tenant=None, payload={}, fingerprint=fingerprint({}))
        self._find = find
        self._claim = claim
        self._offered = new_secret()
        self._known: str | None = None

    def find(self) -> str | None:
        """Return the secret; None if nobody has made one. Raises `StoreUnavailableError`."""
        if self._known is None:
            record = self._find(self._job.key)
            if record is not None and record.in_progress and record.job_id == self._job.job_id:
                self._known = record.owner
        return self._known

    def get(self) -> str:
        """Return the secret, and make it if nobody has. Raises `StoreUnavailableError`."""
        if (known := self.find()) is not None:
            return known
        if isinstance(self._claim(self._job, owner=self._offered, lease=NEVER_ENDS), Acquired):
            self._known = self._offered
        elif self.find() is None:
            raise StoreUnavailableError(f"{self._job.key}: somebody made the secret a moment ago, or it cannot be read")
        assert self._known is not None  # noqa: S101
        return self._known
