"""Items of other tools among the records: operators see and purge the rest, and change nothing of them."""

import json
from datetime import timedelta
from itertools import batched

import pytest

pytest.importorskip("hypothesis", reason="this environment has no hypothesis")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from domain.answer import Answer
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.job import Job
from domain.record import Acquired, Record
from entrypoints.cli.commands.jobs.jobs import as_object
from tests.contract.foreign import DynamoDBItems, ForeignItems, Oddity, SQLiteRows, ValkeyHashes
from tests.contract.harness import RETENTION, Harness
from tests.support.jobs import job

_ATTRIBUTES = st.one_of(
    st.none(),
    st.text(max_size=5).map(lambda text: {"S": text}),
    st.binary(max_size=5).map(lambda data: {"B": data}),
    st.integers(-(10**37), 10**37).map(lambda number: {"N": str(number)}),
    st.sampled_from(["1E125", "-1E125", "1E-130", "0.5", "-1", "0", "253402300800", "253402300800000"]).map(
        lambda number: {"N": number}
    ),
    st.booleans().map(lambda value: {"BOOL": value}),
    st.sampled_from(
        [
            {"NULL": True},
            {"SS": ["a"]},
            {"NS": ["1"]},
            {"BS": [b"a"]},
            {"L": [{"N": "1"}]},
            {"L": []},
            {"M": {"a": {"S": "b"}}},
            {"M": {}},
        ]
    ),
)
_NAMES = (
    *("status", "expiration", "in_progress_expiration", "owner", "attempts", "epoch", "job_id", "operation"),
    *("data", "validation", "first_seen", "last_seen", "last_error", "omitted"),
)
DYNAMODB: st.SearchStrategy[Oddity] = st.tuples(st.sampled_from(_NAMES), _ATTRIBUTES)
_TIMES = ("lease_until", "expires_at", "first_seen", "last_seen")
SQLITE: st.SearchStrategy[Oddity] = st.one_of(
    st.tuples(st.sampled_from([*_TIMES, "attempts", "epoch"]), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(
        st.sampled_from(["status", "job_id", "operation", "owner", "fingerprint", "answer", "omitted", "last_error"]),
        st.one_of(st.text(max_size=5), st.binary(max_size=5)),
    ),
    st.tuples(st.sampled_from(["owner", "fingerprint", "answer", "omitted", "last_error", "last_seen"]), st.none()),
)
_NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(lambda number: str(number).encode()),
    st.sampled_from([b"1e3", b"0x10", b" 1", b"1.5", b"\xd9\xa1", b"nan", b"inf", b"9999999999999999"]),
)
VALKEY: st.SearchStrategy[Oddity] = st.tuples(
    st.sampled_from(
        [
            *("status", "job_id", "operation", "owner", "attempts", "lease_until", "expires_at", "fingerprint"),
            *("answer", "omitted", "last_error", "first_seen", "last_seen", "epoch"),
        ]
    ),
    st.one_of(st.none(), st.binary(max_size=5), _NUMBERS),
)
STRATEGIES: dict[type[ForeignItems], st.SearchStrategy[Oddity]] = {
    DynamoDBItems: DYNAMODB,
    SQLiteRows: SQLITE,
    ValkeyHashes: VALKEY,
}

LEASE = timedelta(seconds=60)
LATER = timedelta(seconds=2)
"""More than any store rounds up."""


def complete(harness: Harness, what: Job) -> None:
    held = harness.store.claim(what, owner="a", lease=LEASE)
    assert isinstance(held, Acquired)
    harness.store.complete(held.claim, Answer('"done"'))


def purge(harness: Harness) -> tuple[int, int]:
    """To the end: how many were seen and deleted."""
    seen = deleted = 0
    after = None
    for _ in range(100):
        page = harness.admin.purge(after=after, limit=3)
        seen, deleted, after = seen + page.seen, deleted + page.deleted, page.after
        if after is None:
            return seen, deleted
    raise AssertionError("a purge comes to its end")


HEALTHY = [job(f"healthy-{number}") for number in range(3)]
ODD = [job(f"odd-{number}") for number in range(6)]


def foreign_items(harness: Harness) -> ForeignItems:
    if harness.foreign is None:
        pytest.skip("no other tool writes here")
    return harness.foreign


def check_foreign(harness: Harness, oddities: list[Oddity]) -> list[bool]:
    """Whether each oddity makes a finished record, long over, foreign. Holds whatever they are:

    `look` answers or says ForeignRecordError, for that key alone; `records` leaves out what is foreign and nothing
    else; a purge comes to its end, deletes what is over and leaves what is foreign as it is; so does `forget`.
    """
    items, admin = foreign_items(harness), harness.admin
    for name in items.stored():  # an earlier example's
        items.remove(name)
    odd = ODD[: len(oddities)]
    for each in [*HEALTHY, *odd]:
        complete(harness, each)
    shown = {record.key: record for record in admin.records()}
    harness.clock.advance(seconds=(RETENTION + LATER).total_seconds())
    living = job("living")
    complete(harness, living)
    for each, oddity in zip(odd, oddities, strict=True):
        items.spoil(str(each.key), oddity)
    before = items.stored()
    found: dict[JobKey, Record] = {}
    foreign: list[bool] = []
    for each in odd:
        try:
            record = admin.look(each.key)
        except ForeignRecordError:
            foreign.append(True)
            with pytest.raises(ForeignRecordError):
                admin.forget(shown[each.key], force=True)
        else:
            assert record is not None
            json.dumps(as_object(record, harness.clock.now(), show_payload=True))
            found[each.key] = record
            foreign.append(False)
    assert items.stored() == before
    told = {record.key: record for record in admin.records()}
    assert told.keys() == {*found, living.key, *(each.key for each in HEALTHY)}
    assert found.items() <= told.items()
    over = {str(key) for key, record in told.items() if record.retention_is_over(harness.clock.now())}
    assert {str(each.key) for each in HEALTHY} <= over
    seen, deleted = purge(harness)
    assert (seen, deleted) == (len(told), len(over))
    assert items.stored() == {name: item for name, item in before.items() if name not in over}
    return foreign


def test_one_foreign_value_stops_nobody_and_is_never_deleted(harness: Harness) -> None:
    certain = foreign_items(harness).certain
    for some in batched(certain, len(ODD), strict=False):
        foreign = check_foreign(harness, list(some))
        assert all(foreign), [oddity for oddity, passed in zip(some, foreign, strict=True) if not passed]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_is_in_a_foreign_item_the_others_are_seen_and_purged(harness: Harness, data: st.DataObject) -> None:
    check_foreign(harness, data.draw(st.lists(STRATEGIES[type(foreign_items(harness))], min_size=1, max_size=len(ODD))))
