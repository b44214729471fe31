"""How long a function takes to start: what is imported and built, and the artifact under Lambda's runtime client.

Both sides have the bundle's own packages and the runtime's, nothing else (`-S`): onejob's as it is deployed; the bare
handler's is the same less onejob and dependency-injector, compiled the same way.
"""

import compileall
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

from benchmarks import sides
from benchmarks.pairs import Comparison, Section, in_turn
from benchmarks.stand_in import stand_in
from entrypoints.emulator.deployment import HOST_ARCHITECTURE
from infra.bundle import Bundle, build
from infra.worker_props import Architecture
from tests.support.runtime_api import Answer, function

HANDLERS: Final = {"onejob": "entrypoints.sqs_worker.handler", "bare": "benchmarks.bare.handler"}
HERE: Final = Path(__file__).parent
OURS: Final = ("domain", "adapters", "entrypoints", "dependency_injector*")
GOAL: Final = 1.05
COLD: Final = (
    "cold start, until it asks for an event",
    "cold start and its first event",
    "cold start and its first event, cpu",
)
"""Wall time, and the CPU time of the whole process, on which other processes weigh less."""

_TIMED = """
import time
wall, cpu = time.perf_counter(), time.process_time()
from {module} import {name}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
import json
print(json.dumps({{"wall": wall * 1000, "cpu": cpu * 1000}}))
"""


def starting(pairs: int) -> Section:
    """In fresh processes."""
    ours = build(Architecture(HOST_ARCHITECTURE))
    with tempfile.TemporaryDirectory() as name, stand_in(0) as url:
        scratch = Path(name)
        bundles = {"onejob": ours, "bare": _bare_bundle(ours, scratch / "bare")}
        environment = sides.environment(url)
        with function(ours, _made(scratch / "layout"), environment) as (api, _):
            api.until_ready()  # made for its folder of the runtime's packages
        runtime = scratch / "layout" / "runtime"
        comparisons: list[Comparison] = []
        for unit in ("wall", "cpu"):
            onejob, bare = in_turn(
                pairs,
                *(partial(_built, bundles[side], HANDLERS[side], runtime, environment, unit) for side in HANDLERS),
            )
            comparisons.append(_compared(f"import and first build, {unit}", onejob, bare))
        cold = {side: _cold(bundles[side], HANDLERS[side], scratch, environment) for side in HANDLERS}
        rounds = [[cold[side]() for side in HANDLERS] for _ in range(pairs)]
        for number, what in enumerate(COLD):
            times = [[measured[number] for measured in side] for side in zip(*rounds, strict=True)]
            comparisons.append(_compared(what, *times))
        sizes = {side: _kilobytes(bundle) for side, bundle in bundles.items()}
    return Section("start", comparisons, {"zipped_kb": sizes})


def _compared(name: str, onejob: list[float], bare: list[float]) -> Comparison:
    return Comparison(name=name, unit="ms", ours=onejob, theirs=bare, against="bare Powertools", goal=GOAL)


def _bare_bundle(ours: Bundle, folder: Path) -> Bundle:
    shutil.copytree(ours.folder, folder, ignore=shutil.ignore_patterns(*OURS))
    made = _made(folder / "benchmarks")
    for name in ("bare.py", "work.py"):
        shutil.copyfile(HERE / name, made / name)
    compiled = compileall.compile_dir(
        made, quiet=1, stripdir=str(folder), prependdir="/var/task",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )  # fmt: skip
    assert compiled
    return Bundle(folder, ours.architecture)


def _built(bundle: Bundle, handler: str, runtime: Path, environment: Mapping[str, str], unit: str) -> float:
    module, _, name = handler.rpartition(".")
    done = subprocess.run(
        [sys.executable, "-S", "-c", _TIMED.format(module=module, name=name)],
        env={**environment, "PYTHONPATH": f"{bundle.folder}:{runtime}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    measured: dict[str, float] = json.loads(done.stdout)
    return measured[unit]


def _cold(
    bundle: Bundle, handler: str, scratch: Path, environment: Mapping[str, str]
) -> Callable[[], tuple[float, ...]]:
    def measure() -> tuple[float, ...]:
        (event,) = sides.events(sides.messages(1), 1)
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            used = _cpu_of_children()
            with function(bundle, Path(folder), environment, handler=handler) as (api, _):
                began = time.monotonic()
                ready = api.until_ready()
                answered = api.invoke(event)
                ended = time.monotonic()
            assert answered == Answer("response", {"batchItemFailures": []}), answered
            used = _cpu_of_children() - used
        return (ready - began) * 1000, (ended - began) * 1000, used * 1000

    return measure


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _kilobytes(bundle: Bundle) -> int:
    return round(len(bundle.zipped()) / 1024)
