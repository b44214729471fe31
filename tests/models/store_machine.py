"""A Hypothesis state machine: a store and the model of it are asked the same, and must answer and remember the same."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, initialize, multiple, rule

from domain.answer import Answer
from domain.errors import ForeignRecordError, LeaseHeldError, LeaseLostError, RecordChangedError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.ports.store import IdempotencyStore
from domain.record import Acquired, Claim, ClaimAnswer, Record, Status
from tests.contract.harness import RETENTION, Harness
from tests.models.reference import ReferenceStore
from tests.support.jobs import job

INSTANT = timedelta(milliseconds=1)
"""The finest time that every store keeps."""

KEYS = 2
OWNERS = ("a", "b", "c")
"""So few that they meet: a fresh execution id would never find itself."""

LEASES = (timedelta(seconds=10), timedelta(seconds=60), RETENTION, RETENTION + timedelta(seconds=90, milliseconds=500))
ANSWERS = (Answer("1"), Answer("null"), Answer('"é"'), Answer("null", "too_large: 9 bytes"))
VARIANTS = (*["same"] * 5, "other payload", "other scheme", "other payload and scheme", "another's job_id")

type Write = Callable[[IdempotencyStore, Claim], None]


def completion(answer: Answer) -> Write:
    return lambda store, claim: store.complete(claim, answer)


def release(error: str, forget: bool, life: Life | None) -> Write:
    return lambda store, claim: store.release(claim, error, forget_payload=forget, life=_of(claim, life))


def beginning(life: Life) -> Write:
    return lambda store, claim: store.begin(claim, replace(life, number=claim.life.number))


def _of(claim: Claim, life: Life | None) -> Life | None:
    return None if life is None else replace(life, number=claim.life.number)


def renewal(lease: timedelta) -> Write:
    return lambda store, claim: store.renew(claim, lease)


LIVES = st.builds(
    Life,
    runs=st.integers(0, 6),
    unended=st.integers(0, 3),
    rejected_at=st.sampled_from([None, datetime(2026, 1, 1, tzinfo=UTC)]),
)
"""What may be counted; of which life, the claim says."""

WRITES: st.SearchStrategy[Write] = st.one_of(
    st.builds(completion, st.sampled_from(ANSWERS)),
    st.builds(
        release,
        st.sampled_from(["TimeoutError", "KeyError", ""]),
        st.booleans(),
        st.one_of(st.none(), LIVES),
    ),
    st.builds(beginning, LIVES),
    st.builds(renewal, st.sampled_from(LEASES)),
)
SELDOM = st.sampled_from([False, False, True])
"""What is forgotten gets into no other state: there would be few of those."""

Claims = Bundle[Claim]("claims")
Shown = Bundle[Record]("shown")


def whole_seconds(end: datetime) -> datetime:
    """As DynamoDB's TTL has it: rounded up."""
    return end if end.microsecond == 0 else end.replace(microsecond=0) + timedelta(seconds=1)


@dataclass
class Ground:
    """What all examples of a run share: the store, and what was met so far. Each example has keys of its own."""

    harness: Harness
    kept_until: Callable[[datetime], datetime]
    situations: Counter[str]
    examples: "count[int]"


def machine(ground: Ground) -> type["StoreMachine"]:
    """The machine over this ground, as a class, since that is what Hypothesis runs."""
    return type("StoreMachineOverGround", (StoreMachine,), {"ground": ground})


