"""What the HTTP API is made of beside its worker, checked. Knows nothing of CDK."""

import re
from dataclasses import dataclass
from typing import Final

from infra.worker_props import WorkerPropsError

LONGEST_TIMEOUT: Final = 900
MOST_CONCURRENCY: Final = 10_000
CALLER: Final = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:(role|user|root)[A-Za-z0-9/+=,.@_-]*|[0-9]{12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProps:
    """One door. `timeout` is in seconds, by default within what an HTTP API in front would wait; `caller`, the ARN of
    a role or user or an account's number, is granted the URL. `concurrency` is how many requests are served at a time,
    reserved from the account's; 0 reserves none, and the account's limit is the only bound. Raises `WorkerPropsError`.
    """

    timeout: int = 29
    caller: str | None = None
    concurrency: int = 20

    def __post_init__(self) -> None:
        if not 1 <= self.timeout <= LONGEST_TIMEOUT:
            raise WorkerPropsError(f"http-timeout={self.timeout}: expected 1 to {LONGEST_TIMEOUT}")
        if not 0 <= self.concurrency <= MOST_CONCURRENCY:
            raise WorkerPropsError(f"http-concurrency={self.concurrency}: expected 0 (no bound) to {MOST_CONCURRENCY}")
        if self.caller is not None and not CALLER.fullmatch(self.caller):
            raise WorkerPropsError(
                f"http-caller={self.caller!r}: expected the ARN of an IAM role or user, or an account's number"
            )

    def check_against(self, margin: int) -> None:
        """The worker's margin is the door's. Raises `WorkerPropsError`."""
        if self.timeout < 2 * margin:
            raise WorkerPropsError(
                f"http-timeout={self.timeout} is less than twice margin={margin}: no time would be left to work in"
            )
