"""How the clients of AWS and Valkey talk: short time-outs, a connection for each thread, one try."""

from typing import TYPE_CHECKING

from adapters.threads.heartbeat import RENEWERS
from entrypoints.settings import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, Settings

if TYPE_CHECKING:
    from botocore.config import Config


def connections(settings: Settings) -> int:
    """How many a client may have open: one for each thread that may ask at the same time, and two to spare."""
    return settings.concurrency + RENEWERS + 2


def sdk_config(settings: Settings, tries: int = 1) -> "Config":
    """How boto3 talks: short time-outs, a connection for each thread of jobs and of heartbeats, and two to spare.

    Parameters are not validated: onejob makes every request itself, and a tenth of a job's CPU is saved.
    Its name is given, since botocore puts together one of its own anew, twice, for each request: as much again.
    """
    from botocore import __version__
    from botocore.config import Config

    return Config(
        connect_timeout=CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": tries},
        max_pool_connections=connections(settings),
        tcp_keepalive=True,
        parameter_validation=False,
        user_agent=f"onejob botocore/{__version__}",
    )
