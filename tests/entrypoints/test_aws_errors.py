"""An error of AWS becomes one line that names what mends it."""

from typing import Any

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    EndpointConnectionError,
    InvalidRegionError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
)

from entrypoints.cli.aws import Aws, explained, is_setting
from entrypoints.emulator.launcher import only_environment


def refused(code: str, message: str = "why\n so") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "GetItem")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            refused("AccessDeniedException"),
            "table t is denied to this caller; its role or user needs it: why so",
        ),
        (refused("ExpiredTokenException"), "renew them"),
        (refused("UnrecognizedClientException"), "AWS refuses the credentials"),
        (refused("AWS.SimpleQueueService.NonExistentQueue"), "there is no queue table t: check its URL, the region"),
        (refused("ResourceNotFoundException"), "there is no table t: check its name, the region (--region)"),
        (refused("ValidationException"), "GetItem on table t: ValidationException: why so"),
        (NoCredentialsError(), "set AWS_PROFILE"),
        (PartialCredentialsError(provider="env", cred_var="x"), "set AWS_PROFILE"),
        (NoRegionError(), "--region, or AWS_DEFAULT_REGION"),
        (InvalidRegionError(region_name="a b"), "--region, or AWS_DEFAULT_REGION"),
        (ProfileNotFound(profile="x"), "AWS_PROFILE"),
        (EndpointConnectionError(endpoint_url="http://x"), "--endpoint-url, AWS_ENDPOINT_URL"),
        (ReadTimeoutError(endpoint_url="http://x"), "--endpoint-url, AWS_ENDPOINT_URL"),
        (ValueError("Invalid endpoint: x"), "is no URL"),
        (ValueError("Invalid endpoint: https://sqs..amazonaws.com"), "no region is set"),
        (ValueError("of another kind"), "ValueError: of another kind"),
        (BotoCoreError(), "BotoCoreError: "),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_kind(error: Exception, told: str) -> None:
    line = explained(error, "table t")
    assert told in line
    assert "\n" not in line


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, {}),
        ({"AWS_DEFAULT_REGION": "us-east-1"}, {"endpoint_url": "nonsense"}),
        ({"AWS_PROFILE": "nobody"}, {"region": "us-east-1"}),
    ],
    ids=["region", "endpoint", "profile"],
)
def test_what_is_missing_in_settings_is_known_as_that(environment: dict[str, str], arguments: dict[str, Any]) -> None:
    files = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    with only_environment({**files, **environment}), pytest.raises((BotoCoreError, ValueError)) as raised:
        Aws(**arguments).client("sqs")
    assert is_setting(raised.value)
    assert not is_setting(refused("AccessDenied"))
