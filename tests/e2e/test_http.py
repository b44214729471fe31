"""The deployed HTTP API: through its URL, and with the events that AWS sends and the emulator does not."""

import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from entrypoints.emulator.deployment import HOST_ARCHITECTURE
from entrypoints.emulator.guarded import KEY_HEADER
from infra.bundle import build
from infra.worker_props import Architecture
from tests.support.aws import TABLE, emulated
from tests.support.deployed import Watched
from tests.support.http import http_event, iam_role, jwt
from tests.support.runtime_api import sandbox

HEADERS = {"content-type": "application/json"}


@pytest.fixture
def function(worker: Watched) -> str:
    functions = worker.client("lambda").list_functions()["Functions"]
    (name,) = [one["FunctionName"] for one in functions if one["Handler"] == "entrypoints.http_api.handler"]
    return str(name)


def invoke(worker: Watched, function: str, event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """As Lambda's front does it, with who is calling."""
    answer = worker.client("lambda").invoke(FunctionName=function, Payload=json.dumps(event))
    told = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, told
    return told["statusCode"], told["headers"], json.loads(told["body"])


def post(authorizer: dict[str, Any], key: str, body: str = "{}", **headers: str) -> dict[str, Any]:
    told = {**HEADERS, "idempotency-key": f'"{key}"', **headers}
    return http_event("POST", "/jobs", authorizer=authorizer, headers=told, body=body)


def test_a_key_is_one_effect_for_all_sessions_of_a_role(worker: Watched, function: str) -> None:
    status, _, answer = invoke(worker, function, post(iam_role("one"), "http-1"))
    assert (status, answer["job_id"]) == (200, "http-1")
    again, replayed, same = invoke(worker, function, post(iam_role("two"), "http-1"))
    assert (again, same, replayed["Idempotency-Replayed"]) == (200, answer, "true")
    status, _, other = invoke(worker, function, post(jwt(), "http-1"))
    assert (status, other["job_id"]) == (200, "http-1")
    assert other["execution_id"] != answer["execution_id"]
    assert invoke(worker, function, post(iam_role("one"), "http-1", '{"amount":1}'))[0] == 422


def test_what_is_left_to_the_worker_is_done_once_and_shown_to_its_caller(worker: Watched, function: str) -> None:
    event = post(iam_role("one"), "http-later", '{"amount":1.5}', prefer="respond-async")
    status, headers, _ = invoke(worker, function, event)
    assert (status, headers["Location"]) == (202, "/jobs/http-later")
    look = http_event("GET", headers["Location"], authorizer=iam_role("two"))
    worker.until(lambda: invoke(worker, function, look)[2].get("status") == "completed")
    worker.until_events("http-later", "business_operation_executed")
    assert invoke(worker, function, look)[2]["answer"]["job_id"] == "http-later"
    assert invoke(worker, function, http_event("GET", "/jobs/http-later", authorizer=jwt()))[0] == 404
    assert invoke(worker, function, event)[1]["Idempotency-Replayed"] == "true"


def test_the_url_takes_signed_requests_and_lets_in_nobody_whom_it_does_not_know(worker: Watched, function: str) -> None:
    """The emulator asks for a signature, and does not say whose: nobody is let in, until that is allowed."""
    client = worker.client("lambda")
    url = client.get_function_url_config(FunctionName=function)["FunctionUrl"]
    assert call(worker, url, signed=False)[0] == 403
    status, problem = call(worker, url)
    assert (status, problem["reason"]) == (403, "no_identity")
    told = client.get_function_configuration(FunctionName=function)["Environment"]["Variables"]
    client.update_function_configuration(
        FunctionName=function, Environment={"Variables": {**told, "HTTP_ALLOW_ANONYMOUS": "true"}}
    )
    status, answer = call(worker, url)
    assert (status, answer["job_id"]) == (200, "http-url")
    assert call(worker, url) == (status, answer)


def call(worker: Watched, url: str, *, signed: bool = True) -> tuple[int, Any]:
    """By a plain client, signed as botocore signs; the emulator's own path stands for the URL's host."""
    headers = {**HEADERS, "Idempotency-Key": '"http-url"'}
    unsigned = {} if signed else {KEY_HEADER: worker.aws.key}  # past the emulator's guard
    request = AWSRequest("POST", f"{url}jobs", data=b'{"amount":1}', headers=headers)
    if signed:
        SigV4Auth(Credentials(worker.aws.key, "test"), "lambda", "us-east-1").add_auth(request)
    url_id = str(urlsplit(url).hostname).partition(".")[0]
    connection = http.client.HTTPConnection("127.0.0.1", worker.aws.port, timeout=30)
    try:
        connection.request("POST", f"/_aws/lambda-url/{url_id}/jobs", request.data, dict(request.headers) | unsigned)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_the_bundle_has_everything_that_the_door_needs(tmp_path: Path) -> None:
    """Under Lambda's own runtime client, with what the runtime brings and nothing else."""
    settings = {"IDEMPOTENCY_TABLE": TABLE, "JOBS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/jobs"}
    bundle = build(Architecture(HOST_ARCHITECTURE))  # before the environment of whoever builds it is hidden
    with emulated() as aws:
        environment = aws.environment() | settings
        with sandbox(bundle, tmp_path, environment, handler="entrypoints.http_api.handler") as started:
            assert started.log.read_text() == ""
            first, again = (started.api.invoke(post(jwt(), "bundled")).body for _ in range(2))
            described = started.api.invoke(http_event("GET", "/openapi.json", authorizer=None)).body
    assert (first["statusCode"], again["statusCode"], described["statusCode"]) == (200, 200, 200)
    assert again["body"] == first["body"]
    assert again["headers"]["Idempotency-Replayed"] == "true"
    assert "/jobs" in json.loads(described["body"])["paths"]
