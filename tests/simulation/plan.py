"""What a seed means: jobs, messages, workers, faults. Everything that chance decides beside the order of steps."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random
from typing import Any, Final, Literal

type Behaviour = Literal[
    "ok", "flaky", "refuses", "hangs_once", "slow", "brink", "exits_once", "interrupted_once", "deadly"
]
type Identity = tuple[str | None, str]

MARGIN: Final = 5
MAX_ATTEMPTS: Final = 5
CALM_SKEW: Final = 3
FAULTS_UNTIL: Final = 2_000
"""Afterwards nothing fails any more, and everything must come to an end."""
LONG_RETENTION: Final = 1_000_000
STALE_FOR: Final = 30
"""So old a copy may a lookup find."""
MAX_ANSWER_BYTES: Final = 200
PAYLOADS: Final = ({"payload": 1}, {"payload": 2})
"""Of all jobs; the second is the other one."""
SHARES: Final = 12
MORE: Final = (3, 6)
"""Of so many seeds these have more in them; one of them is hostile."""
KILLERS: Final = (24, 9)
"""In one of so many a job kills its worker while others run beside it. It is hostile."""

RUNNER_LEASE: Final = timedelta(seconds=12)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job, and how its operation behaves: `failures` attempts fail first; it works `before` and `after` its
    effect (`longer`, where its lease is renewed), and a `careful` one asks right before it whether its lease is lost.
    A `big` one's first answer is larger than the store takes. "refuses" takes the other payload only, "brink" ends
    within the margin before its invocation does, "deadly" kills its worker each time.
    """

    job_id: str
    tenant: str | None
    behaviour: Behaviour
    failures: int
    before: int
    after: int
    longer: int
    careful: bool
    big: bool

    @property
    def identity(self) -> Identity:
        return self.tenant, self.job_id


@dataclass(frozen=True, slots=True)
class PlannedMessage:
    """`other_payload` is a second payload under the same id; `broken` is a body that is no job; `test_event` is S3's.
    `first_sent` is when a message that was redriven had been sent before; `lost_receives` came to nobody;
    `redrives` is how often it was sent back.
    """

    name: str
    job: PlannedJob
    sent_at: int
    group: str
    other_payload: bool = False
    broken: bool = False
    unknown_operation: bool = False
    test_event: bool = False
    first_sent: int | None = None
    lost_receives: int = 0
    redrives: int = 0

    @property
    def born_at(self) -> int:
        return self.sent_at if self.first_sent is None else self.first_sent

    @property
    def is_job(self) -> bool:
        return not (self.broken or self.test_event)


@dataclass(frozen=True, slots=True)
class Plan:
    """Frozen, so that a failing one can be shrunk by replacing parts of it. Chances are of a thousand."""

    seed: int
    hostile: bool
    fifo: bool
    messages: tuple[PlannedMessage, ...]
    runner_jobs: tuple[PlannedJob, ...]
    timeout: int
    grace: int
    retention: int
    batch_size: int
    invocations: int
    threads: int
    skews: tuple[int, ...]
    throttled: int
    lost: int
    late: int
    crashes: int
    suspensions: int
    late_kills: int
    outages: tuple[tuple[int, int], ...]
    queue_faults: int
    redeliveries: int
    redrives: int
    stale_reads: int
    deletions: bool
    latency: int
    probes: int
    jobs: tuple[PlannedJob, ...] = field(default=())
    pollers: int = 0
    """How many workers poll the queue themselves, each with so many threads as a sandbox has."""

    supervised: bool = False
    """Whether another worker is started in the place of one that polls and died."""

    parsing: int = 0
    """The chance of a process to be killed while it reads a batch."""

    cuts: int = 0
    """The chance of a worker to be cut off for a while, alone."""

    steps: int = 0
    """The chance of a worker's clock to be set, where its leases are renewed."""

    refused: int = 0
    """The chance of a thread to be refused."""

    real_pool: bool = False
    """Whether a sandbox runs its lanes in the real thread pool."""

    strangers: int = 0
    """The chance of an answer of somebody else in the store's place, who did nothing: HTTP 200, and no evidence."""

    commands: int = 0
    """How many operators forget or purge."""

    stock_records: bool = True
    """Whether probes meet records that stock Powertools wrote. SQLite's file has none."""

    def simpler(self) -> list["Plan"]:
        """Smaller plans to try, the boldest first."""
        without_message = [
            replace(self, messages=self.messages[:number] + self.messages[number + 1 :])
            for number in range(len(self.messages))
        ]
        without = [
            replace(self, **{name: nothing}) for name, nothing in _LEAST.items() if getattr(self, name) != nothing
        ]
        return without_message + without


