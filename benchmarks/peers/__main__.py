"""`uv run just peers`: runs the comparison, writes docs/peers.md and docs/peers.json, prints the table.

`--only TEXT` runs the scenarios whose name has that text, and writes nothing. Exit status 1: the machine was too busy.
"""

import argparse
import sys

from benchmarks.peers.peers import PEERS
from benchmarks.peers.report import Report
from benchmarks.peers.run import run
from benchmarks.peers.scenarios import SCENARIOS
from entrypoints.emulator.launcher import PROJECT


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    report = Report(run(chosen, PEERS), chosen, PEERS)
    if not only:
        (PROJECT / "docs" / "peers.md").write_text(report.page())
        (PROJECT / "docs" / "peers.json").write_text(report.json())
    print(report.table())
    if timeouts := report.unplanned_timeouts():
        sys.exit(f"the machine was too busy, run it again: time-outs of {', '.join(timeouts)}")


if __name__ == "__main__":
    main()
