"""The page for people (page.md with the counts filled in) and the numbers for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.peers.counts import Counts
from benchmarks.peers.peers import Peer
from benchmarks.peers.run import Results
from benchmarks.peers.scenarios import RECEIVES, TIMEOUT, VISIBILITY, Scenario

PAGE = Template(Path(__file__).with_name("page.md").read_text())


@dataclass(frozen=True, slots=True)
class Report:
    """What a run counted, for these scenarios and peers, in their order."""

    results: Results
    scenarios: Sequence[Scenario]
    peers: Sequence[Peer]

    def page(self) -> str:
        """Markdown."""
        versions = [
            f"- {peer.name}: " + ", ".join(f"{name} {text}" for name, text in self.results.versions[peer.name].items())
            for peer in self.peers
        ]
        return PAGE.substitute(
            table=self.table(),
            beside=self._beside(),
            timeouts=", ".join(self.unplanned_timeouts()) or "none",
            visibility=VISIBILITY,
            receives=RECEIVES,
            timeout=TIMEOUT,
            seconds=round(self.results.seconds),
            versions="\n".join(versions),
        )

    def table(self) -> str:
        """A scenario a line; double effects, lost jobs and wrong dead letters in each cell."""
        rows = [
            _row(scenario.name + (" (w)" if scenario.window else ""), map(_faults, self._of(scenario)))
            for scenario in self.scenarios
        ]
        return "\n".join([*self._head("scenario"), *rows, _row("**together**", map(self._together, self.peers))])

    def unplanned_timeouts(self) -> list[str]:
        """Of workers that had nothing to wait for."""
        planned = {scenario.name for scenario in self.scenarios if scenario.may_time_out}
        return [
            f"{peer}: {name} ({counts.timeouts})"
            for (name, peer), counts in sorted(self.results.counts.items())
            if counts.timeouts and name not in planned
        ]

    def json(self) -> str:
        """The same, and every other number that was counted."""
        report: dict[str, Any] = {
            "seconds": round(self.results.seconds),
            "versions": {peer.name: self.results.versions[peer.name] for peer in self.peers},
            "counts": [
                {"scenario": scenario.name, "peer": peer.name} | (asdict(counts) if counts else {"n/a": "has no store"})
                for scenario in self.scenarios
                for peer, counts in zip(self.peers, self._of(scenario), strict=True)
            ],
        }
        return json.dumps(report, indent=1) + "\n"

    def _of(self, scenario: Scenario) -> list[Counts | None]:
        return [self.results.counts.get((scenario.name, peer.name)) for peer in self.peers]

    def _head(self, title: str) -> list[str]:
        return [_row(title, (peer.name for peer in self.peers)), "|---|" + "---|" * len(self.peers)]

    def _together(self, peer: Peer) -> str:
        counted = [counts.faults for (_, name), counts in self.results.counts.items() if name == peer.name]
        return " / ".join(str(sum(column)) for column in zip(*counted, strict=True))

    def _beside(self) -> str:
        rows = [
            _row(
                f"{scenario.name}: {title}",
                [getattr(counts, name) if counts else "n/a" for counts in self._of(scenario)],
            )
            for scenario in self.scenarios
            for title, name in _questions(scenario)
        ]
        return "\n".join([*self._head(""), *rows])


def _questions(scenario: Scenario) -> Iterable[tuple[str, str]]:
    if any("answer" in job for job in scenario.healthy):
        yield "replays that answer otherwise", "other_answers"
    if scenario.bad:
        yield "jobs without their dead letter", "not_buried"
        yield "receives used", "receives"


def _row(title: str, cells: Iterable[object]) -> str:
    return f"| {title} | " + " | ".join(str(cell) for cell in cells) + " |"


def _faults(counts: Counts | None) -> str:
    if counts is None:
        return "n/a"
    text = " / ".join(str(number) for number in counts.faults)
    left = f", {counts.still_queued} still queued" if counts.still_queued else ""
    return f"**{text}**{left}" if any(counts.faults) else text + left
