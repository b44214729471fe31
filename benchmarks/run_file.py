"""`onejob run` of small jobs: rate, memory and commits, beside what the disk itself can do. Prints JSON.

    uv run python benchmarks/run_file.py [jobs]      (default 100,000; about a minute)

Everything is measured in one go on one disk: the floor is plain SQLite, two `synchronous=FULL` commits a job, one after
another, which is what a job costs without sharing commits.
"""

import json
import platform
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

OPERATION = "def nothing(job, attempt):\n    return None\n"
FLOOR_JOBS = 500


def floor(folder: Path) -> float:
    """Jobs a second at two commits each, one after another."""
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, v)")
    began = time.perf_counter()
    for number in range(FLOOR_JOBS):
        connection.execute("INSERT INTO t VALUES (?, 0)", (number,))
        connection.execute("UPDATE t SET v = 1 WHERE k = ?", (number,))
    connection.close()
    return FLOOR_JOBS / (time.perf_counter() - began)


def run(folder: Path, *options: str) -> dict[str, Any]:
    """One run in a process of its own: its summary, rate and largest memory."""
    command = [sys.executable, "-c", "from entrypoints.cli.app import main; main()", "run", "jobs.jsonl", "--json"]
    done = subprocess.run(
        [*command, "--operation", "mine:nothing", *options], cwd=folder, capture_output=True, text=True, check=True
    )
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    jobs = summary["executed"] + summary["skipped"]
    return {
        "executed": summary["executed"],
        "skipped": summary["skipped"],
        "per_second": round(jobs / summary["seconds"]),
        "seconds": summary["seconds"],
    }


def peak_megabytes() -> float:
    """The largest memory of any run so far."""
    return round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024, 1)


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name)
        (folder / "mine.py").write_text(OPERATION)
        jobs = folder / "jobs.jsonl"
        report: dict[str, Any] = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
        report["floor_per_second"] = round(floor(folder))

        jobs.write_text("".join(f'{{"job_id":"s{number}","n":{number}}}\n' for number in range(count // 50)))
        for concurrency in (1, 10, 32):
            options = ["--concurrency", str(concurrency), "--db", f"{concurrency}.sqlite"]
            report[f"concurrency_{concurrency}"] = run(folder, *options)
        report["peak_mb_of_2_percent"] = peak_megabytes()

        jobs.write_text("".join(f'{{"job_id":"j{number}","n":{number}}}\n' for number in range(count)))
        report["first"] = run(folder)
        report["again"] = run(folder)
        report["peak_mb_of_all"] = peak_megabytes()
    json.dump(report, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