_LEAST: Final[dict[str, Any]] = {
    "runner_jobs": (),
    "outages": (),
    "throttled": 0,
    "lost": 0,
    "late": 0,
    "crashes": 0,
    "suspensions": 0,
    "late_kills": 0,
    "queue_faults": 0,
    "redeliveries": 0,
    "redrives": 0,
    "commands": 0,
    "refused": 0,
    "cuts": 0,
    "steps": 0,
    "pollers": 0,
    "parsing": 0,
    "supervised": False,
    "strangers": 0,
    "stale_reads": 0,
    "deletions": False,
    "probes": 0,
    "latency": 0,
    "skews": (0,),
    "batch_size": 1,
    "invocations": 1,
    "threads": 1,
}


ENDS_A_RUNNER: Final = ("hangs_once", "deadly")


def plan(seed: int) -> Plan:
    """Odd seeds are hostile: workers outlive leases, clocks disagree, outages come in bursts, writes land late."""
    chance = Random(seed)
    hostile, fifo = seed % 2 == 1, chance.random() < 0.3
    jobs = tuple(_job(chance, number, hostile) for number in range(chance.randint(1, 3)))
    messages = tuple(_messages(chance, jobs))
    few = chance.random
    planned = Plan(
        seed=seed,
        hostile=hostile,
        fifo=fifo,
        messages=messages,
        runner_jobs=tuple(job for job in jobs if job.behaviour not in ("hangs_once", "deadly") and few() < 0.3)
        if few() < 0.5
        else (),
        timeout=chance.choice((12, 20, 30)),
        grace=chance.choice((0, 2)) if hostile else 2 * CALM_SKEW + 2,
        retention=chance.choice((10, 20, 60)) if hostile and few() < 0.3 else LONG_RETENTION,
        batch_size=chance.randint(1, 5),
        invocations=chance.randint(1, 3),
        threads=chance.randint(1, 3),
        skews=tuple(chance.randint(-30, 30) if hostile else chance.randint(-CALM_SKEW, CALM_SKEW) for _ in range(4)),
        throttled=chance.choice((0, 30, 150)),
        lost=chance.choice((0, 30, 150)),
        late=chance.choice((0, 30, 150)) if hostile else 0,
        crashes=chance.choice((0, 10, 40)),
        suspensions=chance.choice((0, 20)) if hostile else 0,
        late_kills=chance.choice((0, 300)) if hostile else 0,
        outages=_outages(chance) if few() < 0.3 else (),
        queue_faults=chance.choice((0, 0, 100)),
        redeliveries=chance.choice((0, 0, 600)),
        redrives=chance.choice((0, 0, 500)),
        stale_reads=chance.choice((0, 600)),
        deletions=few() < 0.5,
        latency=chance.choice((0, 1)) if not hostile else chance.choice((0, 1, 2)),
        probes=chance.choice((0, 0, 6)),
        jobs=jobs,
    )
    planned = replace(planned, real_pool=seed % 4 >= 2)
    if seed % KILLERS[0] == KILLERS[1]:
        return _with_killer(planned)
    return _with_more(planned) if seed % SHARES in MORE else planned


