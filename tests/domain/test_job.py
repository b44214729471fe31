"""Identity: what is one job, what is one request, and what is neither."""

import time
from dataclasses import replace
from time import monotonic

import pytest

from domain.errors import InvalidJobError, PermanentError
from domain.identity import MAX_ID_BYTES, clean_id, fingerprint, fingerprint_scheme, job_key, same_scheme
from domain.job import Job
from domain.job_factory import JobFactory
from domain.operation import Operation, Operations
from domain.strict_json import Json
from tests.support.jobs import answer_ok, job, operations

FACTORY = JobFactory("test", Operations(Operation("default", answer_ok, frozenset({"sent_at"}))))


GOLDEN = {
    "plain": "onejob.default#7cd5b101ccc2b45512129eb9d21782fb717a1499edaabefe616f31fdcaca4bf9",
    "tenant": "onejob.default#d93492b9fce73da5f6f2f097e3e2e3eac9cc0ac1395a9964a43b2f72ffc73bbb",
    "unicode": "onejob.charge#1cd88115861bef69f08887058bbf309ce73032ca9134b0b22fc36e69d75013b6",
    "empty payload": "v1:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    "payload": "v1:c6834d1f04a62bf9d50bf5d874d02e39b3449a47cc3fa6dc471f78d72c33a0e1",
    "volatile": "v1-253caf3e6bce:2d47b855bf0e33172f4e0ed2c84f96646baf9af3944776a5bc028835b4ebf4a8",
}


def refusal(message: Json) -> str:
    with pytest.raises(InvalidJobError) as refused:
        FACTORY.job(message)
    return str(refused.value)


def test_golden_keys_stay_as_they_are_for_ever() -> None:
    """Another key means another run of every job in flight: change these only with a new namespace."""
    assert str(job_key("onejob", "default", "job-001")) == GOLDEN["plain"]
    assert str(job_key("onejob", "default", "job-001", "acme")) == GOLDEN["tenant"]
    assert str(job_key("onejob", "charge", "ключ/é😀")) == GOLDEN["unicode"]


def test_golden_fingerprints_stay_as_they_are_for_ever() -> None:
    payload: dict[str, Json] = {"amount": 10, "lines": [{"sku": "é", "n": 1.5}], "sent_at": "now"}
    assert fingerprint({}) == GOLDEN["empty payload"]
    assert fingerprint(payload) == GOLDEN["payload"]
    assert fingerprint(payload, ["sent_at"]) == GOLDEN["volatile"]


def test_the_key_is_made_of_chosen_names_only() -> None:
    made = job("job-001")
    assert (made.key.namespace, made.key.operation) == ("test", "default")
    assert made.key == job("job-001", amount=10).key


@pytest.mark.parametrize("other", [{"tenant": "acme"}, {"operation": "charge"}, {"job_id": "job-002"}])
def test_tenant_operation_and_id_each_make_another_job(other: dict[str, Json]) -> None:
    assert FACTORY.job({"job_id": "job-001", **other}).key != FACTORY.job({"job_id": "job-001"}).key


def test_a_tenant_and_an_id_cannot_be_confused_with_an_id() -> None:
    assert FACTORY.job({"job_id": "b", "tenant": "a"}).key != FACTORY.job({"job_id": '["a","b"]'}).key


def test_ids_are_compared_in_normal_form_c() -> None:
    assert FACTORY.job({"job_id": "caf\u00e9"}) == FACTORY.job({"job_id": "cafe\u0301"})


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (None, "not_an_object: expected object, got null"),
        (True, "not_an_object: expected object, got boolean"),
        ("s", "not_an_object: expected object, got string"),
        ([], "not_an_object: expected object, got array"),
        (1.5, "not_an_object: expected object, got number"),
        ({}, "missing_job_id"),
        ({"job_id": None}, "missing_job_id"),
        ({"job_id": ""}, "missing_job_id"),
        ({"job_id": 5}, "invalid_payload: job_id: expected string"),
        ({"job_id": ["a"]}, "invalid_payload: job_id: expected string"),
        ({"job_id": " 1"}, "invalid_job_id: leading or trailing white space"),
        ({"job_id": "1\u3000"}, "invalid_job_id: leading or trailing white space"),
        ({"job_id": "a\u0000b"}, "invalid_job_id: control"),
        ({"job_id": "1\n"}, "invalid_job_id: control"),
        ({"job_id": "a\u200bb"}, "invalid_job_id: control"),
        ({"job_id": "a\u2028b"}, "invalid_job_id: control"),
        ({"job_id": "a\u2029b"}, "invalid_job_id: control"),
        ({"job_id": "a\ud800b"}, "invalid_job_id: control"),
        ({"job_id": "a\ue000b"}, "invalid_job_id: control"),
        ({"job_id": "a\U000e0000b"}, "invalid_job_id: control"),
        ({"job_id": "é" * 128 + "x"}, f"invalid_job_id: longer than {MAX_ID_BYTES} bytes"),
        ({"job_id": "1", "tenant": None}, "missing_tenant"),
        ({"job_id": "1", "tenant": "\t"}, "invalid_tenant"),
        ({"job_id": "1", "tenant": 7}, "invalid_payload: tenant: expected string"),
        ({"job_id": "1", "operation": None}, "invalid_payload: operation: expected string"),
        ({"job_id": "1", "operation": ""}, "invalid_operation: expected 1 to 64"),
        ({"job_id": "1", "operation": "a b"}, "invalid_operation: expected 1 to 64 characters of A-Z a-z 0-9 _ -"),
        ({"job_id": "1", "operation": "a\n"}, "invalid_operation: expected 1 to 64"),
        ({"job_id": "1", "x": float("nan")}, "invalid_payload: not JSON: ValueError"),
        ({"job_id": "1", "x": "\ud800"}, "invalid_payload: not JSON: UnicodeEncodeError"),
    ],
)
def test_what_has_no_sound_identity_never_becomes_a_job(message: Json, reason: str) -> None:
    assert refusal(message).startswith(reason)


