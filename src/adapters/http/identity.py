"""The identity of a caller, as the front of the function established it: the tenant of a request's jobs.

    in front                                tenant
    -----------------------------------------------------------------------------------
    JWT authorizer (HTTP API)               `jwt {issuer} {claim}`
    IAM (function URL, HTTP API)            `iam {account} {unique id}`
    IAM, through a Cognito identity pool    `cognito {identity id}`; a function URL does not tell it: refused
    nobody, two of these at once            none: refused

The unique id of an assumed role is the role's: the session's name after the colon changes with every session, like
access key and `userArn`. A pool's identities share one role; their ids tell them apart. What is there and not whole
refuses the request: it never makes the caller one of a larger group.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from adapters.http.problems import NO_IDENTITY, HttpProblemError

ANONYMOUS: Final = "anonymous"
"""The tenant of anonymous callers, where they are allowed. No identity has this name."""

_PLAIN: Final = re.compile(r"[!-~]+")
_ROLE: Final = "AROA"
_POOL_SESSION: Final = "CognitoIdentityCredentials"
"""What Cognito calls every session that it gives to an identity of a pool."""

LONGEST: Final = 256


def tenant_of(authorizer: object, claim: str) -> str:
    """From `requestContext.authorizer`; `claim` is the JWT's member that tells callers apart.

    Two callers never share one: what is not plain ASCII, or too long to be a tenant, is hashed, and says so.
    Raises `HttpProblemError`.
    """
    known = {name: value for name, value in _members(authorizer).items() if value is not None}
    match sorted(known):
        case ["jwt"]:
            claims = _members(_members(known["jwt"]).get("claims"))
            return _tenant("jwt", _text(claims, "iss", "the token's issuer"), _text(claims, claim, "the token's claim"))
        case ["iam"]:
            return _of_iam(_members(known["iam"]))
        case _:
            raise HttpProblemError(NO_IDENTITY)


def _of_iam(iam: Mapping[str, object]) -> str:
    if (pool := iam.get("cognitoIdentity")) is not None:
        return _tenant("cognito", _text(_members(pool), "identityId", "the Cognito identity"))
    if any(_session(iam.get(name)) == _POOL_SESSION for name in ("userId", "callerId", "userArn")):
        raise HttpProblemError(
            NO_IDENTITY, "identity_incomplete", "the Cognito identity is missing: behind a function URL it is not told"
        )
    unique_id = _text(iam, "userId", "the caller's unique id")
    if unique_id.startswith(_ROLE):
        unique_id = unique_id.partition(":")[0]
    return _tenant("iam", _text(iam, "accountId", "the caller's account"), unique_id)


def _session(name: object) -> str | None:
    """The last part of `AROA...:session` or `arn:aws:sts::account:assumed-role/role/session`."""
    return re.split("[:/]", name)[-1] if isinstance(name, str) else None


def _members(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(members: Mapping[str, object], name: str, what: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise HttpProblemError(NO_IDENTITY, "identity_incomplete", f"{what} is missing: {name}")
    return value


def _tenant(kind: str, *parts: str) -> str:
    """Parts cannot hold the blank between them, so that no two lists of parts make one tenant."""
    tenant = " ".join((kind, *parts))
    if all(_PLAIN.fullmatch(part) for part in parts) and len(tenant) <= LONGEST:
        return tenant
    digest = sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass")
        digest.update(b"%d:%b" % (len(content), content))
    return f"{kind}-sha256 {digest.hexdigest()}"