class StoreMachine(RuleBasedStateMachine):
    """Few keys and owners, so that they meet. After each step the touched record is compared whole."""

    ground: Ground

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.store = self.ground.harness.clock, self.ground.harness.store
        self.clock.time = self.clock.time.replace(microsecond=0)
        self.model = ReferenceStore(
            self.clock.now, RETENTION, self.ground.kept_until, situations=self.ground.situations
        )
        example = next(self.ground.examples)
        self.jobs = [job(f"{example}-{number}", amount=1) for number in range(KEYS)]

    @initialize(milliseconds=st.sampled_from([0, 1, 500, 999]))
    def start(self, milliseconds: int) -> None:
        self.clock.time += milliseconds * INSTANT

    @rule(
        target=Claims,
        which=st.integers(0, KEYS - 1),
        variant=st.sampled_from(VARIANTS),
        owner=st.sampled_from(OWNERS),
        lease=st.sampled_from(LEASES),
    )
    def claim_any_time(self, which: int, variant: str, owner: str, lease: timedelta) -> Claim | MultipleResults[Claim]:
        return self.claim(which, variant, owner, lease)

    def claim(self, which: int, variant: str, owner: str, lease: timedelta) -> Claim | MultipleResults[Claim]:
        what = variant_of(self.jobs[which], variant)

        def ask(store: IdempotencyStore) -> ClaimAnswer:
            return store.claim(what, owner=owner, lease=lease)

        answer = self.ask_both(what.key, ask)
        return answer.claim if isinstance(answer, Acquired) else multiple()

    @rule(target=Claims, which=st.integers(0, KEYS - 1), seldom=SELDOM)
    def what_was_given_back_is_claimed(self, which: int, seldom: bool) -> Claim | MultipleResults[Claim]:
        record = self.model.find(self.jobs[which].key)
        if not seldom or record is None or record.owner is not None or not record.in_progress:
            return multiple()
        self.claim(which, "same", record.released_by or "next", LEASES[0])
        return self.claim(which, "same", "next", LEASES[0])

    @rule(which=st.integers(0, KEYS - 1), seldom=SELDOM)
    def its_holder_gives_it_back_twice(self, which: int, seldom: bool) -> None:
        record = self.model.find(self.jobs[which].key)
        if seldom and record is not None and record.owner is not None:
            for _ in range(2):
                held = Claim(record.key, record.owner, record.attempts, record.epoch, record.life)
                self.write(held, release("TimeoutError", forget=False, life=None))

    @rule(which=st.integers(0, KEYS - 1), write=WRITES)
    def its_holder_writes(self, which: int, write: Write) -> None:
        record = self.model.find(self.jobs[which].key)
        if record is not None and record.owner is not None:
            self.write(Claim(record.key, record.owner, record.attempts, record.epoch, record.life), write)

    @rule(which=st.integers(0, KEYS - 1), write=WRITES, seldom=SELDOM)
    def its_holder_writes_after_a_restart(self, which: int, write: Write, seldom: bool) -> None:
        record = self.model.find(self.jobs[which].key)
        if seldom and record is not None and record.owner is not None:
            self.restart(record)
            self.write(Claim(record.key, record.owner, record.attempts, record.epoch, record.life), write)

    @rule(claim=Claims, write=WRITES)
    def who_acquired_at_any_time_writes(self, claim: Claim, write: Write) -> None:
        self.write(claim, write)

    @rule(claim=Claims, owner=st.sampled_from([*OWNERS, "d"]), later=st.sampled_from([-1, 0, 1]), write=WRITES)
    def a_forged_fence_writes(self, claim: Claim, owner: str, later: int, write: Write) -> None:
        self.write(Claim(claim.key, owner, claim.attempt + later), write)

    def write(self, claim: Claim, write: Write) -> None:
        self.ask_both(claim.key, lambda store: write(store, claim))

    @rule(target=Shown, which=st.integers(0, KEYS - 1))
    def an_operator_looks(self, which: int) -> Record | MultipleResults[Record]:
        record = self.model.find(self.jobs[which].key)
        return multiple() if record is None else record

    @rule(which=st.integers(0, KEYS - 1), force=st.booleans(), seldom=SELDOM)
    def an_operator_has_forgotten_what_is_there(self, which: int, force: bool, seldom: bool) -> None:
        record = self.model.find(self.jobs[which].key)
        if record is not None and (seldom or (record.is_held and not force)):
            self.forget(record, force)

    @rule(shown=Shown, force=st.booleans(), seldom=SELDOM)
    def an_operator_has_forgotten_what_was_shown(self, shown: Record, force: bool, seldom: bool) -> None:
        if seldom:
            self.forget(shown, force)

    def forget(self, shown: Record, force: bool) -> None:
        admin = self.ground.harness.admin
        expected = answer_of(lambda model: model.forget(shown, force=force), self.model)
        assert answer_of(lambda admin: admin.forget(shown, force=force), admin) == expected
        assert comparable(admin.look(shown.key)) == comparable(self.model.find(shown.key))

    @rule(shown=Shown, seldom=SELDOM)
    def an_operator_restarts(self, shown: Record, seldom: bool) -> None:
        record = shown if seldom else self.model.find(shown.key)
        assert record is not None
        self.restart(record)

    def restart(self, record: Record) -> None:
        admin = self.ground.harness.admin
        expected = answer_of(lambda model: model.restart(record), self.model)
        assert answer_of(lambda admin: admin.restart(record), admin) == expected
        assert comparable(admin.look(record.key)) == comparable(self.model.find(record.key))

    @rule(seconds=st.sampled_from([0.001, 1.0, 9.999, 10.001, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)

    @rule(
        target=Claims,
        which=st.integers(0, KEYS - 1),
        beside=st.sampled_from([-1, 0, 1]),
        retention=st.booleans(),
        owner=st.sampled_from(OWNERS),
        variant=st.sampled_from(VARIANTS),
    )
    def claim_at_an_end(
        self, which: int, beside: int, retention: bool, owner: str, variant: str
    ) -> Claim | MultipleResults[Claim]:
        """When a lease or a retention ends, to the instant."""
        record = self.model.find(self.jobs[which].key)
        if record is not None and record.lease_until is not None:
            now, ends = self.clock.now(), sorted((record.lease_until, record.expires_at))
            to_come = [end for end in ends if end > now] or [now]
            self.clock.time = max(now, to_come[-1 if retention else 0] + beside * INSTANT)
        return self.claim(which, variant, owner, LEASES[0])

    def ask_both[T](self, key: JobKey, question: Callable[[IdempotencyStore], T]) -> T | type[Exception]:
        """What the model says, after the store has said the same."""
        expected = answer_of(question, self.model)
        assert answer_of(question, self.store) == expected
        assert comparable(self.store.find(key)) == comparable(self.model.find(key))
        return expected


def variant_of(what: Job, variant: str) -> Job:
    """The job as another delivery may bring it."""
    match variant:
        case "other payload":
            return replace(what, fingerprint=what.fingerprint[:-4] + "ffff")
        case "other scheme":
            return replace(what, fingerprint=what.fingerprint.replace("v1:", "v1-0123:"))
        case "other payload and scheme":
            return replace(what, fingerprint="v1-0123:ffff")
        case "another's job_id":
            return replace(what, job_id="another")
        case _:
            return what


def answer_of[S, T](question: Callable[[S], T], store: S) -> T | type[Exception]:
    try:
        return question(store)
    except (LeaseLostError, ForeignRecordError, LeaseHeldError, RecordChangedError) as refused:
        return type(refused)


def comparable(record: Record | None) -> Record | None:
    """Without the one thing that no docstring speaks of: the lease of a record that is completed."""
    if record is None or record.status is Status.IN_PROGRESS:
        return record
    return replace(record, lease_until=None)
