"""The stack as CloudFormation gets it, synthesised in this process. Imports CDK."""

import json
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App
from aws_cdk.assertions import Template

from infra.bundle import PROJECT, build
from infra.context import deployment
from infra.stack import LambdaIdempotencyStack

FLAGS: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def app(context: Mapping[str, str]) -> App:
    folder = tempfile.mkdtemp(dir=_scratch().name)
    return App(outdir=folder, context={**FLAGS, **context}, analytics_reporting=False)


@cache
def _scratch() -> "tempfile.TemporaryDirectory[str]":
    """Goes with the process."""
    return tempfile.TemporaryDirectory(prefix="onejob-cdk-", ignore_cleanup_errors=True)


def stack(root: App, context: Mapping[str, str]) -> LambdaIdempotencyStack:
    told = deployment(context)
    return LambdaIdempotencyStack(
        root,
        props=told.props,
        bundle=build(told.props.architecture),
        key_arn=told.key_arn,
        stack_name=told.stack_name,
        http=told.http,
        clean_up_hours=told.clean_up_hours,
    )


def template(**context: str) -> dict[str, Any]:
    """The template of `cdk synth -c name=value ...`; underscores stand for hyphens."""
    return _template(tuple(sorted((name.replace("_", "-"), value) for name, value in context.items())))


@cache
def _template(context: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    told = dict(context)
    root = app(told)
    made: dict[str, Any] = dict(Template.from_stack(stack(root, told)).to_json())
    return made


def resources(made: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """By logical id, those of a type (`SQS::Queue`)."""
    return {name: one for name, one in made["Resources"].items() if one["Type"] == f"AWS::{kind}"}


def only(made: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the one resource of that type."""
    (one,) = resources(made, kind).values()
    properties: dict[str, Any] = one["Properties"]
    return properties


def named(made: Mapping[str, Any], kind: str, name: str) -> tuple[str, dict[str, Any]]:
    """Logical id and whole resource of the one whose id holds that name."""
    (found,) = [(key, one) for key, one in resources(made, kind).items() if name in key]
    return found


def folder_of(root: App) -> Path:
    return Path(root.outdir)
