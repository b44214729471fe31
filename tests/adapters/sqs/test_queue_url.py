"""Where a queue is, by its URL, and whether that is where AWS is asked."""

import pytest

from adapters.sqs.queue_url import elsewhere, is_same_queue, region_of

US = "https://sqs.us-east-1.amazonaws.com/123456789012/jobs"
EU = "https://sqs.eu-west-1.amazonaws.com/123456789012/jobs"
LOCAL = "http://127.0.0.1:4566/000000000000/jobs"
ENDPOINT = "https://sqs.us-east-1.amazonaws.com"


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sqs.eu-west-1.amazonaws.com", "eu-west-1"),
        ("SQS.EU-WEST-1.AMAZONAWS.COM", "eu-west-1"),
        ("sqs.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("sqs-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
        ("sqs.ap-southeast-2.api.aws", "ap-southeast-2"),
        ("vpce-0a1-b2c.sqs.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("vpce-0a1-b2c-eu-west-1a.sqs.eu-west-1.vpce.amazonaws.com", "eu-west-1"),
        ("eu-west-1.queue.amazonaws.com", "eu-west-1"),
        ("queue.amazonaws.com", "us-east-1"),
        ("sqs.eu-west-1.localhost.localstack.cloud:4566", "eu-west-1"),
        ("localhost:4566", None),
        ("127.0.0.1", None),
        ("[::1]:4566", None),
        ("sqs", None),
        ("example.com", None),
    ],
)
def test_a_host_names_its_region(host: str, region: str | None) -> None:
    assert region_of(f"https://{host}/123456789012/jobs") == region


@pytest.mark.parametrize(
    ("url", "region", "endpoint"),
    [
        (EU, "us-east-1", None),
        (EU, "us-east-1", ENDPOINT),
        (EU, "us-east-1", "http://127.0.0.1:4566"),
        (EU, "eu-west-1", "https://vpce-1.sqs.us-east-1.vpce.amazonaws.com"),
        (LOCAL, "us-east-1", ENDPOINT),
        ("https://sqs.example.com/1/jobs", "us-east-1", ENDPOINT),
        ("https://sqs.us-east-1.amazonaws.com.evil.example/1/jobs", "us-east-1", ENDPOINT),
    ],
)
def test_a_queue_of_another_place_is_told(url: str, region: str, endpoint: str | None) -> None:
    assert "but SQS is asked" in elsewhere(url, region, endpoint)


@pytest.mark.parametrize(
    ("url", "region", "endpoint"),
    [
        (US, "us-east-1", ENDPOINT),
        (US, None, None),
        (US, "us-east-1", "https://vpce-1.sqs.us-east-1.vpce.amazonaws.com"),
        (US, "us-east-1", "http://127.0.0.1:4566"),
        (LOCAL, "us-east-1", "http://localhost:4566"),
        (LOCAL, "us-east-1", None),
        ("https://queue.amazonaws.com/123456789012/jobs", "us-east-1", ENDPOINT),
    ],
)
def test_a_queue_where_aws_is_asked_is_none(url: str, region: str | None, endpoint: str | None) -> None:
    assert elsewhere(url, region, endpoint) == ""


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (US, True),
        ("https://queue.amazonaws.com/123456789012/jobs", True),
        ("https://us-east-1.queue.amazonaws.com/123456789012/jobs", True),
        ("https://sqs-fips.us-east-1.amazonaws.com/123456789012/jobs", True),
        (EU, False),
        ("https://sqs.us-east-1.amazonaws.com/999999999999/jobs", False),
        ("https://sqs.us-east-1.amazonaws.com/123456789012/other", False),
        ("http://127.0.0.1:4566/123456789012/jobs", False),
    ],
)
def test_a_queue_is_the_same_by_place_account_and_name(other: str, same: bool) -> None:
    assert is_same_queue(US, other) is same


def test_of_emulators_host_and_port_count() -> None:
    assert is_same_queue(LOCAL, LOCAL.replace("127.0.0.1", "localhost"))
    assert not is_same_queue(LOCAL, LOCAL.replace("4566", "4567"))
    assert not is_same_queue(LOCAL, LOCAL.replace("127.0.0.1", "emulator"))
