"""The short form of `uv run just peers`, so that the comparison stays alive; and that it would see a broken worker."""

import json
import re
import sys
import tomllib
from pathlib import Path

from benchmarks.peers.peers import CONTROL, ONEJOB, PEERS, WORKERS, Peer
from benchmarks.peers.report import Report
from benchmarks.peers.run import run
from benchmarks.peers.scenarios import SCENARIOS, Scenario, jobs

ROOT = Path(__file__).parents[2]
BROKEN = Peer(name="broken", module="tests.peers.broken_worker", python=lambda: sys.executable, uses_store=False)
SHORT = [scenario for scenario in SCENARIOS if scenario.short]


def quiet(line: str) -> None:
    pass


def test_short_form() -> None:
    results = run(SHORT, PEERS, quiet)
    assert results.counts.keys() == {(scenario.name, peer.name) for scenario in SHORT for peer in PEERS}
    for scenario in SHORT:
        assert results.counts[scenario.name, ONEJOB.name].faults == (0, 0, 0), scenario.name
        assert results.counts[scenario.name, CONTROL.name].faults == (2, 0, 0), "by the fault, and by the last sending"
    assert not any(counts.still_queued for counts in results.counts.values())
    page = Report(results, SHORT, PEERS).page()
    assert all(f"| {scenario.name}" in page for scenario in SHORT)
    assert all(results.versions[peer.name]["python"] in page for peer in PEERS)


def test_a_broken_worker_is_seen_to_lose_and_to_double() -> None:
    twice = Scenario(name="two jobs", rounds=(jobs(2),))
    counts = run([twice], [BROKEN], quiet).counts["two jobs", "broken"]
    assert counts.faults == (1, 1, 0)


def test_the_page_has_every_scenario_and_every_peer() -> None:
    counted = json.loads((ROOT / "docs" / "peers.json").read_text())["counts"]
    assert {(one["scenario"], one["peer"]) for one in counted} == {
        (scenario.name, peer.name) for scenario in SCENARIOS for peer in PEERS
    }


def test_powertools_is_compared_in_the_versions_that_onejob_uses() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    pinned = dict(re.findall(r'"([\w-]+)==([\d.]+)"', (WORKERS / "powertools_worker.py").read_text()))
    assert pinned.keys() == {"aws-lambda-powertools", "boto3"}
    for name, version in pinned.items():
        assert version in {package["version"] for package in packages if package["name"] == name}, name
