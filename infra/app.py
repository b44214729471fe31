"""The CDK app: `cdk deploy` as docs/deploy.md has it, with `-c name=value` for what `infra/context.py` reads.

Every synth is checked by cdk-nag: a finding that nobody justified in `infra/nag.py` stops it.
"""

import os
import sys

from aws_cdk import App, CliCredentialsStackSynthesizer, Environment

from infra.bundle import BundleError, build
from infra.context import deployment
from infra.nag import check
from infra.stack import LambdaIdempotencyStack
from infra.worker_props import WorkerPropsError


def main() -> None:
    """Synthesise into the folder that the CLI names."""
    app = App(analytics_reporting=False)
    told = deployment(app.node.get_all_context())
    bundle = build(told.props.architecture)
    print(bundle.size(), file=sys.stderr)  # noqa: T201
    stack = LambdaIdempotencyStack(
        app,
        props=told.props,
        bundle=bundle,
        key_arn=told.key_arn,
        stack_name=told.stack_name,
        http=told.http,
        clean_up_hours=told.clean_up_hours,
        synthesizer=CliCredentialsStackSynthesizer() if told.own_credentials else None,
        env=Environment(account=os.environ.get("CDK_DEFAULT_ACCOUNT"), region=os.environ.get("CDK_DEFAULT_REGION")),
    )
    check(app, stack)
    app.synth()


if __name__ == "__main__":
    try:
        main()
    except (WorkerPropsError, BundleError) as error:
        sys.exit(f"onejob: {error}")