def test_a_refusal_says_what_was_expected_and_not_what_came() -> None:
    assert "secret" not in refusal({"job_id": "secret\n"})


MARKS = "\u0323\u0301" * 70_000
"""280 KB of combining marks in an order that normal form C sorts: with the square of their number, without a pause for
other threads.
"""


@pytest.mark.parametrize("member", ["job_id", "tenant"])
@pytest.mark.parametrize(
    "text", [MARKS[::-1], f"1{MARKS[::-1]}", f"{' ' * 1025}{MARKS[::-1]}", "\U0001d15e" * 90_000], ids=range(4)
)
def test_the_length_of_an_id_is_looked_at_before_it_is_normalised(member: str, text: str) -> None:
    began = time.thread_time()
    assert refusal({"job_id": "1", member: text}) == f"invalid_{member}: longer than {MAX_ID_BYTES} bytes of UTF-8"
    assert time.thread_time() - began < 0.1, "seconds of the processor"


@pytest.mark.parametrize(
    ("decomposed", "composed"),
    [
        ("\u03b1\u0313\u0300\u0345", "\u1f82"),
        ("u\u0308\u0304", "\u01d6"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("\u2126", "\u03a9"),
    ],
)
def test_the_longest_spelling_of_a_legal_id_is_legal(decomposed: str, composed: str) -> None:
    number = MAX_ID_BYTES // len(composed.encode())
    assert FACTORY.job({"job_id": decomposed * number}).job_id == composed * number
    with pytest.raises(InvalidJobError, match="longer than"):
        clean_id(decomposed * (number + 1), "job_id")


@pytest.mark.parametrize("job_id", ["x" * 256, "é" * 128, "a b", "{}", "../..", "job:1#2"])
def test_any_printable_id_up_to_256_bytes_is_legal(job_id: str) -> None:
    assert FACTORY.job({"job_id": job_id}).job_id == job_id


def test_the_payload_is_the_rest_of_the_message() -> None:
    made = FACTORY.job({"job_id": "1", "operation": "default", "tenant": "t", "amount": 1})
    assert (made.payload, made.tenant, made.operation) == ({"amount": 1}, "t", "default")


def test_what_an_operation_does_to_its_payload_moves_nothing() -> None:
    made = job("1", items=[1])
    before = (made.key, made.fingerprint)
    copy = made.for_one_attempt()
    items = copy.payload["items"]
    assert isinstance(items, list)
    items.append(2)
    copy.payload["processed"] = True
    assert made.payload == {"items": [1]}
    assert (copy.key, copy.fingerprint) == before


def test_a_waiting_job_holds_no_payload_and_each_attempt_reads_one_of_its_own() -> None:
    made = FACTORY.waiting_job(lambda: {"tenant": "t", "job_id": "1", "b": [1], "a": 2})
    assert (made, made.payload) == (
        replace(FACTORY.job({"job_id": "1", "tenant": "t", "b": [1], "a": 2}), payload={}),
        {},
    )
    first, second = made.for_one_attempt(), made.for_one_attempt()
    assert list(first.payload.items()) == [("b", [1]), ("a", 2)]
    first.payload["b"] = first.payload["c"] = 3
    assert second.payload == {"b": [1], "a": 2}
    assert (first.key, first.fingerprint) == (made.key, made.fingerprint)


def test_a_message_is_not_changed_by_making_a_job_of_it() -> None:
    message: dict[str, Json] = {"job_id": "1", "amount": 1}
    FACTORY.job(message)
    assert message == {"job_id": "1", "amount": 1}


def test_the_fingerprint_follows_meaning_not_spelling() -> None:
    def of(payload: dict[str, Json]) -> str:
        return FACTORY.job({"job_id": "1", **payload}).fingerprint

    assert of({"x": 1, "y": {"p": 1, "q": 2}}) == of({"y": {"q": 2, "p": 1}, "x": 1.0})
    assert of({"x": [1, 2]}) != of({"x": [2, 1]})
    assert of({"x": 1}) != of({"x": "1"})
    assert of({"x": None}) != of({})


def test_volatile_members_do_not_count_and_their_list_names_the_scheme() -> None:
    assert fingerprint({"a": 1, "t": 1}, ["t"]) == fingerprint({"a": 1, "t": 2}, ["t"])
    assert fingerprint_scheme([]) == "v1"
    assert fingerprint_scheme(["a", "b"]) == fingerprint_scheme(["b", "a", "a"]) != fingerprint_scheme(["a"])
    assert fingerprint_scheme(["a,b"]) != fingerprint_scheme(["a", "b"])


def test_a_job_leaves_out_the_volatile_members_of_its_operation() -> None:
    first, again = (FACTORY.job({"job_id": "1", "a": 1, "sent_at": sent}) for sent in ("now", "later"))
    assert first.fingerprint == again.fingerprint == fingerprint({"a": 1}, ["sent_at"])
    unknown = FACTORY.job({"job_id": "1", "operation": "new", "sent_at": "now"})
    assert unknown.fingerprint == fingerprint({"sent_at": "now"})


def test_an_unknown_operation_still_makes_a_job() -> None:
    assert FACTORY.job({"job_id": "1", "operation": "new"}).operation == "new"


@pytest.mark.parametrize(
    ("stored", "given", "can"),
    [
        ("v1:a", "v1:b", True),
        ("v1:a", "v2:a", False),
        ("v1-x:a", "v1:a", False),
        ("v1:a", "v1-x:a", False),
        ("v1-x:a", "v1-y:a", False),
        ("v1-x:a", "v1-x:b", True),
        ("v1:a", "v10:a", False),
        ("v10:a", "v1:a", False),
        ("V1:a", "v1:a", False),
        (None, "v1:a", False),
        ("v1:a:b", "v1:c", True),
        ("v1:c", "v1:a:b", True),
    ],
)
def test_fingerprints_of_one_scheme_can_be_compared(stored: str | None, given: str, can: bool) -> None:
    assert same_scheme(stored, given) is can


def test_a_job_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        job().job_id = "2"  # type: ignore[misc]
    assert isinstance(job(), Job)


def made(returned: object) -> str:
    """What becomes of what a `from_body` returns."""
    factory = JobFactory("test", Operations(from_body=lambda body: returned))
    try:
        return factory.job({"id": "e-1"}).job_id
    except InvalidJobError as error:
        return str(error)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ({"job_id": "1"}, "1"),
        (None, "not_an_object: expected object, got null"),
        (("job_id", "1"), "not_an_object: expected object, got no JSON"),
        (1.5, "not_an_object: expected object, got number"),
        ({}, "missing_job_id"),
        ({"job_id": "1", "at": {1, 2}}, "invalid_payload: not JSON: TypeError"),
    ],
)
def test_what_is_made_of_a_foreign_body_is_checked_as_any_message(returned: object, told: str) -> None:
    assert made(returned).startswith(told)


