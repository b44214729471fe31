"""A server is looked at before it is trusted, and no error shows its password."""

import re
import ssl
from datetime import timedelta
from pathlib import Path

import pytest
import trustme

from adapters.stores.valkey.server import UnusableServerError, open_server
from adapters.stores.valkey.store import ValkeyIdempotencyStore
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.record import Acquired, Claim
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.tcp_proxy import proxied
from tests.support.valkey import Server, binary, started

SECOND = timedelta(seconds=1)
ROOT = Path(__file__).parents[4]
PASSWORD = "hunter2"


def opened(url: str) -> None:
    open_server(url, connections=3, connect_timeout=SECOND, read_timeout=SECOND).connection_pool.disconnect()


def refusal(url: str) -> str:
    with pytest.raises(UnusableServerError) as refused:
        opened(url)
    text = "".join(str(error) for error in (refused.value, refused.value.__cause__))
    assert "hunter" not in text
    assert text.startswith("IDEMPOTENCY_VALKEY_URL: ")
    return str(refused.value)


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_may_forget_is_refused_and_the_setting_is_named(server: Server, policy: str) -> None:
    opened(server.url)
    server.client.config_set("maxmemory-policy", policy)
    try:
        told = refusal(server.url)
    finally:
        server.client.config_set("maxmemory-policy", "noeviction")
    assert f"maxmemory-policy is {policy}" in told
    assert "set maxmemory-policy to noeviction" in told


def test_a_node_of_a_cluster_is_refused() -> None:
    with started("--cluster-enabled", "yes") as server:
        assert "cluster-enabled must be no" in refusal(server.url)


def test_a_server_that_is_too_old_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("valkey.Valkey.info", lambda self: {"redis_version": "6.2.14"})
    assert "version 6.2.14: 7.0 or newer is needed" in refusal(server.url)


def test_a_password_opens_and_a_wrong_or_missing_one_does_not_and_none_is_shown() -> None:
    with started("--requirepass", PASSWORD) as server:
        opened(f"redis://:{PASSWORD}@127.0.0.1:{server.port}")
        opened(f"redis://default:{PASSWORD}@127.0.0.1:{server.port}/3")
        assert "AuthenticationError" in refusal(f"redis://:{PASSWORD}x@127.0.0.1:{server.port}")
        assert "AuthenticationError" in refusal(f"redis://127.0.0.1:{server.port}")


def test_where_the_server_may_not_be_looked_at_it_is_trusted(server: Server) -> None:
    server.client.acl_setuser("narrow", enabled=True, passwords=[f"+{PASSWORD}"], commands=["+evalsha"], keys=["*"])
    try:
        opened(f"redis://narrow:{PASSWORD}@127.0.0.1:{server.port}")
    finally:
        server.client.acl_deluser("narrow")


def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    with started() as server:
        server.kill()
        assert f"127.0.0.1:{server.port}. Connection refused" in refusal(f"redis://:{PASSWORD}@127.0.0.1:{server.port}")


@pytest.mark.parametrize(
    "url", [f"redis://me:hunter/2@{'h'}", "redis://h?hunter=2", "redis://h?db=hunter", "ftp://hunter"]
)
def test_a_url_that_is_not_understood_is_not_shown(url: str) -> None:
    assert "it is not understood" in refusal(url)


def test_what_the_url_says_of_time_and_connections_does_not_count(server: Server) -> None:
    client = open_server(
        f"{server.url}?socket_timeout=99&max_connections=1&retry_on_timeout=yes&health_check_interval=1",
        connections=3,
        connect_timeout=SECOND,
        read_timeout=SECOND / 2,
    )
    told = client.connection_pool.connection_kwargs
    assert (told["socket_timeout"], told["health_check_interval"], client.connection_pool.max_connections) == (
        0.5,
        0,
        3,
    )
    client.connection_pool.disconnect()


def test_tls_wants_a_certificate_of_that_name_from_an_authority_that_it_trusts(server: Server, tmp_path: Path) -> None:
    authority, file = trustme.CA(), tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    for name, is_let_in in (("127.0.0.1", True), ("elsewhere.test", False)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        with proxied(server.port, context) as proxy:
            url = f"rediss://127.0.0.1:{proxy.port}"
            if is_let_in:
                opened(f"{url}?ssl_ca_certs={file}")
                assert "certificate verify failed" in refusal(url)
            else:
                assert "certificate verify failed" in refusal(f"{url}?ssl_ca_certs={file}")
                opened(f"{url}?ssl_ca_certs={file}&ssl_check_hostname=false")
                opened(f"{url}?ssl_cert_reqs=none")


def test_a_worker_may_do_with_what_the_page_on_stores_says(server: Server) -> None:
    grants = re.search(r"`~onejob:\* ([^`]+)`", (ROOT / "docs" / "stores.md").read_text())
    assert grants is not None
    server.client.acl_setuser(
        "worker", enabled=True, passwords=[f"+{PASSWORD}"], keys=["onejob:*"], commands=grants[1].split()
    )
    client = open_server(
        f"redis://worker:{PASSWORD}@127.0.0.1:{server.port}",
        connections=3,
        connect_timeout=SECOND,
        read_timeout=SECOND,
    )
    store = ValkeyIdempotencyStore(client, FakeClock(), SECOND)
    server.client.script_flush()
    try:
        for number in ("1", "2"):
            held = Claim(job(number).key, "a", 1)
            assert store.claim(job(number), owner="a", lease=SECOND) == Acquired(held)
            store.renew(held, SECOND * 2)
            store.release(held, "Error", forget_payload=True)
            assert store.claim(job(number), owner="b", lease=SECOND) == Acquired(
                Claim(held.key, "b", 2), "Error", verified=False
            )
            store.complete(Claim(held.key, "b", 2), Answer("null", "too_large: 9 bytes"))
            assert store.find(held.key) is not None
        with pytest.raises(StoreUnavailableError, match=r"^Valkey: NoPermissionError$"):
            ValkeyIdempotencyStore(client, FakeClock(), SECOND, replicas=1).claim(job("3"), owner="a", lease=SECOND)
    finally:
        server.client.acl_deluser("worker")
        store.close()


@pytest.mark.parametrize(("environment", "raised"), [({}, pytest.skip.Exception), ({"CI": "1"}, pytest.fail.Exception)])
def test_without_a_server_tests_are_skipped_and_fail_where_all_must_run(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], raised: type[BaseException]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(raised, match="there is no valkey-server"):
        binary()
