"""All trials, side by side, on one emulator: each waits most of the time."""

import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config

from benchmarks.peers.counts import Counts
from benchmarks.peers.peers import Peer
from benchmarks.peers.scenarios import Scenario
from benchmarks.peers.trial import Trial
from entrypoints.emulator.launcher import PROJECT, emulator, only_environment

SIDE_BY_SIDE: Final = 16


@dataclass(slots=True)
class Results:
    """Counts by (scenario, peer), versions by peer."""

    counts: dict[tuple[str, str], Counts] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    seconds: float = 0


def run(scenarios: Sequence[Scenario], peers: Sequence[Peer], tell: Any = print) -> Results:
    """Every scenario with every peer. A peer without a store is left out where the store is what fails."""
    results, began = Results(), time.monotonic()
    commands = {peer.name: peer.command() for peer in peers}
    with tempfile.TemporaryDirectory(prefix="onejob-peers-") as folder, emulator() as aws:
        environment = aws.environment() | {"PATH": os.defpath, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'src'}"}
        with only_environment(aws.environment()):
            config = Config(max_pool_connections=4 * SIDE_BY_SIDE)
            sqs, dynamodb = boto3.client("sqs", config=config), boto3.client("dynamodb", config=config)
        trials = [
            Trial(
                number=number,
                scenario=scenario,
                peer=peer,
                sqs=sqs,
                dynamodb=dynamodb,
                port=aws.port,
                folder=Path(folder),
                command=commands[peer.name],
                environment=environment,
            )
            for number, (scenario, peer) in enumerate(_pairs(scenarios, peers))
        ]
        with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            running = {pool.submit(trial.run): trial for trial in trials}
            for done in as_completed(running):
                trial, (counts, versions) = running[done], done.result()
                results.counts[trial.scenario.name, trial.peer.name] = counts
                results.versions[trial.peer.name] = versions
                told = f"{trial.peer.name}: {trial.scenario.name}: {counts.faults} in {counts.seconds} s"
                tell(f"{len(results.counts)}/{len(trials)} {told}")
    results.seconds = time.monotonic() - began
    return results


def _pairs(scenarios: Sequence[Scenario], peers: Sequence[Peer]) -> Iterable[tuple[Scenario, Peer]]:
    """Outages and what must be buried first: their waiting passes beside the rest."""
    for scenario in sorted(scenarios, key=lambda one: (not one.is_about_the_store, not one.bad)):
        for peer in peers:
            if peer.uses_store or not scenario.is_about_the_store:
                yield scenario, peer