def test_a_foreign_body_is_refused_for_what_its_function_raises() -> None:
    def raises(error: BaseException) -> JobFactory:
        def from_body(body: object) -> object:
            raise error

        return JobFactory("test", Operations(from_body=from_body))

    for error, told in (
        (PermanentError("odd", "Records: expected one"), "odd: Records: expected one"),
        (InvalidJobError("odd"), "odd"),
        (KeyError("secret"), "untranslatable: from_body: KeyError"),
        (SystemExit(), "untranslatable: from_body: SystemExit"),
    ):
        with pytest.raises(InvalidJobError) as refused:
            raises(error).job([])
        assert str(refused.value) == told
        assert raises(error).job({"job_id": "1"}).job_id == "1", "a job is never translated"
    with pytest.raises(KeyboardInterrupt):
        raises(KeyboardInterrupt()).job([])


def test_a_function_that_makes_no_message_when_it_is_called_is_refused() -> None:
    async def from_body(body: object) -> object:
        return body

    with pytest.raises(TypeError, match="from_body: an async or generator function"):
        Operations(from_body=from_body)


@pytest.mark.parametrize("declared", ["\u00e9t\u00e9", "e\u0301te\u0301"])
@pytest.mark.parametrize("sent", ["\u00e9t\u00e9", "e\u0301te\u0301", "e\u0301t\u00e9"])
def test_a_volatile_member_is_ignored_in_whatever_form_its_name_comes(declared: str, sent: str) -> None:
    factory = JobFactory("test", operations(volatile=frozenset({declared})))
    jobs = [factory.job({"job_id": "1", "n": 1, sent: time}) for time in (1, 2)]
    assert jobs[0].fingerprint == jobs[1].fingerprint
    assert jobs[0].fingerprint != factory.job({"job_id": "1", "n": 2, sent: 1}).fingerprint
    composed = JobFactory("test", operations(volatile=frozenset({"\u00e9t\u00e9"})))
    assert jobs[0].fingerprint == composed.job({"job_id": "1", "n": 1}).fingerprint


def test_a_name_that_is_too_long_to_be_volatile_is_not_normalised() -> None:
    """Normalising takes time that grows with the square of the length."""
    long = "a" + "\u0300\u0316" * 140_000
    factory = JobFactory("test", operations(volatile=frozenset({"sent_at"})))
    began = monotonic()
    factory.job({"job_id": "1", long: 1})
    assert monotonic() - began < 5