def _with_more(planned: Plan) -> Plan:
    """What only a share of the seeds has, so that the others are as many in the same time."""
    chance = Random(planned.seed * 31 + 7)
    return replace(
        planned,
        commands=chance.randint(1, 6),
        redrives=chance.choice((0, 500, 900)),
        refused=chance.choice((0, 100, 400)),
        pollers=chance.choice((0, 1, 1, 2)),
        parsing=chance.choice((0, 50)),
        cuts=chance.choice((0, 300)),
        steps=chance.choice((0, 500)) if planned.hostile else 0,
    )


def _with_killer(planned: Plan) -> Plan:
    """As a job does that takes all memory: those beside it did nothing, and are to lose one attempt at most."""
    chance = Random(planned.seed * 37 + 11)
    jobs = {
        job.identity: replace(
            job,
            behaviour="slow" if number else "deadly",
            before=chance.randint(3, 12) if number else chance.randint(1, 4),
            longer=chance.choice((0, 15)),
        )
        for number, job in enumerate(planned.jobs)
    }
    messages = [
        replace(one, job=jobs[one.job.identity], sent_at=chance.choice((0, 0, one.sent_at))) for one in planned.messages
    ]
    return replace(
        planned,
        jobs=tuple(jobs.values()),
        messages=tuple(messages),
        runner_jobs=(),
        pollers=(pollers := chance.choice((0, 1, 2))),
        supervised=True,
        invocations=1 if pollers else planned.invocations,
        threads=3,
        batch_size=1 if pollers else 5,
        crashes=0,
        suspensions=0,
        strangers=chance.choice((0, 100)),
        redrives=chance.choice((planned.redrives, 900)),
    )


def _outages(chance: Random) -> tuple[tuple[int, int], ...]:
    starts = [chance.randint(0, 300) for _ in range(chance.randint(0, 3))]
    return tuple((start, start + chance.randint(3, 80)) for start in starts)


_BEHAVIOURS: Final[dict[Behaviour, int]] = {
    "ok": 12,
    "flaky": 4,
    "refuses": 3,
    "hangs_once": 2,
    "slow": 4,
    "brink": 2,
    "exits_once": 1,
    "interrupted_once": 1,
    "deadly": 1,
}


def _job(chance: Random, number: int, hostile: bool) -> PlannedJob:
    (behaviour,) = chance.choices(tuple(_BEHAVIOURS), tuple(_BEHAVIOURS.values()))
    before, after = chance.randint(0, 1), 0
    if hostile:
        before, after = chance.randint(0, 6), chance.choice((0, 0, 1, 4))
    if behaviour == "slow":
        before = chance.randint(10, 20) if hostile else chance.randint(2, 4)
    has_tenant = number > 0 and chance.random() < 0.2
    return PlannedJob(
        job_id="job-0" if has_tenant else f"job-{number}",
        tenant=f"tenant-{number}" if has_tenant else None,
        behaviour=behaviour,
        failures=chance.randint(1, 2),
        before=before,
        after=after,
        longer=chance.choice((0, 0, 15, 40)),
        careful=chance.random() < 0.5,
        big=chance.random() < 0.2,
    )


def _messages(chance: Random, jobs: tuple[PlannedJob, ...]) -> list[PlannedMessage]:
    made: list[PlannedMessage] = []
    for job in jobs:
        for _ in range(chance.randint(1, 3)):
            kind = chance.random()
            is_corrected = job.behaviour == "refuses" and kind < 0.4
            made.append(
                PlannedMessage(
                    name=f"m{len(made)}",
                    job=job,
                    sent_at=chance.randint(1, 20) if is_corrected else chance.choice((0, 0, 1, chance.randint(0, 60))),
                    group=f"g{chance.randint(0, 1)}",
                    other_payload=0.64 < kind <= 0.70 or is_corrected,
                    broken=0.70 < kind <= 0.74,
                    test_event=0.74 < kind <= 0.76,
                    unknown_operation=0.76 < kind <= 0.80,
                    lost_receives=int(chance.random() < (0.7 if is_corrected else 0.2)),
                )
            )
    return made
