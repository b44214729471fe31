"""The HTTP API in Lambda: one effect a key and caller, the same answer every time, and nobody else's."""

import asyncio
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from adapters.http.handler import HttpHandler
from adapters.http.problems import PROBLEMS
from adapters.http.request import HttpRequest, NotAnHttpRequestError
from adapters.http.response import Response
from adapters.sqs.job_sender import SqsJobSender
from adapters.sqs.job_size import MAX_JOB_BYTES
from adapters.stores.memory import MemoryIdempotencyStore
from adapters.system import SystemClock, new_id
from domain.attempt import Attempt
from domain.errors import ForeignRecordError, PermanentError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.operation import Operation, Operations
from domain.record import Record
from entrypoints import http_api
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import Backend, SettingError
from tests.support.aws import TABLE, emulated, in_process, item
from tests.support.aws_faults import aws_requests
from tests.support.clock import FakeClock
from tests.support.faulty_store import FaultyStore
from tests.support.http import Client, client, http_event, iam_role, iam_user, jwt
from tests.support.sqs import Context
from tests.support.sqs_aws import make_queues
from tests.support.worker import handler as worker_handler

ROOT = Path(__file__).parents[2]
SECRET = "4111-1111"


def counted(ran: list[Job]) -> Callable[[Job, Attempt], object]:
    def run(job: Job, attempt: Attempt) -> object:
        ran.append(job)
        return {"number": len(ran)}

    return run


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [line for text in capsys.readouterr().out.splitlines() if "event" in (line := json.loads(text))]


def test_the_same_request_again_gets_the_same_answer_and_runs_nothing() -> None:
    ran: list[Job] = []
    with in_process():
        door = client(counted(ran), backend=Backend.DYNAMODB, table=TABLE)
        first, second = door.post(body='{"amount":10}'), door.post(body='{ "amount": 1e1 }')
        stored = item(ran[0].key)
    assert (first.status, first.body) == (200, {"number": 1})
    assert (second.status, second.text) == (first.status, first.text)
    assert "Idempotency-Replayed" not in first.headers
    assert second.headers["Idempotency-Replayed"] == "true"
    assert first.headers["Cache-Control"] == second.headers["Cache-Control"] == "no-store"
    assert [(job.job_id, job.tenant, job.payload) for job in ran] == [
        ("job-001", "iam 111122223333 AIDACKCEVSQ6C2EXAMPLE", {"amount": 10})
    ]
    assert stored["status"] == "COMPLETED"


@pytest.mark.parametrize("answer", [None, False, 0, "", [], {}])
def test_falsy_answers_replay_as_they_were(answer: object) -> None:
    door = client(lambda job, attempt: answer)
    assert [door.post().body, door.post().body] == [answer, answer]


def test_an_omitted_answer_is_marked_both_times() -> None:
    door = client(lambda job, attempt: object())
    first, second = door.post(), door.post()
    assert first.text == second.text == "null"
    assert first.headers["Onejob-Answer-Omitted"] == second.headers["Onejob-Answer-Omitted"] == "unserializable: object"
    assert door.get().body["answer_omitted"] == "unserializable: object"


def test_no_caller_sees_anothers_job_and_sessions_of_a_role_are_one_caller() -> None:
    ran: list[Job] = []
    door = client(counted(ran), authorizer=iam_role("morning"))
    assert door.post(body='{"a":1}').body == {"number": 1}
    others = [iam_role("morning", "AROAOTHER"), iam_role("morning", account="999999999999"), iam_user(), jwt()]
    for number, other in enumerate(others, start=2):
        assert door.of(other).get().status == 404
        assert door.of(other).post(body='{"a":2}').body == {"number": number}
    same = door.of(iam_role("evening"))
    assert same.post(body='{"a":1}').headers["Idempotency-Replayed"] == "true"
    assert same.get().body["answer"] == {"number": 1}
    assert len({job.key for job in ran}) == len(ran) == 5


