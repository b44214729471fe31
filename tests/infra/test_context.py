"""What `-c name=value` may say, and what is answered to what it may not."""

import re
from pathlib import Path

import pytest

from infra.context import deployment
from infra.worker_props import Architecture, Stage, WorkerProps, WorkerPropsError

KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def test_nothing_told_is_the_default() -> None:
    assert deployment({}).props == WorkerProps()


def test_everything_can_be_told() -> None:
    told = deployment(
        {
            "stage": "prod",
            "architecture": "x86_64",
            "fifo": "true",
            "alarm-email": "ops@example.com",
            "namespace": "billing",
            "memory": "1024",
            "timeout": "120",
            "margin": "6",
            "grace": "40",
            "job-concurrency": "20",
            "job-seconds": "2",
            "max-attempts": "7",
            "batch-size": "5",
            "batch-window": "0",
            "concurrency": "8",
            "reserved-concurrency": "9",
            "visibility": "721",
            "max-receives": "50",
            "retention": "20",
            "queue-retention": "4",
            "dead-letter-retention": "7",
            "log-retention": "14",
            "log-error-messages": "true",
            "stack-name": "billing-worker",
            "key-arn": KEY,
            "own-credentials": "true",
            "clean-up": "24",
        }
    )
    assert (told.stack_name, told.key_arn, told.own_credentials) == ("billing-worker", KEY, True)
    assert told.clean_up_hours == 24
    assert told.props == WorkerProps(
        stage=Stage.PROD,
        architecture=Architecture.X86_64,
        fifo=True,
        alarm_email="ops@example.com",
        namespace="billing",
        memory=1024,
        timeout=120,
        margin=6,
        grace=40,
        job_concurrency=20,
        job_seconds=2,
        max_attempts=7,
        batch_size=5,
        concurrency=8,
        reserved_concurrency=9,
        visibility=721,
        max_receives=50,
        retention_days=20,
        queue_retention_days=4,
        dead_letter_retention_days=7,
        log_retention_days=14,
        log_error_messages=True,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("stage", "production"),
        ("architecture", "arm"),
        ("fifo", "yes please"),
        ("alarm-email", "ops"),
        ("namespace", "a.b"),
        ("memory", "1 GB"),
        ("timeout", "-1"),
        ("timeout", "1e2"),
        ("timeout", ""),
        ("stack-name", "1st"),
        ("key-arn", "alias/mine"),
        ("clean-up", "0"),
        ("clean-up", "true"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(WorkerPropsError, match=f"^{name}={re.escape(repr(value))}: expected "):
        deployment({name: value})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("memroy", "did you mean memory?"),
        ("arch", "architecture"),
        ("x", "known"),
        ("stage:prod", "did you mean stage"),
        ("aws-region", "known"),
        ("me@y", "known"),
    ],
)
def test_an_unknown_name_is_not_passed_over(name: str, hint: str) -> None:
    with pytest.raises(WorkerPropsError, match=re.escape(hint)):
        deployment({name: "1"})


def test_what_cdk_keeps_in_the_context_is_not_ours() -> None:
    cdk = {
        "@aws-cdk/core:newStyleStackSynthesis": True,
        "aws:cdk:enable-asset-metadata": True,
        "aws-cdk:enableDiffNoFail": "true",
        "availability-zones:account=1:region=x": [],
        "tree-metadata": False,
        "cli-telemetry": False,
    }
    assert deployment(cdk).props == WorkerProps()


def test_the_documentation_lists_every_name() -> None:
    from infra.context import _READERS

    text = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text()
    for name in _READERS:
        assert f"| `{name}` |" in text
