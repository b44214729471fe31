"""Two settings that say where AWS is: a queue or a table of another place is refused by name, or asked where it is."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from entrypoints.container import Container
from entrypoints.emulator.launcher import only_environment
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import Backend, SettingError, Settings
from entrypoints.store_registry import dynamodb_layer
from tests.support.cli import onejob
from tests.support.jobs import operations

EU_DEAD = "https://sqs.eu-west-1.amazonaws.com/123456789012/dead"
KEYS = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_CONFIG_FILE": os.devnull}
WHY = "is in eu-west-1, but SQS is asked in us-east-1"


@pytest.fixture
def two_regions() -> Iterator[tuple[str, str]]:
    """Queues of one name in each; AWS is asked in us-east-1."""
    with only_environment(KEYS | {"AWS_DEFAULT_REGION": "us-east-1"}), mock_aws():
        made = [
            [boto3.client("sqs", region).create_queue(QueueName=name)["QueueUrl"] for name in ("jobs", "dead")]
            for region in ("us-east-1", "eu-west-1")
        ]
        yield made[1][0], made[1][1]


def counts(region: str) -> list[str]:
    sqs = boto3.client("sqs", region)
    names: Any = ["ApproximateNumberOfMessages"]
    return [
        sqs.get_queue_attributes(QueueUrl=sqs.get_queue_url(QueueName=name)["QueueUrl"], AttributeNames=names)[
            "Attributes"
        ]["ApproximateNumberOfMessages"]
        for name in ("jobs", "dead")
    ]


def test_nothing_is_sent_to_another_regions_queue_of_that_name(two_regions: tuple[str, str], tmp_path: Path) -> None:
    jobs, _ = two_regions
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"job_id":"1"}\n')
    refused = onejob("send", str(file), "--queue-url", jobs)
    assert (refused.exit_code, f"--queue-url {jobs}: {WHY}" in refused.stderr) == (2, True)
    assert counts("us-east-1") == counts("eu-west-1") == ["0", "0"]
    assert onejob("send", str(file), "--queue-url", jobs, "--region", "eu-west-1").exit_code == 0
    assert (counts("us-east-1"), counts("eu-west-1")) == (["0", "0"], ["1", "0"])


def test_no_dead_letter_is_looked_for_or_sent_elsewhere(two_regions: tuple[str, str]) -> None:
    jobs, dead = two_regions
    table = ("--table", "records")
    for command in (("list",), ("redrive", "--all", "--queue-url", jobs)):
        refused = onejob("dlq", *command, *table, "--dead-letter-url", dead)
        assert (refused.exit_code, f"--dead-letter-url {dead}: {WHY}" in refused.stderr) == (2, True)
    us_dead = dead.replace("eu-west-1", "us-east-1")
    refused = onejob("dlq", "redrive", "--all", *table, "--dead-letter-url", us_dead, "--queue-url", jobs)
    assert (refused.exit_code, f"--queue-url {jobs}: {WHY}" in refused.stderr) == (2, True)


def test_a_lambda_worker_does_not_start_with_a_queue_of_another_region() -> None:
    with only_environment(KEYS | {"AWS_DEFAULT_REGION": "us-east-1"}):
        container = Container()
        container.operations.override(operations())
        settings = Settings(backend=Backend.DYNAMODB, table="records", dead_letter_queue_url=EU_DEAD)
        container.settings.override(settings)
        with pytest.raises(SettingError, match=f"DEAD_LETTER_QUEUE_URL={EU_DEAD}: {WHY}"):
            container.sqs_batches()
        container.http_settings.override(HttpSettings(jobs_queue_url=EU_DEAD))
        with pytest.raises(SettingError, match=f"JOBS_QUEUE_URL={EU_DEAD}: {WHY}"):
            container.sender()


def test_a_table_is_asked_for_in_the_region_of_its_arn() -> None:
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/records"
    with only_environment(KEYS | {"AWS_DEFAULT_REGION": "us-east-1"}):
        for table, region in ((arn, "eu-west-1"), ("records", "us-east-1")):
            layer = dynamodb_layer(Settings(backend=Backend.DYNAMODB, table=table))
            assert layer.client.meta.region_name == region
        shown = onejob("show", "1", "--table", arn, "--region", "us-east-1")
    assert (shown.exit_code, "is in eu-west-1, but --region is us-east-1" in shown.stderr) == (2, True)
