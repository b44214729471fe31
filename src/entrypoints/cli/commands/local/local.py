"""The deployed stack on this machine: what `onejob local` does. Its commands stand in local_app.py."""

import fcntl
import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from entrypoints.emulator.background import BackgroundEmulator
from entrypoints.emulator.deployment import DeployedWorker, Deployment
from entrypoints.emulator.launcher import PROJECT, Emulator, only_environment
from entrypoints.private_files import open_private, private_folder, write_private

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER: Final = PROJECT / ".onejob" / "local"
QUICK: Final = {"timeout": "10", "margin": "3", "grace": "0"}
"""Unless the user tells otherwise: what fails is back in seconds, what was killed in a minute."""
LOOK_EVERY_SECONDS: Final = 0.3


class LocalError(Exception):
    """What was asked for cannot be had; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Local:
    """The emulator of this project and what is deployed on it. Every method raises `EmulatorError`."""

    folder: Path = FOLDER

    @property
    def background(self) -> BackgroundEmulator:
        return BackgroundEmulator(self.folder)

    def up(self, context: dict[str, str], step: "Callable[[str], None]") -> tuple[Emulator, DeployedWorker]:
        """Deploy, on an emulator that is started if none runs. One that was started for nothing is stopped again."""
        with self._alone():
            was_running = self.background.running() is not None
            try:
                aws = self.background.start()
                deployment = Deployment(aws, self.folder)
                if self._bootstrapped() != aws.port:
                    step(f"AWS emulator on 127.0.0.1:{aws.port}; bootstrapping CDK")
                    deployment.bootstrap()
                    write_private(self._bootstrap, str(aws.port))
                step("deploying the stack (cdk deploy)")
                worker = deployment.deploy(QUICK | context)
                write_private(self._outputs, json.dumps(asdict(worker)))
            except BaseException:
                if not was_running:
                    self.background.stop()
                raise
            return aws, worker

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raises `LocalError` while another `up` is at work."""
        private_folder(self.folder)
        with open_private(self.folder / "up.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LocalError("another `onejob local up` is at work here") from None
            yield

    def _bootstrapped(self) -> int | None:
        """The port of the emulator that was bootstrapped last: it need not be the one that runs."""
        with suppress(FileNotFoundError, ValueError):
            return int(self._bootstrap.read_text())
        return None

    @property
    def _bootstrap(self) -> Path:
        return self.folder / "bootstrapped"

    def send(self, bodies: Iterable[str], group: str | None = None) -> Iterator[str]:
        """Message ids, each as soon as its message is sent. Raises `LocalError`."""
        import boto3
        from botocore.exceptions import ClientError

        aws, worker = self._deployed()
        with only_environment(aws.environment()):
            sqs = boto3.client("sqs")
        for number, body in enumerate(bodies, 1):
            fifo: dict[str, Any] = {}
            if worker.queue_url.endswith(".fifo"):
                fifo = {"MessageGroupId": group or "local", "MessageDeduplicationId": f"{time.time_ns()}-{number}"}
            try:
                yield sqs.send_message(QueueUrl=worker.queue_url, MessageBody=body, **fifo)["MessageId"]
            except ClientError as error:
                raise LocalError(f"message {number} was refused: {error}") from error

    def log_lines(self, *, follow: bool) -> Iterator[str]:
        """What the function has logged, oldest first; with `follow` also what it logs from now on."""
        import boto3

        aws, worker = self._deployed()
        with only_environment(aws.environment()):
            pages = boto3.client("logs").get_paginator("filter_log_events")
        seen: set[tuple[str, int, str]] = set()
        since = 0
        while True:
            found = pages.paginate(logGroupName=worker.log_group, startTime=since)
            events = [event for page in found for event in page["events"]]
            for event in sorted(events, key=lambda event: event["timestamp"]):
                key = (event["logStreamName"], event["timestamp"], event["message"])
                if key not in seen:
                    yield event["message"].rstrip()
                seen.add(key)
                since = max(since, event["timestamp"] - 1000)
            if not follow:
                return
            time.sleep(LOOK_EVERY_SECONDS)
            self._deployed()

    def down(self) -> bool:
        """Whether there was something."""
        self._outputs.unlink(missing_ok=True)
        self._bootstrap.unlink(missing_ok=True)
        return self.background.stop()

    def _deployed(self) -> tuple[Emulator, DeployedWorker]:
        """What `up` left. Raises `LocalError`."""
        aws = self.background.running()
        if aws is None or not self._outputs.exists():
            raise LocalError("nothing is deployed here: run `onejob local up` first")
        return aws, DeployedWorker(**json.loads(self._outputs.read_text()))

    @property
    def _outputs(self) -> Path:
        return self.folder / "worker.json"
