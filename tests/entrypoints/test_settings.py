"""A worker starts with sound settings or not at all, and its message says what would do."""

from dataclasses import FrozenInstanceError, asdict
from datetime import timedelta
from pathlib import Path

import pytest

from entrypoints.settings import Backend, SettingError, Settings

MEMORY = {"IDEMPOTENCY_BACKEND": "memory"}
LAMBDA = {"AWS_LAMBDA_FUNCTION_NAME": "worker"}
KNOWN = ", ".join(Backend)
LONGEST_RETENTION = 100 * 366 * 86_400

BOUNDS = [
    ("IDEMPOTENCY_EXPIRES_AFTER_SECONDS", 60, LONGEST_RETENTION),
    ("JOB_CONCURRENCY", 1, 1000),
    ("MAX_ATTEMPTS", 1, 1_000_000),
    ("DEADLINE_MARGIN_SECONDS", 3, 450),
    ("LEASE_GRACE_SECONDS", 0, 3600),
    ("IDEMPOTENCY_VALKEY_REPLICAS", 0, 100),
]


def read(**environment: str) -> Settings:
    return Settings.from_environment(MEMORY | environment)


def refusal(environment: dict[str, str]) -> str:
    with pytest.raises(SettingError) as refused:
        Settings.from_environment(environment)
    return str(refused.value)


def test_the_defaults() -> None:
    assert asdict(read()) == {
        "backend": Backend.MEMORY,
        "table": None,
        "db": Path(".onejob/records.sqlite"),
        "db_allow_network": False,
        "valkey_url": None,
        "valkey_replicas": 0,
        "namespace": "onejob",
        "retention": timedelta(days=28),
        "concurrency": 10,
        "max_attempts": 5,
        "deadline_margin": timedelta(seconds=5),
        "lease_grace": timedelta(seconds=30),
        "dead_letter_queue_url": None,
        "log_error_messages": False,
        "service": "onejob",
        "metrics_namespace": "onejob",
        "metrics_enabled": True,
    }


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("IDEMPOTENCY_BACKEND", "memory", "backend", Backend.MEMORY),
        ("IDEMPOTENCY_BACKEND", "sqlite", "backend", Backend.SQLITE),
        ("IDEMPOTENCY_TABLE", "records", "table", "records"),
        ("IDEMPOTENCY_DB", "jobs/done.sqlite", "db", Path("jobs/done.sqlite")),
        ("IDEMPOTENCY_VALKEY_URL", "rediss://u:p@h:1/2", "valkey_url", "rediss://u:p@h:1/2"),
        ("IDEMPOTENCY_DB_ALLOW_NETWORK", "true", "db_allow_network", True),
        ("IDEMPOTENCY_VALKEY_REPLICAS", "2", "valkey_replicas", 2),
        ("IDEMPOTENCY_NAMESPACE", "shop_EU-1", "namespace", "shop_EU-1"),
        ("IDEMPOTENCY_EXPIRES_AFTER_SECONDS", "3600", "retention", timedelta(hours=1)),
        ("JOB_CONCURRENCY", "3", "concurrency", 3),
        ("MAX_ATTEMPTS", "7", "max_attempts", 7),
        ("DEADLINE_MARGIN_SECONDS", "8", "deadline_margin", timedelta(seconds=8)),
        ("LEASE_GRACE_SECONDS", "0", "lease_grace", timedelta(0)),
        ("DEAD_LETTER_QUEUE_URL", "https://sqs/1/dead", "dead_letter_queue_url", "https://sqs/1/dead"),
        (
            "DEAD_LETTER_QUEUE_URL",
            "http://localhost:1/0/d.fifo",
            "dead_letter_queue_url",
            "http://localhost:1/0/d.fifo",
        ),
        ("POWERTOOLS_METRICS_DISABLED", "true", "metrics_enabled", False),
        ("LOG_ERROR_MESSAGES", "true", "log_error_messages", True),
        ("POWERTOOLS_SERVICE_NAME", "shop", "service", "shop"),
        ("POWERTOOLS_METRICS_NAMESPACE", "Shop", "metrics_namespace", "Shop"),
    ],
)
def test_a_setting_changes_its_own_value_and_no_other(name: str, text: str, attribute: str, value: object) -> None:
    assert asdict(read(**{name: text})) == asdict(read()) | {attribute: value}
    assert asdict(read(**{name: f" {text}\n"})) == asdict(read()) | {attribute: value}


@pytest.mark.parametrize(
    "name",
    [
        "IDEMPOTENCY_TABLE",
        "IDEMPOTENCY_NAMESPACE",
        *(name for name, _, _ in BOUNDS),
        "DEAD_LETTER_QUEUE_URL",
        "IDEMPOTENCY_VALKEY_URL",
        "LOG_ERROR_MESSAGES",
        "POWERTOOLS_SERVICE_NAME",
        "POWERTOOLS_METRICS_NAMESPACE",
    ],
)
@pytest.mark.parametrize("blank", ["", "  "])
def test_a_blank_setting_is_one_that_is_not_set(name: str, blank: str) -> None:
    assert read(**{name: blank}) == read()


