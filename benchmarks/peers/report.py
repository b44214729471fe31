"""The table for people and the numbers for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from benchmarks.peers.counts import Counts
from benchmarks.peers.peers import Peer
from benchmarks.peers.run import Results
from benchmarks.peers.scenarios import RECEIVES, TIMEOUT, VISIBILITY, Scenario

HEAD: Final = """# The same faults, four ways

`uv run just peers` wrote this page and [peers.json](peers.json): every number was counted in that run, nothing is typed by hand.

Each peer handles the same messages from the same kind of queue and meets the same faults: real worker processes (killed with
`kill -9`, suspended with SIGSTOP), the project's emulator for SQS and DynamoDB, and a proxy before DynamoDB that cuts, throttles or
loses answers. A driver does what Lambda's event source mapping does: receive, invoke, delete what is not reported. Effects are lines in
a file that no peer knows of. After each scenario every healthy job is sent once more.
"""

NOTES: Final = f"""
- **Queue and function**: visibility timeout {VISIBILITY} s, maxReceiveCount {RECEIVES} (onejob's own stack sets 100), function time-out {TIMEOUT} s,
  the same for all. The longest outage (40 s) outlasts the queue's patience ({RECEIVES} x {VISIBILITY} s); with longer visibility timeouts both are longer.
- **Sandboxes that are suspended** may answer after the time-out; all others are killed at it.
- **onejob**: the deployed handler; margin 3 s, grace 0. Its operation asks `attempt.lost()` before the effect, as the README says. The peers
  have nothing to ask.
- **Powertools, as documented**: `@idempotent_function`, `BatchProcessor`, `process_partial_response`, `register_lambda_context`,
  `DynamoDBPersistenceLayer`. The key is the job's id instead of the documentation's `messageId`, which differs when a job is sent twice.
- **Powertools, all checks on**: with `payload_validation_jmespath`, `raise_on_no_idempotency_key` and `raise_on_entire_batch_failure=False` as well.
- **idemkit**: `IdempotentConsumer` over `DynamoBackend`, its lease derived from the visibility timeout by its own default, with `validation_fingerprint`,
  `cache_result`, and `on_exhausted` that sends to the dead-letter queue at {RECEIVES} receives. It has no Lambda or batch entrypoint: a loop over the
  records reports what it answers with RETRY, or raises for, as a failed item. The key is the job's id; its SQS helper takes SQS's message id.
- **no idempotency**: the control; it shows what the faults do by themselves, and that doubles are counted. It has no store to lose.
"""


def faults(counts: Counts | None) -> str:
    """A cell of the table."""
    if counts is None:
        return "n/a"
    text = " / ".join(str(number) for number in counts.faults)
    left = f", {counts.still_queued} still queued" if counts.still_queued else ""
    return f"**{text}**{left}" if any(counts.faults) or left else text


def markdown(results: Results, scenarios: Sequence[Scenario], peers: Sequence[Peer]) -> str:
    """The whole page."""
    names = [peer.name for peer in peers]

    def row(title: str, cells: Iterable[object]) -> str:
        return f"| {title} | " + " | ".join(str(cell) for cell in cells) + " |"

    def of(scenario: Scenario) -> list[Counts | None]:
        return [results.counts.get((scenario.name, name)) for name in names]

    def total(name: str) -> str:
        counted = [results.counts[key].faults for key in results.counts if key[1] == name]
        return " / ".join(str(sum(column)) for column in zip(*counted, strict=True))

    rule = "|---|" + "---|" * len(names)
    lines = [
        HEAD,
        "**Double effects / lost jobs / wrong dead letters**; bold where one is not 0. (w): the fault lies in the window that cannot be",
        "closed without writing effect and record in one transaction.",
        "",
        row("scenario", names),
        rule,
        *(
            row(scenario.name + (" (w)" if scenario.window else ""), map(faults, of(scenario)))
            for scenario in scenarios
        ),
        row("**together**", map(total, names)),
        "",
        "Beside that, in the scenarios where it is in question:",
        "",
        row("", names),
        rule,
        *(
            row(f"{title}: {scenario.name}", [getattr(counts, name) if counts else "n/a" for counts in of(scenario)])
            for scenario in scenarios
            for title, name in _beside(scenario)
        ),
        NOTES,
        f"Took {results.seconds:.0f} s. Versions:",
        "",
        *(f"- {name}: {', '.join(f'{k} {v}' for k, v in results.versions[name].items())}" for name in names),
        "",
    ]
    return "\n".join(lines)


def _beside(scenario: Scenario) -> Iterable[tuple[str, str]]:
    if any("answer" in job for job in scenario.healthy):
        yield "replays that answer otherwise", "other_answers"
    if scenario.bad:
        yield "bad jobs without a dead letter", "not_buried"
        yield "receives used", "receives"


def as_json(results: Results) -> str:
    """The same, and every other number that was counted."""
    report: dict[str, Any] = {
        "seconds": round(results.seconds),
        "versions": results.versions,
        "counts": [
            {"scenario": scenario, "peer": peer} | asdict(counts)
            for (scenario, peer), counts in sorted(results.counts.items())
        ],
    }
    return json.dumps(report, indent=1) + "\n"
