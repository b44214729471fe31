"""Who is calling: the same tenant for the same caller whatever changes from session to session, never one for two."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.http.identity import ANONYMOUS, tenant_of
from adapters.http.problems import NO_IDENTITY, HttpProblemError
from domain.identity import clean_id
from tests.support.http import ISSUER, iam_role, iam_user, jwt


def tenant(authorizer: object, claim: str = "sub") -> str:
    told = tenant_of(authorizer, claim)
    assert clean_id(told, "tenant") == told
    assert told != ANONYMOUS
    return told


def test_a_jwt_caller_is_issuer_and_claim() -> None:
    assert tenant(jwt("user-1")) == f"jwt {ISSUER} user-1"
    assert tenant(jwt("user-1", issuer="https://other")) != tenant(jwt("user-1"))


def test_the_claim_is_chosen() -> None:
    token = jwt("user-1", **{"custom:company": "acme"})
    assert tenant(token, "custom:company") == f"jwt {ISSUER} acme"


def test_an_iam_user_is_account_and_unique_id() -> None:
    assert tenant(iam_user("AIDA1", "111122223333")) == "iam 111122223333 AIDA1"


def test_two_sessions_of_one_role_are_one_caller() -> None:
    first, second = iam_role("morning"), iam_role("evening")
    assert first["iam"]["userArn"] != second["iam"]["userArn"]
    assert tenant(first) == tenant(second) == "iam 111122223333 AROACKCEVSQ6C2EXAMPLE"


def test_two_roles_and_two_accounts_are_not() -> None:
    callers = [
        iam_role("s", "AROA1"),
        iam_role("s", "AROA2"),
        iam_role("s", "AROA1", "999999999999"),
        iam_user("AIDA1"),
    ]
    assert len({tenant(caller) for caller in callers}) == 4


def test_federated_users_of_one_account_are_told_apart_and_are_not_its_root() -> None:
    callers = [iam_user(f"111122223333{name}") for name in ("", ":alice", ":bob")]
    assert len({tenant(caller) for caller in callers}) == 3


def test_identities_of_a_cognito_pool_share_a_role_and_are_told_apart() -> None:
    callers = []
    for identity in ("us-east-1:1111", "us-east-1:2222"):
        caller = iam_role("CognitoIdentityCredentials")
        caller["iam"]["cognitoIdentity"] = {"amr": ["authenticated"], "identityId": identity, "identityPoolId": "pool"}
        callers.append(tenant(caller))
    assert callers == ["cognito us-east-1:1111", "cognito us-east-1:2222"]


def pool_session(**changes: Any) -> dict[str, Any]:
    """Of an identity of a Cognito pool behind a function URL, where Lambda does not pass `cognitoIdentity`."""
    caller = iam_role("CognitoIdentityCredentials")
    caller["iam"] |= changes
    return caller


def test_an_identity_of_a_pool_that_a_function_url_does_not_tell_is_refused() -> None:
    """All identities of the pool would be one caller, and read each other's answers."""
    without = pool_session()
    del without["iam"]["cognitoIdentity"]
    for caller in (pool_session(), without, pool_session(userId="AROACKCEVSQ6C2EXAMPLE"), pool_session(userArn=None)):
        with pytest.raises(HttpProblemError) as problem:
            tenant_of(caller, "sub")
        assert (problem.value.type, problem.value.reason) == (NO_IDENTITY, "identity_incomplete")


@pytest.mark.parametrize("identity", [{}, [], "", "us-east-1:1111", 0, False, {"identityId": None}, {"identityId": ""}])
def test_an_identity_that_is_not_whole_is_never_the_roles(identity: object) -> None:
    with pytest.raises(HttpProblemError) as problem:
        tenant_of(iam_role("session") | {"iam": {**iam_role("session")["iam"], "cognitoIdentity": identity}}, "sub")
    assert problem.value.type is NO_IDENTITY


@pytest.mark.parametrize("other", [{"jwt": {}}, {"jwt": []}, {"jwt": jwt("user-1")["jwt"]}, {"lambda": {"user": "u"}}])
def test_two_who_stand_in_front_at_once_are_nobody(other: dict[str, Any]) -> None:
    """One of them may be anybody's: neither is passed over for the other."""
    with pytest.raises(HttpProblemError) as problem:
        tenant_of({**iam_user(), **other}, "sub")
    assert problem.value.type is NO_IDENTITY


def test_who_is_absent_by_name_is_absent() -> None:
    assert tenant({**iam_user(), "jwt": None, "lambda": None}) == tenant(iam_user())


@pytest.mark.parametrize(
    "authorizer",
    [
        None,
        {},
        [],
        "iam",
        {"lambda": {"user": "anyone"}},
        {"iam": None},
        {"iam": {**iam_user()["iam"], "userId": None}},
        {"iam": {**iam_user()["iam"], "accountId": ""}},
        {"jwt": {"claims": {"iss": ISSUER}}},
        {"jwt": {"claims": {"sub": "user-1"}}},
        {"jwt": {"claims": {"iss": ISSUER, "sub": ["user-1"]}}},
        {"jwt": {"claims": None}},
        {"jwt": {"claims": {"sub": "user-1"}}, **iam_user()},
    ],
    ids=str,
)
def test_nobody_is_refused(authorizer: Any) -> None:
    with pytest.raises(HttpProblemError) as problem:
        tenant_of(authorizer, "sub")
    assert problem.value.type is NO_IDENTITY
    assert "user-1" not in str(problem.value.detail)


parts = st.text(min_size=1) | st.sampled_from(
    ["a", "a b", "b", "sha256", "e\u0301", "\u00e9", "a" * 300, " a", "a\x00"]
)


@given(st.lists(st.tuples(parts, parts), min_size=2, max_size=2, unique=True))
def test_two_jwt_callers_never_share_a_tenant(callers: list[tuple[str, str]]) -> None:
    first, second = (tenant(jwt(sub, issuer)) for issuer, sub in callers)
    assert first != second
    assert not first.startswith("iam ")


@given(parts)
def test_a_claim_that_looks_like_anothers_hash_is_not_it(value: str) -> None:
    victim = tenant(jwt(value))
    assert tenant(jwt(victim)) != victim
    assert tenant(jwt(victim.rpartition(" ")[2])) != victim or value == victim.rpartition(" ")[2]