@pytest.mark.parametrize(("name", "least", "most"), BOUNDS)
def test_the_bounds_themselves_are_allowed(name: str, least: int, most: int) -> None:
    assert read(**{name: str(least)}) != read(**{name: str(most)})


@pytest.mark.parametrize(("name", "least", "most"), BOUNDS)
@pytest.mark.parametrize("outside", ["below", "above", "-1", "1.5", "1e2", "ten", "0x10", "1 0", "\u0661", "endless"])
def test_a_number_out_of_bounds_is_named_with_what_would_do(name: str, least: int, most: int, outside: str) -> None:
    text = {"below": str(least - 1), "above": str(most + 1), "endless": "9" * 5000}.get(outside, outside)
    assert refusal(MEMORY | {name: text}) == f"{name}={text!r}: expected a whole number from {least} to {most}"


@pytest.mark.parametrize("text", ["a b", "é", "n" * 65, "a.b", "a#"])
def test_a_namespace_that_could_not_stand_in_a_key_is_refused(text: str) -> None:
    expected = f"IDEMPOTENCY_NAMESPACE={text!r}: expected 1 to 64 characters of A-Z a-z 0-9 _ -"
    assert refusal(MEMORY | {"IDEMPOTENCY_NAMESPACE": text}) == expected


@pytest.mark.parametrize(
    ("text", "is_on"),
    [(text, True) for text in ("1", "true", "True", "YES", "on")]
    + [(text, False) for text in ("0", "false", "False", "NO", "off")],
)
def test_a_flag_is_on_or_off(text: str, is_on: bool) -> None:
    assert read(LOG_ERROR_MESSAGES=text).log_error_messages is is_on


@pytest.mark.parametrize("text", ["maybe", "2", "tru"])
def test_anything_else_is_no_flag(text: str) -> None:
    expected = f"LOG_ERROR_MESSAGES={text!r}: expected true or false"
    assert refusal(MEMORY | {"LOG_ERROR_MESSAGES": text}) == expected


def test_inside_lambda_records_live_in_dynamodb() -> None:
    settings = Settings.from_environment(LAMBDA | {"IDEMPOTENCY_TABLE": "records"})
    assert (settings.backend, settings.table) == (Backend.DYNAMODB, "records")


def test_elsewhere_the_backend_must_be_said() -> None:
    expected = f"IDEMPOTENCY_BACKEND is not set: outside Lambda say which, one of {KNOWN}"
    assert refusal({"IDEMPOTENCY_TABLE": "records"}) == expected
    assert refusal({"IDEMPOTENCY_BACKEND": " "}) == expected


@pytest.mark.parametrize("environment", [LAMBDA, {}])
@pytest.mark.parametrize("name", ["redis", "DynamoDB", "memory,dynamodb"])
def test_an_unknown_backend_is_refused_with_those_that_are_known(environment: dict[str, str], name: str) -> None:
    expected = f"IDEMPOTENCY_BACKEND={name!r}: expected one of {KNOWN}"
    assert refusal(environment | {"IDEMPOTENCY_BACKEND": name}) == expected


@pytest.mark.parametrize("environment", [LAMBDA, {"IDEMPOTENCY_BACKEND": "dynamodb"}])
@pytest.mark.parametrize("table", [{}, {"IDEMPOTENCY_TABLE": " "}])
def test_dynamodb_needs_a_table(environment: dict[str, str], table: dict[str, str]) -> None:
    assert refusal(environment | table).startswith("IDEMPOTENCY_TABLE is not set: the name of the DynamoDB table")


def test_memory_that_would_be_forgotten_between_invocations_is_refused() -> None:
    told = refusal(LAMBDA | MEMORY)
    assert told.startswith("IDEMPOTENCY_BACKEND=memory forgets")
    assert told.endswith("inside Lambda use dynamodb")


def test_settings_cannot_be_changed() -> None:
    settings = read()
    with pytest.raises(FrozenInstanceError):
        settings.max_attempts = 6  # type: ignore[misc]
    assert not hasattr(settings, "__dict__")


@pytest.mark.parametrize("url", ["dead", "arn:aws:sqs:us-east-1:1:dead", "https://sqs/dead", "https://sqs/1/a b"])
def test_a_dead_letter_queue_that_is_no_queues_url_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match=r"^DEAD_LETTER_QUEUE_URL=.*: expected the URL of an SQS queue$"):
        Settings.from_environment(MEMORY | {"DEAD_LETTER_QUEUE_URL": url})


def test_a_switch_for_metrics_that_is_neither_on_nor_off_stops_the_start() -> None:
    with pytest.raises(SettingError, match="POWERTOOLS_METRICS_DISABLED='maybe'"):
        Settings.from_environment(MEMORY | {"POWERTOOLS_METRICS_DISABLED": "maybe"})


@pytest.mark.parametrize("table", ["a b", "ab", "x" * 256, "table/1"])
def test_a_table_that_is_neither_a_name_nor_an_arn_is_refused(table: str) -> None:
    with pytest.raises(SettingError, match=r"^IDEMPOTENCY_TABLE="):
        Settings.from_environment(MEMORY | {"IDEMPOTENCY_TABLE": table})