def test_nobody_is_let_in_only_where_that_is_allowed() -> None:
    ran: list[Job] = []
    door = client(counted(ran)).of(None)
    assert (door.post().status, door.post().reason) == (403, "no_identity")
    assert (door.get().status, door.get().reason) == (403, "no_identity")
    assert ran == []
    allowed = client(counted(ran), http={"allow_anonymous": True})
    assert allowed.of(None).post().status == 200
    assert allowed.post().status == 200
    assert [job.tenant for job in ran] == ["anonymous", "iam 111122223333 AIDACKCEVSQ6C2EXAMPLE"]


def test_what_cannot_be_read_as_an_identity_is_nobody_even_where_nobody_is_let_in() -> None:
    door = client(http={"allow_anonymous": True})
    assert door.of({"lambda": {"user": "me"}}).post().reason == "no_identity"
    assert door.of({}).post().reason == "no_identity"


def test_the_claim_is_a_setting() -> None:
    ran: list[Job] = []
    door = client(counted(ran), authorizer=jwt(client_id="app"), http={"tenant_claim": "client_id"})
    assert door.post().status == 200
    assert str(ran[0].tenant).endswith(" app")


def test_a_permanent_error_is_422_with_its_code_and_a_later_request_runs_again() -> None:
    ran: list[Job] = []

    def run(job: Job, attempt: Attempt) -> object:
        ran.append(job)
        if "account" not in job.payload:
            raise PermanentError("no_account", "account: expected string")
        return "done"

    door = client(run)
    for _ in range(2):
        refused = door.post()
        assert (refused.status, refused.reason, refused.body["detail"]) == (
            422,
            "no_account",
            "account: expected string",
        )
    assert door.get().body["status"] == "waiting"
    assert door.post(body='{"account":"a"}').body == "done"
    assert len(ran) == 3


def test_a_failure_is_500_and_the_same_request_runs_again() -> None:
    ran: list[int] = []

    def run(job: Job, attempt: Attempt) -> object:
        ran.append(attempt.number)
        if attempt.number <= 7:
            raise ConnectionError(SECRET)
        return attempt.number

    door = client(run, max_attempts=2)
    for _ in range(7):
        failed = door.post()
        assert (failed.status, failed.reason) == (500, "operation_raised")
        assert SECRET not in failed.text
        assert "ConnectionError" not in failed.text
    assert door.post().body == 8
    assert ran == [1, 2, 3, 4, 5, 6, 7, 8]


def test_a_store_that_cannot_answer_is_503_and_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[Job] = []
    with in_process():
        door = client(counted(ran), backend=Backend.DYNAMODB, table="missing")
        for answered in (door.post(), door.get(), door.post(prefer="respond-async")):
            assert (answered.status, answered.reason) == (503, "store_unavailable")
            assert answered.headers["Retry-After"] == "10"
    assert ran == []
    told = [line for line in lines(capsys) if line["event"] == "request_refused"]
    assert [line["level"] for line in told] == ["ERROR"] * 3
    assert "ResourceNotFoundException" in told[1]["cause"]


@pytest.mark.parametrize("fault", [StoreUnavailableError("down"), ForeignRecordError("another's")])
def test_a_lookup_that_fails_is_503(fault: Exception) -> None:
    store = FaultyStore(MemoryIdempotencyStore(FakeClock(), timedelta(days=1)), find=[fault, fault])
    door = client(parts={"store": store})
    assert (door.get().status, door.get().reason) == (503, "store_unavailable")


def test_a_record_of_another_job_is_never_shown() -> None:
    """Should two ids ever meet in one key, as with a key that another tool chose."""

    class Mixed(MemoryIdempotencyStore):
        def find(self, key: JobKey) -> Record | None:
            found = super().find(key)
            return found and replace(found, job_id="another")

    door = client(parts={"store": Mixed(FakeClock(), timedelta(days=1))})
    assert door.post().status == 200
    assert (door.get().status, door.get().reason) == (503, "store_unavailable")


