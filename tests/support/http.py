"""HTTP requests as AWS documents them (payload format 2.0), and a handler for them. Imports AWS."""

import json
from dataclasses import dataclass
from typing import Any

from dependency_injector.providers import Object

from domain.operation import OperationFunction, Operations
from domain.ports.clock import Clock
from entrypoints.container import Container
from entrypoints.http_api import Handler, make_handler
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import Backend, Settings
from tests.support.clock import FakeClock
from tests.support.jobs import answer_ok, operations
from tests.support.sqs import Context

ISSUER = "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_example"


def jwt(sub: str = "user-1", issuer: str = ISSUER, **claims: str) -> dict[str, Any]:
    """Of an HTTP API's JWT authorizer."""
    return {"jwt": {"claims": {"iss": issuer, "sub": sub, "token_use": "access", **claims}, "scopes": None}}


def iam_user(user_id: str = "AIDACKCEVSQ6C2EXAMPLE", account: str = "111122223333") -> dict[str, Any]:
    """Of a function URL with AWS_IAM, called by an IAM user."""
    return {
        "iam": {
            "accessKey": "AKIAIOSFODNN7EXAMPLE",
            "accountId": account,
            "callerId": user_id,
            "cognitoIdentity": None,
            "principalOrgId": "o-example",
            "userArn": f"arn:aws:iam::{account}:user/example-user",
            "userId": user_id,
        }
    }


def iam_role(session: str, role_id: str = "AROACKCEVSQ6C2EXAMPLE", account: str = "111122223333") -> dict[str, Any]:
    """Of a function URL or an HTTP API with AWS_IAM, called in a session of a role."""
    caller = f"{role_id}:{session}"
    return {
        "iam": {
            "accessKey": f"ASIA{session.upper()}EXAMPLE",
            "accountId": account,
            "callerId": caller,
            "cognitoIdentity": None,
            "principalOrgId": "aws:PrincipalOrgID",
            "userArn": f"arn:aws:sts::{account}:assumed-role/example-role/{session}",
            "userId": caller,
        }
    }


def http_event(
    method: str,
    path: str,
    *,
    authorizer: dict[str, Any] | None,
    headers: dict[str, str] | None = None,
    query: str = "",
    body: str | None = None,
    is_base64: bool = False,
    stage: str = "$default",
) -> dict[str, Any]:
    context = {
        "accountId": "123456789012",
        "apiId": "urlid",
        "authentication": None,
        "domainName": "urlid.lambda-url.us-east-1.on.aws",
        "domainPrefix": "urlid",
        "http": {
            "method": method,
            "path": path,
            "protocol": "HTTP/1.1",
            "sourceIp": "123.123.123.123",
            "userAgent": "agent",
        },
        "requestId": "id",
        "routeKey": "$default",
        "stage": stage,
        "time": "12/Mar/2020:19:03:58 +0000",
        "timeEpoch": 1583348638390,
    }
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "cookies": ["cookie1"],
        "headers": {"host": "urlid.lambda-url.us-east-1.on.aws", **(headers or {})},
        "queryStringParameters": None,
        "requestContext": context | ({"authorizer": authorizer} if authorizer is not None else {}),
        "body": body,
        "pathParameters": None,
        "isBase64Encoded": is_base64,
        "stageVariables": None,
    }


@dataclass(frozen=True)
class Answered:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def reason(self) -> str:
        """Of a problem document, which it must be."""
        assert self.headers["Content-Type"] == "application/problem+json"
        document = self.body
        assert document.keys() == {"type", "title", "status", "detail", "reason"}
        assert document["status"] == self.status
        return str(document["reason"])


@dataclass
class Client:
    """Calls a handler as Lambda does."""

    handle: Handler
    authorizer: dict[str, Any] | None
    seconds: float = 30

    def call(self, method: str, path: str, **parts: Any) -> Answered:
        event = http_event(method, path, **{"authorizer": self.authorizer, **parts})
        answer = self.handle(event, Context(self.seconds))
        assert not answer["isBase64Encoded"]
        return Answered(answer["statusCode"], answer["headers"], answer["body"])

    def post(
        self,
        key: str | None = '"job-001"',
        body: str = "{}",
        *,
        query: str = "",
        is_base64: bool = False,
        **headers: str,
    ) -> Answered:
        told = {"content-type": "application/json"} | ({} if key is None else {"idempotency-key": key})
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.call("POST", "/jobs", headers=told, body=body, query=query, is_base64=is_base64)

    def get(self, job_id: str = "job-001", **parts: Any) -> Answered:
        return self.call("GET", f"/jobs/{job_id}", **parts)

    def of(self, authorizer: dict[str, Any] | None) -> "Client":
        """Another caller of the same door."""
        return Client(self.handle, authorizer, self.seconds)


def client(
    run: OperationFunction = answer_ok,
    *,
    known: Operations | None = None,
    clock: Clock | None = None,
    authorizer: dict[str, Any] | None = None,
    parts: dict[str, Any] | None = None,
    http: dict[str, Any] | None = None,
    **settings: Any,
) -> Client:
    """A handler as `entrypoints.http_api` makes it, over the memory store unless told otherwise; `parts` stand in for
    the container's.
    """
    container = Container()
    chosen = {"backend": Backend.MEMORY, "namespace": "test", **settings}
    container.settings.override(Object(Settings(**chosen)))
    container.http_settings.override(Object(HttpSettings(**(http or {}))))
    container.clock.override(Object(clock or FakeClock()))
    for name, part in (parts or {}).items():
        getattr(container, name).override(Object(part))
    return Client(make_handler(known or operations(run), container), authorizer or iam_user())
