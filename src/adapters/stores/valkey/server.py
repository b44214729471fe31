"""The connections, and whether the server behind them may be trusted with records: clear errors where it may not."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from valkey import Valkey
from valkey.connection import parse_url
from valkey.exceptions import NoPermissionError, ValkeyError

from adapters.stores.valkey.pool import RenewablePool
from domain.errors import UnusableStoreError

OLDEST: Final = (7, 0)

_VERSION: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")


class UnusableServerError(UnusableStoreError):
    """The server cannot serve as a store; the text says why and what to do, and shows no password."""


def open_server(url: str, *, connections: int, connect_timeout: timedelta, read_timeout: timedelta) -> Valkey:
    """`client_of` a server that was found fit. Raises `UnusableServerError`, whatever the client raises."""
    try:
        client = client_of(url, connections=connections, connect_timeout=connect_timeout, read_timeout=read_timeout)
    except Exception:  # whose texts quote the URL
        raise UnusableServerError(
            "IDEMPOTENCY_VALKEY_URL: it is not understood; percent-encode what is special in a password, "
            "and leave out options that are not known"
        ) from None
    try:
        _check(_told(client))
    except BaseException as error:
        client.connection_pool.disconnect()
        if isinstance(error, UnusableServerError) or not isinstance(error, Exception):
            raise
        # the client's own words are shown; another's may quote what was sent or answered
        text = f"{type(error).__name__}: {error}" if isinstance(error, ValkeyError | OSError) else type(error).__name__
        raise UnusableServerError(f"IDEMPOTENCY_VALKEY_URL: {text}") from error
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
        "retry_on_timeout": False,
        "retry_on_error": None,
        "retry": None,
        "protocol": 2,
        "decode_responses": False,
    }
    pool = RenewablePool(**given | ours)
    pool.connection_class(**pool.connection_kwargs)  # which refuses options that are not known
    return Valkey(connection_pool=pool)


def _told(client: Valkey) -> Mapping[str, Any] | None:
    """What the server says of itself; None, where it says that we may not ask."""
    try:
        told: Any = client.info()
        return dict(told)
    except NoPermissionError:
        return None


def _check(info: Mapping[str, Any] | None) -> None:
    if info is None:
        return
    version = str(info.get("redis_version"))
    if not _VERSION.match(version):
        raise UnusableServerError("IDEMPOTENCY_VALKEY_URL: what answers there is no Valkey or Redis server")
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
