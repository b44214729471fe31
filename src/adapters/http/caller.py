"""Who is calling, as whoever stands in front of the function has established it: the tenant of a request's jobs.

    in front                                tenant
    -----------------------------------------------------------------------------------
    JWT authorizer (HTTP API)               `jwt {issuer} {claim}`
    IAM (function URL, HTTP API)            `iam {account} {unique id}`
    IAM, through a Cognito identity pool    `cognito {identity id}`
    nobody                                  none: refused

The unique id of an assumed role is the role's: the session's name after the colon changes with every session, like
access key and `userArn`. A pool's identities share one role; their ids tell them apart.
"""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from adapters.http.problems import NO_IDENTITY, HttpProblemError

ANONYMOUS: Final = "anonymous"
"""The tenant of whoever calls where that is allowed. A word without a blank: no identity is called so."""

_PLAIN: Final = re.compile(r"[!-~]+")
_ROLE: Final = "AROA"
LONGEST: Final = 256


def tenant_of(authorizer: object, claim: str) -> str:
    """From `requestContext.authorizer`; `claim` is the JWT's member that tells callers apart.

    Two callers never share one: what is not plain ASCII, or too long to be a tenant, is hashed, and says so.
    Raises `HttpProblemError`.
    """
    known = _members(authorizer)
    if jwt := _members(known.get("jwt")):
        claims = _members(jwt.get("claims"))
        return _tenant("jwt", _text(claims, "iss", "the token's issuer"), _text(claims, claim, "the token's claim"))
    if iam := _members(known.get("iam")):
        if pool := _members(iam.get("cognitoIdentity")):
            return _tenant("cognito", _text(pool, "identityId", "the Cognito identity"))
        unique_id = _text(iam, "userId", "the caller's unique id")
        if unique_id.startswith(_ROLE):
            unique_id = unique_id.partition(":")[0]
        return _tenant("iam", _text(iam, "accountId", "the caller's account"), unique_id)
    raise HttpProblemError(NO_IDENTITY)


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
