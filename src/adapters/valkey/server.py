"""The connections, and whether the server behind them may be trusted with records: clear errors where it may not."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from valkey import Valkey
from valkey.connection import BlockingConnectionPool, parse_url
from valkey.exceptions import NoPermissionError, ValkeyError

OLDEST: Final = (7, 0)


class UnusableServerError(Exception):
    """The server cannot serve as a store; the text says why and what to do, and shows no password."""


def open_server(url: str, *, connections: int, connect_timeout: timedelta, read_timeout: timedelta) -> Valkey:
    """`client_of` a server that was found fit. Raises `UnusableServerError`."""
    try:
        client = client_of(url, connections=connections, connect_timeout=connect_timeout, read_timeout=read_timeout)
        try:
            _check(_told(client))
        except BaseException:
            client.connection_pool.disconnect()
            raise
    except (ValueError, TypeError):  # whose texts quote the URL
        raise UnusableServerError(
            "IDEMPOTENCY_VALKEY_URL: it is not understood; percent-encode what is special in a password, "
            "and leave out options that are not known"
        ) from None
    except (ValkeyError, OSError) as error:
        raise UnusableServerError(f"IDEMPOTENCY_VALKEY_URL: {type(error).__name__}: {error}") from error
    return client


def client_of(url: str, *, connections: int, connect_timeout: timedelta, read_timeout: timedelta) -> Valkey:
    """A client that never tries again by itself. `read_timeout` bounds the wait for each answer: a request has one, and
    AUTH and SELECT had theirs before it on a new connection, and WAIT has one after it.

    What the URL says of time-outs and connections does not count.
    """
    given: dict[str, Any] = parse_url(url)
    if "connection_class" in given and given.get("ssl_cert_reqs") != "none":
        given.setdefault("ssl_check_hostname", True)  # or any certificate would do, of whomever
    ours = {
        "max_connections": connections,
        "timeout": connect_timeout.total_seconds(),  # for a free connection
        "socket_connect_timeout": connect_timeout.total_seconds(),
        "socket_timeout": read_timeout.total_seconds(),
        "socket_keepalive": True,
        "health_check_interval": 0,
        "lib_name": None,  # two round trips less on each new connection
        "lib_version": None,
    }
    make_pool: Any = BlockingConnectionPool
    return Valkey(connection_pool=make_pool(**given | ours))


def _told(client: Valkey) -> Mapping[str, Any]:
    """What the server says of itself; nothing, where it says that we may not ask."""
    try:
        told: Any = client.info()
        return dict(told)
    except NoPermissionError:
        return {}


def _check(info: Mapping[str, Any]) -> None:
    version = str(info.get("redis_version", "7.0"))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise UnusableServerError(f"IDEMPOTENCY_VALKEY_URL: the server is version {version}: 7.0 or newer is needed")
    if info.get("cluster_enabled"):
        raise UnusableServerError("IDEMPOTENCY_VALKEY_URL: the server is part of a cluster: cluster-enabled must be no")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnusableServerError(
            f"IDEMPOTENCY_VALKEY_URL: maxmemory-policy is {policy}: the server would forget jobs that are done, and "
            "they would run again; set maxmemory-policy to noeviction"
        )