def test_a_record_that_cannot_be_written_is_500_and_says_that_the_effect_may_have_happened() -> None:
    clock = FakeClock()
    store = FaultyStore(MemoryIdempotencyStore(clock, timedelta(days=1)), complete=["fails"] * 1000)
    door = client(parts={"store": store}, clock=clock)
    failed = door.post()
    assert (failed.status, failed.reason) == (500, "completion_lost")
    assert "may have happened" in failed.body["detail"]
    assert door.post().status == 409


def test_an_unknown_operation_is_404_and_nothing_is_claimed() -> None:
    door = client()
    assert (door.post(query="operation=nothing").status, door.post(query="operation=nothing").reason) == (
        404,
        "unknown_operation",
    )
    assert door.get(query="operation=nothing").status == 404
    assert (door.post(query="operation=a.b").status, door.post(query="operation=").reason) == (400, "invalid_operation")


def test_operations_are_jobs_of_their_own() -> None:
    door = client(known=Operations(Operation("default", lambda j, a: 1), Operation("charge", lambda j, a: 2)))
    assert (door.post().body, door.post(onejob_operation="charge").body) == (1, 2)
    assert (door.get().body["answer"], door.get(query="operation=charge").body["answer"]) == (1, 2)


def test_too_little_time_is_503_and_nothing_runs() -> None:
    ran: list[Job] = []
    door = client(counted(ran))
    door.seconds = 4
    assert (door.post().status, door.post().reason, door.post().headers["Retry-After"]) == (503, "not_started", "1")
    assert ran == []


def test_status_of_what_is_not_there() -> None:
    clock = FakeClock()
    door = client(clock=clock, retention=timedelta(days=1))
    for job_id in ("job-001", "a%2Fb", "a/b", "..", "%00", "%FF", "a" * 300):
        assert (door.get(job_id).status, door.get(job_id).reason) == (404, "not_found")
    assert door.post().status == 200
    assert door.get("job%2D001").body["status"] == "completed"
    clock.advance(days=2)
    assert door.get().status == 404


def test_status_of_what_runs() -> None:
    seen: list[Any] = []
    door: Client

    def run(job: Job, attempt: Attempt) -> object:
        seen.append(door.get().body)
        return None

    door = client(run)
    assert door.post().status == 200
    assert (seen[0]["status"], seen[0]["attempts"]) == ("running", 1)
    assert "answer" not in seen[0]
    assert seen[0].keys() <= {"job_id", "operation", "status", "attempts", "first_seen", "last_error"}


def test_paths_and_methods() -> None:
    door = client()
    assert door.call("GET", "/openapi.json").body["paths"].keys() == {"/jobs", "/jobs/{id}", "/openapi.json"}
    for path, allowed in (("/jobs", "POST"), ("/jobs/a", "GET"), ("/openapi.json", "GET")):
        for method in ("DELETE", "HEAD", "OPTIONS", "PATCH", "PUT", "TRACE", "BREW"):
            refused = door.call(method, path)
            assert (refused.status, refused.headers["Allow"], refused.reason) == (405, allowed, "method_not_allowed")
            assert not [name for name in refused.headers if name.lower().startswith("access-control")]
    for path in ("/", "/jobs/", "/job", "/jobsx", "", "/openapi.json/"):
        assert (door.call("POST", path).status, door.call("GET", path).reason) == (404, "not_found")


def test_behind_a_stage_links_stay_in_it() -> None:
    door = client()
    answered = door.call("GET", "/prod/jobs/nothing", stage="prod")
    assert answered.reason == "not_found"
    assert answered.body["type"].startswith("/prod/openapi.json#")
    name = answered.body["type"].rpartition("/")[2]
    described = door.call("GET", "/prod/openapi.json", stage="prod").body
    assert answered.body["title"] in described["components"]["responses"][name]["description"]


