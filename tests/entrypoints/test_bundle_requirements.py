"""What the Lambda bundle is made of: the lock file's run-time dependencies, nothing of tests or command line."""

import os
import re
import shutil
import subprocess

from entrypoints.emulator.launcher import PROJECT


def test_the_bundle_has_run_time_dependencies_only() -> None:
    uv = shutil.which(os.environ.get("UV") or "uv") or "uv"
    exported = subprocess.run(
        [uv, "export", "--frozen", "--no-dev", "--no-emit-project", "--no-hashes", "--quiet"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = set(re.findall(r"^([a-z0-9._-]+)==", exported, re.M))
    assert {"aws-lambda-powertools", "boto3", "dependency-injector"} <= names
    assert not names & {"typer", "rich", "click", "pytest", "moto", "ministack", "mypy", "hypothesis", "aws-xray-sdk"}
    assert len(names) <= 12, names