@pytest.mark.parametrize("table", ["records", "arn:aws:dynamodb:us-east-1:1:table/records"])
def test_a_table_may_be_named_or_given_by_its_arn(table: str) -> None:
    assert Settings.from_environment(MEMORY | {"IDEMPOTENCY_TABLE": table}).table == table


def test_lambda_managed_instances_are_refused() -> None:
    environment = LAMBDA | {
        "AWS_LAMBDA_INITIALIZATION_TYPE": "lambda-managed-instances",
        "IDEMPOTENCY_TABLE": "records",
    }
    with pytest.raises(SettingError, match="AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances"):
        Settings.from_environment(environment)
    assert Settings.from_environment(environment | {"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"})


VALKEY = {"IDEMPOTENCY_BACKEND": "valkey"}


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "rediss://h:6379",
        "rediss://h?ssl_cert_reqs=required&ssl_check_hostname=true",
        "rediss://h?ssl_cert_reqs=optional",
        "valkey://127.0.0.1/1",
        "redis://127.0.0.2:6379/0?socket_timeout=1",
        "redis://[::ffff:127.0.0.1]",
        "valkeys://u:p%2Fw@cache.example.com:6379/0?ssl_ca_certs=/etc/ca.pem",
        "redis://:p@[::1]:6379",
    ],
)
def test_a_valkey_server_is_given_by_its_url_which_is_never_shown(url: str) -> None:
    settings = Settings.from_environment(VALKEY | {"IDEMPOTENCY_VALKEY_URL": url})
    assert settings.valkey_url == url
    assert url not in repr(settings)


@pytest.mark.parametrize(
    "url",
    [
        "hunter2",
        "http://hunter2",
        "redis://me:hunt/er2@h",
        "redis://me:hunt#er2@h",
        "redis://h:hunter2",
        "redis://:12",
        "redis://me:12/hunt@h",
    ],
)
def test_what_is_no_url_of_a_valkey_server_is_refused_and_not_shown(url: str) -> None:
    told = refusal(VALKEY | {"IDEMPOTENCY_VALKEY_URL": url})
    assert told.startswith("IDEMPOTENCY_VALKEY_URL: expected redis://")
    assert "hunt" not in told


@pytest.mark.parametrize(
    "url",
    [
        "redis://cache.example.com",
        "valkey://me:hunter2@10.0.0.1:6379/1",
        "redis://h",
        "redis://[::ffff:10.0.0.1]",
        "redis://[fe80::1]",
        "redis://0.0.0.0",
        "redis://localhost.example.com",
        "redis://127.0.0.1.nip.io",
        "redis://localhost%2eexample.com",
        "redis://127.0.0.1:6379@cache.example.com",
        "redis://h?host=127.0.0.1",
        "rediss://h?ssl_cert_reqs=none",
        "rediss://me:hunter2@h/1?ssl_ca_certs=ca.pem&ssl_cert_reqs=None",
        "rediss://h?ssl%5Fcert%5Freqs=n%6Fne",
        "rediss://h?ssl_cert_reqs=n%256Fne",
        "rediss://h?ssl_cert_reqs=required&ssl_cert_reqs=none",
        "rediss://h?ssl_cert_reqs=anything",
        "rediss://localhost?ssl_cert_reqs=none",
        "valkeys://h?ssl_check_hostname=false",
        "rediss://h?ssl_check_hostname=",
        "rediss://h?ssl_check_hostname=off",
    ],
)
def test_a_server_that_others_may_pose_as_is_refused_unless_a_setting_says_so(url: str) -> None:
    told = refusal(VALKEY | {"IDEMPOTENCY_VALKEY_URL": url})
    assert told.startswith("IDEMPOTENCY_VALKEY_URL: ")
    assert "IDEMPOTENCY_VALKEY_ALLOW_INSECURE=true" in told
    assert "hunter" not in told
    allowed = VALKEY | {"IDEMPOTENCY_VALKEY_URL": url, "IDEMPOTENCY_VALKEY_ALLOW_INSECURE": "true"}
    assert Settings.from_environment(allowed).valkey_url == url
    assert refusal(allowed | {"IDEMPOTENCY_VALKEY_ALLOW_INSECURE": "maybe"}).startswith(
        "IDEMPOTENCY_VALKEY_ALLOW_INSECURE='maybe'"
    )


def test_a_server_that_is_not_used_is_not_refused() -> None:
    assert read(IDEMPOTENCY_VALKEY_URL="redis://cache.example.com").backend is Backend.MEMORY


def test_valkey_needs_a_url_and_has_no_place_in_lambda() -> None:
    assert refusal(VALKEY).startswith("IDEMPOTENCY_VALKEY_URL is not set")
    expected = "IDEMPOTENCY_BACKEND=valkey has no client in the bundle: inside Lambda use dynamodb"
    assert refusal(LAMBDA | VALKEY | {"IDEMPOTENCY_VALKEY_URL": "redis://h"}) == expected
