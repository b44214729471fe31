"""The command: every measure, a table with goals and verdicts, a JSON file and a plot.

uv run just bench            # 7 pairs a measure
uv run just bench --quick    # the same with less of everything
"""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from sqlite3 import sqlite_version
from typing import Any, Final

from benchmarks.growth import growth
from benchmarks.handling import cpu, wall
from benchmarks.in_process import in_process
from benchmarks.pairs import Section, Spread
from benchmarks.queues import queues
from benchmarks.spending import spending
from benchmarks.starting import starting

RESULTS: Final = Path(__file__).parent / "results"
PACKAGES: Final = (
    *("aws-lambda-powertools", "boto3", "botocore", "urllib3", "dependency-injector", "awslambdaric"),
    *("huey", "persist-queue"),
)
PAIRS: Final = 7


def measures(*, quick: bool, jobs: int) -> Mapping[str, Callable[[], Section]]:
    """By name, in the order in which they are taken."""
    return {
        "wall": lambda: wall(PAIRS),
        "cpu": lambda: cpu(PAIRS, 100 if quick else 400),
        "start": lambda: starting(PAIRS),
        "spending": spending,
        "in-process": lambda: in_process(PAIRS, 1_000 if quick else 5_000),
        "queues": lambda: queues(PAIRS, 200, jobs) if quick else queues(PAIRS, 2_000, jobs),
        "growth": lambda: growth(3 if quick else PAIRS, 100 if quick else 10_000),
    }


def main() -> None:
    """Measure, print, write."""
    known = measures(quick=False, jobs=0)
    parser = argparse.ArgumentParser(prog="just bench", description="onejob beside bare Powertools and queues.")
    parser.add_argument("--quick", action="store_true", help="less of everything; for a look, not for the record")
    parser.add_argument(
        "--only", nargs="+", choices=known, default=list(known), metavar="MEASURE", help=", ".join(known)
    )
    parser.add_argument("--jobs", type=int, help="of the one long run of queues (100,000; quick: 2,000)")
    options = parser.parse_args()
    chosen = measures(quick=options.quick, jobs=options.jobs or (2_000 if options.quick else 100_000))
    began = datetime.now(UTC)
    sections = []
    for name in options.only:
        section = chosen[name]()
        print_section(section)
        sections.append(section)
    RESULTS.mkdir(exist_ok=True)
    stem = f"{began:%Y-%m-%d}{'-quick' if options.quick else ''}"
    if len(options.only) < len(known):
        stem = f"{stem}-{'-'.join(options.only)}"
    report = {
        "began": began.isoformat(timespec="seconds"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": options.quick,
        "machine": machine(),
        "versions": versions(),
        "sections": [
            {
                "name": section.name,
                "comparisons": [comparison.to_json() for comparison in section.comparisons],
                "counted": section.counted,
            }
            for section in sections
        ],
    }
    (RESULTS / f"{stem}.json").write_text(json.dumps(report, indent=1) + "\n")
    plot(sections, RESULTS / f"{stem}.svg", stem)
    print(f"\n{RESULTS / stem}.json, .svg")


def print_section(section: Section) -> None:
    """Medians of both sides, the ratio with its quartiles, goal and verdict."""
    print(f"\n{section.name}")
    for comparison in section.comparisons:
        ratio, goal = comparison.ratio, "" if comparison.goal is None else f"<= {comparison.goal}"
        verdict = {True: "met", False: "MISSED", None: ""}[comparison.met]
        print(
            f"  {comparison.name:38} {Spread.of(comparison.ours).median:9.3f} : "
            f"{Spread.of(comparison.theirs).median:9.3f} {comparison.unit[:12]:12} {comparison.against:17} "
            f"{ratio.median:6.3f} [{ratio.lower_quartile:.3f} {ratio.upper_quartile:.3f}] n={ratio.number} "
            f"{goal:8} {verdict}"
        )
    sys.stdout.flush()


def plot(sections: list[Section], path: Path, title: str) -> None:
    """Each ratio as its median between quartiles, with its goal, in one picture on a logarithmic scale."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "onejob"
    from matplotlib import pyplot

    shown = [comparison for section in sections for comparison in section.comparisons]
    figure, axes = pyplot.subplots(figsize=(9, 1.2 + 0.24 * len(shown)), layout="constrained")
    for row, comparison in enumerate(shown):
        ratio = comparison.ratio
        colour = {True: "tab:green", False: "tab:red", None: "tab:blue"}[comparison.met]
        spread = [[ratio.median - ratio.lower_quartile], [ratio.upper_quartile - ratio.median]]
        axes.errorbar(ratio.median, row, xerr=spread, fmt="o", color=colour, markersize=4)
        if comparison.goal is not None:
            axes.plot(comparison.goal, row, "|", color="black", markersize=11)
    axes.set_yticks(range(len(shown)), [f"{shown_.name} : {shown_.against}" for shown_ in shown], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=0.6)
    axes.set_xlabel("onejob / the other (median and quartiles; less is better); | the goal")
    axes.set_title(title)
    figure.savefig(path, metadata={"Date": None})


def machine() -> dict[str, Any]:
    """Where this ran."""
    processor = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "load_average": os.getloadavg(),
    }


def versions() -> dict[str, str]:
    """Of everything that was measured."""
    return {
        "python": platform.python_version(),
        "sqlite": sqlite_version,
        "onejob": version("onejob"),
        **{name: version(name) for name in PACKAGES},
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    main()
