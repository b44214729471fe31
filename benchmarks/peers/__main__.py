"""`uv run just peers`: runs the comparison, writes docs/peers.md and docs/peers.json, prints the table.

`--only TEXT` runs the scenarios whose name has that text, and writes nothing.
"""

import argparse

from benchmarks.peers.peers import PEERS
from benchmarks.peers.report import as_json, markdown
from benchmarks.peers.run import run
from benchmarks.peers.scenarios import SCENARIOS
from entrypoints.emulator.launcher import PROJECT


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    chosen = [scenario for scenario in SCENARIOS if only in scenario.name]
    results = run(chosen, PEERS)
    page = markdown(results, chosen, PEERS)
    if not only:
        (PROJECT / "docs" / "peers.md").write_text(page)
        (PROJECT / "docs" / "peers.json").write_text(as_json(results))
    print(page)


if __name__ == "__main__":
    main()