def test_what_nobody_foresaw_is_500_without_its_text_and_the_next_request_is_served(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Broken(MemoryIdempotencyStore):
        def find(self, key: object) -> Any:
            raise RuntimeError(SECRET)

    door = client(parts={"store": Broken(FakeClock(), timedelta(days=1))})
    assert (door.get().status, door.get().reason) == (500, "unexpected")
    assert SECRET not in door.get().text
    told = capsys.readouterr().out
    assert SECRET not in told
    assert '"error_type":"RuntimeError"' in told
    assert '"Unexpected":[1.0]' in told
    assert door.post().status == 200


def test_no_payload_value_is_logged_or_told(capsys: pytest.CaptureFixture[str]) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        raise ValueError(job.payload)

    door = client(run)
    answers = [
        door.post(body=f'{{"card":"{SECRET}"}}'),
        door.post(body=f'{{"card":"{SECRET}"'),
        door.post(body=f'["{SECRET}"]'),
        door.post(body=f'{{"tenant":"{SECRET}"}}'),
        door.post(body=f'{{"{SECRET}":1,"{SECRET}":1}}'),
        door.post(key=f'"{SECRET} "'),
        door.post(body=f'{{"card":"{SECRET}"}}', content_type=SECRET),
    ]
    assert [one.status for one in answers] == [500, 400, 400, 400, 400, 400, 415]
    assert not [one.text for one in answers if SECRET in one.text]
    assert SECRET not in capsys.readouterr().out


def test_threads_of_one_handler_do_not_mix_their_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of `onejob serve`."""
    both_are_there, routed = Barrier(2, timeout=10), http_api._routed

    def wait(door: HttpHandler, request: HttpRequest, end: datetime) -> Response:
        both_are_there.wait()
        return routed(door, request, end)

    monkeypatch.setattr(http_api, "_routed", wait)
    door = client(clock=SystemClock())
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda path: door.call("GET", path).status, ("/openapi.json", "/nothing"))
        assert [*answers] == [200, 404]


def modules(name: str) -> set[str]:
    """What is loaded, beside the standard library and onejob, where this handler is imported."""
    code = f"import sys; from entrypoints import {name}; {name}.make_handler; print(*sys.modules)"
    known = {"adapters", "domain", "entrypoints", *sys.stdlib_module_names}
    environment = {**os.environ, "PYTHONPATH": "src"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, check=True)
    return {name for name in done.stdout.decode().split() if name.partition(".")[0] not in known}


def test_a_cold_start_loads_no_library_that_the_worker_of_the_queue_does_not_load() -> None:
    assert modules("http_api") <= modules("sqs_worker")


def test_64_requests_with_one_key_make_one_effect() -> None:
    ran: list[Job] = []
    with emulated():
        door = client(counted(ran), clock=SystemClock(), backend=Backend.DYNAMODB, table=TABLE, concurrency=16)
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: door.post(), range(64)))
        assert door.post().body == {"number": 1}
    assert len(ran) == 1
    assert {one.status for one in answers} <= {200, 409}
    assert {one.text for one in answers if one.status == 200} == {'{"number":1}'}


def test_respond_async_leaves_the_job_to_the_worker_and_its_status_shows_the_answer() -> None:
    ran: list[Job] = []
    operations = Operations(Operation("charge", counted(ran)))
    with emulated():
        queues = make_queues()
        door = client(
            known=operations,
            clock=SystemClock(),
            http={"jobs_queue_url": queues.url},
            authorizer=jwt(),
            backend=Backend.DYNAMODB,
            table=TABLE,
        )
        payload = '{"amount":1.50,"detail-type":"x","detail":{},"text":"\\u0000\\uffff\x7f\\u007f \u00e4"}'
        accepted = door.post(body=payload, query="operation=charge", prefer="respond-async, wait=5")
        assert (accepted.status, accepted.headers["Preference-Applied"]) == (202, "respond-async")
        assert accepted.body == {"job_id": "job-001", "operation": "charge", "status": "accepted"}
        path, _, query = accepted.headers["Location"].partition("?")
        assert (path, query) == ("/jobs/job-001", "operation=charge")
        assert door.call("GET", path, query=query).status == 404
        assert ran == []

        worker = worker_handler(known=operations, clock=SystemClock(), dead_letter_queue_url=queues.dead_letter_url)
        assert queues.invoke(worker, queues.receive(1)) == []
        assert queues.counts(queues.dead_letter_url) == (0, 0)
        told = door.call("GET", path, query=query).body
        assert (told["status"], told["answer"], told["attempts"]) == ("completed", {"number": 1}, 1)
        assert door.of(jwt("other")).call("GET", path, query=query).status == 404

        for prefer in ("respond-async", ""):  # done already: answered at once, either way
            replay = door.post(body=payload, query="operation=charge", prefer=prefer)
            assert (replay.status, replay.body) == (200, {"number": 1})
            assert replay.headers["Idempotency-Replayed"] == "true"
        assert door.post(query="operation=charge", prefer="respond-async").reason == "key_reused"
        assert queues.counts() == (0, 0)
    assert [(job.job_id, job.payload["amount"]) for job in ran] == [("job-001", 1.5)]


def test_without_a_queue_the_preference_is_passed_over() -> None:
    answered = client().post(prefer="respond-async")
    assert answered.status == 200
    assert "Preference-Applied" not in answered.headers


def test_a_queue_that_does_not_answer_is_503(capsys: pytest.CaptureFixture[str]) -> None:
    with emulated():
        door = client(http={"jobs_queue_url": make_queues().url})
        with aws_requests(SendMessage=["denied"] * 9):
            refused = door.post(prefer="respond-async")
    assert (refused.status, refused.reason, refused.headers["Retry-After"]) == (503, "queue_unavailable", "10")
    assert "may be in the queue" in refused.body["detail"]
    assert [line["cause"] for line in lines(capsys)] == ["AccessDeniedException"]


def test_on_a_standard_queue_what_a_caller_sends_is_in_the_callers_group() -> None:
    with emulated():
        queues = make_queues()
        door = client(http={"jobs_queue_url": queues.url}, clock=SystemClock())
        for key, caller in (("a", jwt()), ("b", jwt()), ("c", iam_user())):
            assert door.of(caller).post(key=f'"{key}"', prefer="respond-async").status == 202
        received = {json.loads(one["Body"])["job_id"]: one["Attributes"] for one in queues.receive(3)}
    first, second, other = (received[key]["MessageGroupId"] for key in "abc")
    assert (first == second, first == other) == (True, False)


def test_an_unknown_operation_is_never_sent() -> None:
    with emulated():
        queues = make_queues()
        door = client(http={"jobs_queue_url": queues.url})
        assert door.post(query="operation=no", prefer="respond-async").status == 404
        assert queues.counts() == (0, 0)


@pytest.mark.parametrize(
    ("start", "filling", "end"),
    [
        ('{"a":[', "1e15,", "1]}"),
        ('{"a":"', "\x7f", '"}'),
        ('{"a":"', "ä", '"}'),
        ('{"a":"', "\U0001f600", '"}'),
        ('{"a":"', "\uffff", '"}'),
        ('{"a":"', "\\u0001", '"}'),
    ],
)
def test_the_largest_payload_fits_into_a_message(start: str, filling: str, end: str) -> None:
    body = start + filling * ((262_144 - len(start + end)) // len(filling.encode())) + end
    with emulated():
        queues = make_queues()
        door = client(http={"jobs_queue_url": queues.url}, clock=SystemClock())
        assert door.post(body=body, prefer="respond-async").status == 202
        (message,) = queues.receive(1)
    assert 262_000 < len(message["Body"].encode()) <= MAX_JOB_BYTES
    assert json.loads(message["Body"])["a"] == json.loads(body)["a"]


@pytest.mark.parametrize("is_base64", [False, True])
@pytest.mark.parametrize(("more", "status"), [(-1, 202), (0, 202), (1, 413)])
def test_a_message_that_would_be_too_large_is_refused_before_anything_is_done(
    more: int, status: int, is_base64: bool
) -> None:
    limit = 500
    message = (
        '{"job_id":"job-001","operation":"default","tenant":"iam 111122223333 AIDACKCEVSQ6C2EXAMPLE","a":"\u00e4"}'
    )
    filling = "\x7f" * (limit - len(message.encode()) + more)
    body = json.dumps({"a": f"\u00e4{filling}"})  # six bytes each: not what comes is measured
    assert len(body) > 2 * limit
    store = FaultyStore(MemoryIdempotencyStore(SystemClock(), timedelta(days=1)))
    with emulated():
        queues = make_queues()
        sender = SqsJobSender(lambda: queues.sqs, queues.url, new_id, max_bytes=limit)
        door = client(parts={"sender": sender, "store": store}, clock=SystemClock())
        sent = b64encode(body.encode()).decode() if is_base64 else body
        answered = door.post(body=sent, prefer="respond-async", is_base64=is_base64)
        assert answered.status == status
        if status == 202:
            (received,) = queues.receive(1)
            assert len(received["Body"].encode()) == limit + more
        else:
            assert answered.reason == "too_large"
            assert answered.body["detail"] == "501 bytes in the queue: at most 500"
            assert queues.counts() == (0, 0)
            assert not store.calls
            assert door.post(body=sent, is_base64=is_base64).status == 200  # at once it is no message


def test_an_event_that_is_no_request_is_a_clear_error() -> None:
    door = client()
    with pytest.raises(NotAnHttpRequestError):
        door.handle({"Records": []}, Context())


def test_the_handler_is_made_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"IDEMPOTENCY_BACKEND": "memory", "HTTP_ALLOW_ANONYMOUS": "maybe"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SettingError, match="HTTP_ALLOW_ANONYMOUS='maybe'"):
        _ = http_api.handler
    monkeypatch.setenv("HTTP_ALLOW_ANONYMOUS", "false")
    handle = http_api.handler
    try:
        answer = handle(http_event("GET", "/openapi.json", authorizer=None), Context())
        assert answer["statusCode"] == 200
        assert http_api.handler is handle
    finally:
        del http_api.handler
    with pytest.raises(AttributeError, match="nothing"):
        _ = http_api.nothing


def test_an_attribute_error_of_a_users_module_is_not_taken_for_a_missing_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_api, "make_handler", lambda operations: operations.nothing)
    with pytest.raises(RuntimeError, match=r"the handler cannot be built: .* has no attribute 'nothing'"):
        _ = http_api.handler


def test_settings() -> None:
    assert HttpSettings.from_environment({}) == HttpSettings(
        tenant_claim="sub", allow_anonymous=False, jobs_queue_url=None
    )
    told = {"HTTP_TENANT_CLAIM": "cid", "HTTP_ALLOW_ANONYMOUS": "true", "JOBS_QUEUE_URL": "https://sqs/1/jobs"}
    assert HttpSettings.from_environment(told) == HttpSettings(
        tenant_claim="cid", allow_anonymous=True, jobs_queue_url="https://sqs/1/jobs"
    )
    with pytest.raises(SettingError, match="JOBS_QUEUE_URL"):
        HttpSettings.from_environment({"JOBS_QUEUE_URL": "jobs"})


def test_settings_and_problems_are_in_the_page_and_its_links_lead_somewhere() -> None:
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "http.md").read_text()
    for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page):
        assert (docs / link).exists(), link
    for name in ("HTTP_TENANT_CLAIM", "HTTP_ALLOW_ANONYMOUS", "JOBS_QUEUE_URL"):
        assert f"| `{name}` |" in page
    for problem in PROBLEMS:
        assert f"| {problem.status} | `{problem.name}` |" in page


@pytest.mark.parametrize("error", [asyncio.CancelledError("4111-1111"), GeneratorExit(), KeyboardInterrupt()])
def test_what_ends_no_process_is_a_failed_job(error: BaseException, capsys: pytest.CaptureFixture[str]) -> None:
    def run(job: Job, attempt: Attempt) -> object:
        raise error

    door = client(run)
    assert (door.post().status, door.post().reason) == (500, "operation_raised")
    assert {line["error_type"] for line in lines(capsys) if line["event"] == "job_failed"} == {type(error).__name__}
