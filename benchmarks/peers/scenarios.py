"""The list of faults. Every peer goes through all of them; what is expected is the same for all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.peers.counts import Job
from benchmarks.peers.store_proxy import Mode
from benchmarks.peers.workers.operation import Script, Step

TIMEOUT: Final = 5
"""Lambda's, in seconds."""
VISIBILITY: Final = 6
"""The queue's visibility timeout in seconds; AWS refuses one below the function's time-out."""
RECEIVES: Final = 5
"""The queue's maxReceiveCount: the least that AWS recommends."""

type Bodies = tuple[Job, ...]

ONE: Final = {"job_id": "job", "amount": 1}
KILL_BEFORE: Final = {"before": [["kill"]]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """`rounds` are sent one after another, each when all before is settled; then each healthy job is sent once more.
    `scripts` are for the first invocations, `always` for those after.
    """

    name: str
    rounds: tuple[Bodies, ...] = ((ONE,),)
    bad: Bodies = ()
    """Those of them that belong into the dead-letter queue."""
    scripts: tuple[Script, ...] = ()
    always: Script = field(default_factory=dict)
    store: tuple[Mode, float] | None = None
    """A fault of the store from the start."""
    workers: int = 1
    batch: int = 10
    environment: Mapping[str, str] = field(default_factory=dict)
    window: bool = False
    """The effect stands in the window that nobody can close without writing effect and record in one transaction."""
    short: bool = False
    """Belongs to the short form that CI runs."""

    @property
    def is_about_the_store(self) -> bool:
        return self.store is not None or any(step[0] == "store" for step in self._steps())

    @property
    def may_time_out(self) -> bool:
        """By what it does to a worker, on any machine."""
        return self.is_about_the_store or any(step[0] == "wait" and step[1] > 1 for step in self._steps())

    def _steps(self) -> Iterable[Step]:
        scripts = (*self.scripts, self.always)
        return (step for script in scripts for point in script.values() for step in point)

    @property
    def healthy(self) -> list[Job]:
        sent = {str(job): job for bodies in self.rounds for job in bodies}
        return [job for job in sent.values() if job not in self.bad]


def jobs(count: int, **more: Any) -> Bodies:
    return tuple({"job_id": f"job-{number}", **more} for number in range(count))


NO_ID: Final = {"amount": 1}
OTHER: Final = {"job_id": "job", "amount": 2}
POISON: Final = {"job_id": "poison", "poison": True}
FALSY_ANSWERS: Final[tuple[object, ...]] = (0, [], "", False, None)
FALSY: Final[Bodies] = tuple({"job_id": f"{answer!r}", "answer": answer} for answer in FALSY_ANSWERS)

SCENARIOS: Final = (
    Scenario(name="sent twice, one after the other", rounds=((ONE,), (ONE,)), short=True),
    Scenario(
        name="sent twice, two workers side by side",
        rounds=((ONE, ONE),),
        always={"before": [["wait", 1]]},
        workers=2,
        batch=1,
    ),
    Scenario(name="sent twice, in one batch", rounds=((ONE, ONE),)),
    Scenario(name="killed before the effect", scripts=(KILL_BEFORE,)),
    Scenario(name="killed between effect and record", scripts=({"after": [["kill"]]},), window=True),
    Scenario(name="killed after the record, before the delete", scripts=({"end": [["kill"]]},), short=True),
    Scenario(name="ended by Lambda's time-out before the effect", scripts=({"before": [["wait", 60]]},)),
    Scenario(
        name="suspended after the effect; finishes after another took over",
        scripts=({"after": [["stop"]]},),
        workers=2,
        window=True,
    ),
    Scenario(
        name="suspended before the effect; fails after another took over",
        scripts=({"before": [["stop"], ["raise"]]},),
        workers=2,
    ),
    Scenario(
        name="suspended before the effect; goes on after another took over",
        scripts=({"before": [["stop"]]},),
        workers=2,
    ),
    Scenario(name="answers 0, [], '', false, null replayed", rounds=(FALSY, FALSY)),
    Scenario(name="no job_id, sent twice", rounds=((NO_ID,), (NO_ID,)), bad=(NO_ID,)),
    Scenario(name="another payload under the same id", rounds=((ONE,), (OTHER,)), bad=(OTHER,)),
    Scenario(name="fails twice, then works", scripts=({"before": [["raise"]]},) * 2),
    Scenario(name="permanent error", rounds=((POISON,),), bad=(POISON,)),
    Scenario(name="permanent error beside two healthy jobs", rounds=((*jobs(2), POISON),), bad=(POISON,)),
    Scenario(name="whole batch of three fails once", rounds=(jobs(3),), scripts=({"before": [["raise"]]},)),
    Scenario(
        name="six jobs of 1.4 s, one at a time, time-out 5 s",
        rounds=(jobs(6),),
        always={"after": [["wait", 1.4]]},
        environment={"JOB_CONCURRENCY": "1"},
    ),
    Scenario(name="store away for 3 s at the claim", store=("cut", 3)),
    Scenario(name="store away for 50 s at the claim", store=("cut", 50)),
    Scenario(name="store throttles for 3 s at the claim", store=("throttle", 3)),
    Scenario(name="claim landed, its answer lost", store=("lose", 1)),
    Scenario(name="store away for 1 s at the completion", scripts=({"after": [["store", "cut", 1]]},)),
    Scenario(name="store away for 8 s at the completion", scripts=({"after": [["store", "cut", 8]]},), window=True),
    Scenario(name="completion landed, its answer lost", scripts=({"after": [["store", "lose", 1]]},)),
)
