"""The emulator executes what it is sent: nobody but this machine's own programs reaches it, and it leaves nothing."""

import http.client
import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from entrypoints.emulator import launcher
from entrypoints.emulator.guarded import KEY_HEADER
from entrypoints.emulator.launcher import Emulator, EmulatorError, emulator, only_environment
from tests.support.processes import environment_of, processes_in

pytestmark = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks at processes through Linux's /proc")

THEIRS = {
    "AWS_SECRET_ACCESS_KEY": "theirs",
    "AWS_PROFILE": "theirs",
    "AWS_ENDPOINT_URL": "http://theirs",
    "MINE": "theirs",
}
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"]
BROWSER = [
    {"Origin": "https://evil.example"},
    {"ORIGIN": "null"},
    {"origin": ""},
    {"Sec-Fetch-Site": "cross-site"},
    {"SEC-fetch-SITE": "same-origin"},
    {"sec-fetch-site": "none"},
]
from_a_browser = pytest.mark.parametrize("headers", BROWSER, ids=lambda headers: next(iter(headers)))
WITHIN_SECONDS = 20


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared emulator's temporary folder is made."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def aws(home: Path) -> Iterator[Emulator]:
    """An emulator that was started by somebody with credentials."""
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in THEIRS.items():
                patch.setenv(name, value)
            patch.setenv("HOME", os.environ.get("HOME", "/"))
            patch.setattr(tempfile, "tempdir", str(home))
            started = stack.enter_context(emulator(LAMBDA_EXECUTOR="local"))
        yield started


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where an emulator that is started now makes its temporary folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def sdk(aws: Emulator) -> Iterator[Callable[[str], Any]]:
    """Makes boto3 clients of the emptied emulator."""
    aws.reset()
    with only_environment(aws.environment()):
        yield lambda service: boto3.client(service)  # type: ignore[call-overload]


def listening_addresses(process: int) -> list[str]:
    sockets = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with suppress(OSError):
            sockets.add(os.readlink(descriptor))
    rows = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets]


def eventually(passed: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not passed():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def zipped(code: str) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("code.py", code)
    return archive.getvalue()


def function(code: str) -> dict[str, Any]:
    return {
        "FunctionName": "sent",
        "Runtime": "python3.13",
        "Role": "arn:aws:iam::000000000000:role/any",
        "Handler": "code.handler",
        "Code": {"ZipFile": zipped(code)},
    }


def status(aws: Emulator, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> int:
    """By a plain client that knows the key."""
    return plain(aws, method, path, {KEY_HEADER: aws.key} | dict(headers), body)


def plain(aws: Emulator, method: str, path: str, headers: Mapping[str, str], body: str | None = None) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", aws.port, timeout=10)) as connection:
        connection.request(method, path, body, dict(headers))
        return connection.getresponse().status


# Who reaches it.


def test_it_listens_on_the_loopback_address_and_nowhere_else(aws: Emulator, home: Path) -> None:
    (process,) = processes_in(home)
    assert listening_addresses(process) == [f"0100007F:{aws.port:04X}"]
    assert aws.url == f"http://127.0.0.1:{aws.port}"


@pytest.mark.parametrize("method", METHODS)
@from_a_browser
def test_what_a_browser_sends_is_refused(aws: Emulator, method: str, headers: dict[str, str]) -> None:
    assert status(aws, method, "/_ministack/health", headers) == 403
    assert status(aws, method, "/_ministack/health", {}) == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4566", "localhost.evil.example", "127.0.0.1.evil.com"])
def test_what_is_addressed_to_another_host_is_refused_since_its_name_may_have_been_rebound(
    aws: Emulator, host: str
) -> None:
    assert status(aws, "GET", "/_ministack/health", {"Host": host}) == 403
    for ours in (f"localhost:{aws.port}", f"127.0.0.1:{aws.port}", "abc.lambda-url.us-east-1.localhost"):
        assert status(aws, "GET", "/_ministack/health", {"Host": ours}) != 403


@from_a_browser
def test_a_web_page_cannot_create_a_function(aws: Emulator, sdk: Callable[[str], Any], headers: dict[str, str]) -> None:
    def as_a_browser(request: Any, **_: object) -> None:
        request.headers.update(headers)

    page = sdk("lambda")
    page.meta.events.register("before-send.lambda", as_a_browser)
    with pytest.raises(ClientError, match="403"):
        page.create_function(**function("def handler(event, context): ..."))
    assert sdk("lambda").list_functions()["Functions"] == []
    sdk("lambda").create_function(**function("def handler(event, context): ..."))
    assert len(sdk("lambda").list_functions()["Functions"]) == 1


def test_a_post_that_needs_no_preflight_cannot_either(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    body = json.dumps(function("") | {"Code": {"ZipFile": b64encode(zipped("")).decode()}})
    simple = {"Content-Type": "text/plain"}
    assert status(aws, "POST", "/2015-03-31/functions", simple | {"Origin": "https://evil.example"}, body) == 403
    assert sdk("lambda").list_functions()["Functions"] == []
    assert status(aws, "POST", "/2015-03-31/functions", simple, body) == 201


def signed(key: str) -> dict[str, str]:
    scope = f"Credential={key}/20261201/us-east-1/lambda/aws4_request"
    return {"Authorization": f"AWS4-HMAC-SHA256 {scope}, SignedHeaders=host, Signature=any"}


@pytest.mark.parametrize("key", ["", "test", "000000000000", "ASIAAAAAAAAAAAAAAAAA", "{key}x", "x{key}", "{lower}"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_user_of_this_machine_does_not_have_the_key(aws: Emulator, method: str, key: str) -> None:
    path, told = "/2015-03-31/functions", key.format(key=aws.key, lower=aws.key.lower())
    for headers in ({}, signed(told), {KEY_HEADER: told}, {"Host": "localhost"}, {"X-Amz-Security-Token": aws.key}):
        assert plain(aws, method, path, headers, "{}") == 403
        assert plain(aws, method, "/_ministack/reset", headers) == 403
    assert plain(aws, method, f"{path}?X-Amz-Credential={told}%2F20261201%2Fus-east-1", {}) == 403
    assert plain(aws, "GET", path + "/", signed(aws.key)) != 403


def test_who_has_not_the_key_runs_no_code(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    for theirs in ("test", "000000000000"):
        other = boto3.client("lambda", aws_access_key_id=theirs, aws_secret_access_key="test")
        with pytest.raises(ClientError, match="403"):
            other.create_function(**function("def handler(event, context): ..."))
    assert sdk("lambda").list_functions()["Functions"] == []


def test_each_start_has_a_key_of_its_own_and_nobody_sees_it(aws: Emulator, home: Path) -> None:
    with emulator() as other:
        assert len({aws.key, other.key}) == 2
        assert not replace(other, key=aws.key).is_ready()
    assert aws.key not in repr(aws)
    (process,) = processes_in(home)
    assert aws.key.encode() not in Path(f"/proc/{process}/cmdline").read_bytes()
    assert Path(f"/proc/{process}/environ").stat().st_mode & 0o077 == 0


def test_what_it_issues_is_a_key_too(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    """The CDK command line works with roles that it assumes."""
    made = sdk("sts").assume_role(RoleArn="arn:aws:iam::000000000000:role/any", RoleSessionName="any")["Credentials"]
    session = boto3.client("sqs", aws_access_key_id=made["AccessKeyId"], aws_secret_access_key=made["SecretAccessKey"])
    assert session.create_queue(QueueName="jobs")["QueueUrl"]


def test_a_function_has_the_key(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    functions = sdk("lambda")
    code = "import os\ndef handler(event, context): return os.environ['AWS_ACCESS_KEY_ID']"
    functions.create_function(**function(code))
    assert json.load(functions.invoke(FunctionName="sent")["Payload"]) == aws.key


@from_a_browser
def test_a_web_socket_of_a_browser_is_refused(
    aws: Emulator, sdk: Callable[[str], Any], headers: dict[str, str]
) -> None:
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    sockets = sdk("apigatewayv2")
    api = sockets.create_api(Name="any", ProtocolType="WEBSOCKET", RouteSelectionExpression="$request.body.x")["ApiId"]
    sockets.create_stage(ApiId=api, StageName="any")
    path = f"/_aws/execute-api/{api}/any"
    assert status(aws, "GET", path, upgrade | headers) == 403
    assert status(aws, "GET", path, upgrade) == 101


def test_the_urls_that_it_hands_out_lead_back_to_it(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    assert f":{aws.port}/" in sdk("sqs").create_queue(QueueName="jobs")["QueueUrl"]


def test_programs_reach_it_past_any_proxy(aws: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert aws.is_ready()


def test_where_nothing_listens_nothing_is_ready() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert not Emulator(port, "any").is_ready()


def test_two_stand_side_by_side_on_ports_of_their_own(aws: Emulator) -> None:
    with emulator() as other:
        assert other.port != aws.port
        assert other.is_ready()
        assert aws.is_ready()
    assert not other.is_ready()


def test_a_reset_forgets_everything(aws: Emulator, sdk: Callable[[str], Any]) -> None:
    sdk("sqs").create_queue(QueueName="jobs")
    aws.reset()
    assert not sdk("sqs").list_queues().get("QueueUrls")


# What it has of its starter.


def test_it_sees_no_credentials_no_home_and_only_a_temporary_folder_of_its_own(aws: Emulator, home: Path) -> None:
    (process,) = processes_in(home)
    seen = environment_of(process)
    assert not {name for name in seen if name.startswith("AWS_") or name in ("HOME", "MINE")}
    assert "theirs" not in seen.values()
    assert seen["LAMBDA_EXECUTOR"] == "local"
    assert [Path(seen["TMPDIR"])] == list(home.iterdir())


def test_neither_does_a_function_that_it_runs(sdk: Callable[[str], Any], home: Path) -> None:
    functions = sdk("lambda")
    functions.create_function(**function("import os\ndef handler(event, context): return dict(os.environ)"))
    seen = json.load(functions.invoke(FunctionName="sent")["Payload"])
    assert not {"HOME", "MINE", "AWS_PROFILE"} & seen.keys()
    assert not [name for name, value in seen.items() if "theirs" in value]
    assert Path(seen["TMPDIR"]).parent == home


# Its end.


def test_nothing_is_left_afterwards(own_folder: Path) -> None:
    with emulator():
        (process,) = processes_in(own_folder)
        assert Path(environment_of(process)["TMPDIR"]).is_dir()
    assert not Path(f"/proc/{process}").exists()
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_after_an_error_either(own_folder: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), emulator():
        raise error
    assert not processes_in(own_folder)
    assert list(own_folder.iterdir()) == []


def test_what_it_still_runs_ends_with_it(own_folder: Path) -> None:
    endless = "import subprocess\ndef handler(event, context): subprocess.run(['sleep', '1000'])"
    with emulator() as started, only_environment(started.environment()):
        functions = boto3.client("lambda")
        functions.create_function(**function(endless), Timeout=900)
        functions.invoke(FunctionName="sent", InvocationType="Event")
        eventually(lambda: len(processes_in(own_folder)) > 2)
    eventually(lambda: not processes_in(own_folder))
    assert list(own_folder.iterdir()) == []


def test_it_ends_with_a_starter_that_is_killed_and_removes_its_folder(tmp_path: Path) -> None:
    code = "from entrypoints.emulator.launcher import emulator\nwith emulator(): print('up', flush=True); input()"
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(launcher.PROJECT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout
        assert starter.stdout.readline() == "up\n"
        assert len(processes_in(tmp_path)) == 1
        starter.kill()
    assert starter.returncode == -signal.SIGKILL
    eventually(lambda: not processes_in(tmp_path))
    assert not list(tmp_path.glob("onejob-*"))


def test_it_ends_with_a_starter_that_is_killed_while_a_function_runs(tmp_path: Path) -> None:
    """A graceful end would wait for the answer to the invocation."""
    code = """
import boto3, threading
from botocore.config import Config
from entrypoints.emulator.launcher import emulator, only_environment
with emulator() as aws, only_environment(aws.environment()):
    functions = boto3.client("lambda", config=Config(read_timeout=1000, retries={"total_max_attempts": 1}))
    functions.create_function(**FUNCTION, Timeout=900)
    threading.Thread(target=functions.invoke, kwargs={"FunctionName": "sent"}, daemon=True).start()
    print("up", flush=True)
    input()
"""
    endless = function("import subprocess\ndef handler(event, context): subprocess.run(['sleep', '1000'])")
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(launcher.PROJECT / "src")}
    with subprocess.Popen(
        [sys.executable, "-c", code.replace("FUNCTION", repr(endless))],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout
        assert starter.stdout.readline() == "up\n"
        eventually(lambda: len(processes_in(tmp_path)) > 2)
        starter.kill()
    eventually(lambda: not processes_in(tmp_path))
    assert not list(tmp_path.glob("onejob-*"))


@pytest.mark.parametrize("name", ["precious", "onejob", "emulator-onejob-"])
def test_it_removes_no_folder_that_is_not_its_own(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    guarded = Path(launcher.__file__).with_name("guarded.py")
    refused = subprocess.run(
        [sys.executable, "-I", guarded, tmp_path / name], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert refused.returncode == 1
    assert "is not a folder of the emulator" in refused.stderr
    assert (tmp_path / name).is_dir()


# When it cannot be had.


def refusal() -> str:
    with pytest.raises(EmulatorError) as refused, emulator():
        pass
    return str(refused.value)


def test_without_uv_it_says_how_to_get_it(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(own_folder))
    assert refusal() == "uv is not on the PATH: install it with `pip install uv`, then try again"
    assert list(own_folder.iterdir()) == []


def test_without_a_lock_file_it_says_what_is_missing(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "PROJECT", own_folder)
    expected = f"the emulator is installed from the project's lock file, and {own_folder} has no uv.lock"
    assert refusal() == expected


def test_a_uv_that_is_not_where_it_was_is_looked_for_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV", "/nowhere/uv")
    with emulator() as started:
        assert started.is_ready()


def test_an_environment_without_a_python_is_told_and_leaves_nothing(
    own_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path_factory.mktemp("empty")
    monkeypatch.setattr(launcher, "locked_environment", lambda group: empty)
    assert refusal() == f"{empty}/bin/python: No such file or directory"
    assert list(own_folder.iterdir()) == []


def test_what_uv_complains_of_is_passed_on(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_folder / "uv.lock").write_text("no lock")
    (own_folder / "pyproject.toml").write_text("[project")
    monkeypatch.setattr(launcher, "PROJECT", own_folder)
    told = refusal()
    assert told.startswith("`uv sync --only-group emulator` failed:\n")
    assert "pyproject.toml" in told
    assert not list(own_folder.glob("onejob-*"))


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit('broken')",
        "import sys; print('broken', file=sys.stderr); print('no port')",
        "import sys; print(1, flush=True); sys.exit('broken')",
        "import sys, time; print('broken', file=sys.stderr); print(1, flush=True); time.sleep(1000)",
        "import sys, time; print('broken', file=sys.stderr, flush=True); time.sleep(1000)",
    ],
)
def test_a_process_that_does_not_serve_is_ended_and_what_it_wrote_is_told(
    code: str, own_folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path_factory.mktemp("broken") / "guarded.py"
    broken.write_text(code)
    monkeypatch.setattr(
        launcher,
        "guarded",
        SimpleNamespace(__file__=str(broken), FOLDER_PREFIX="onejob-emulator-", KEY_VARIABLE="KEY", KEY_HEADER="key"),
    )
    monkeypatch.setattr(launcher, "READY_WITHIN_SECONDS", 1)
    assert refusal() == "the emulator did not start:\nbroken"
    assert not processes_in(own_folder)
    assert list(own_folder.iterdir()) == []


# The environment of who uses it.


def test_only_environment_is_path_and_what_is_given_and_all_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "theirs")
    before = dict(os.environ)
    with only_environment({"GIVEN": "1"}):
        assert dict(os.environ) == {"PATH": before["PATH"], "GIVEN": "1"}
        os.environ["MADE"] = "1"
        del os.environ["PATH"]
    assert dict(os.environ) == before


def test_only_environment_restores_after_an_error_too() -> None:
    before = dict(os.environ)
    with pytest.raises(KeyboardInterrupt), only_environment({"GIVEN": "1"}):
        raise KeyboardInterrupt
    assert dict(os.environ) == before


def test_without_a_path_there_is_the_system_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    with only_environment({}):
        assert dict(os.environ) == {"PATH": os.defpath}
    assert "PATH" not in os.environ


def test_a_session_that_boto3_made_under_other_credentials_is_not_used_again() -> None:
    keys = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_SECRET_ACCESS_KEY": "s"}

    def key_id() -> str:
        client: Any = boto3.client("sqs")
        return str(client._request_signer._credentials.access_key)

    with only_environment(keys | {"AWS_ACCESS_KEY_ID": "outer"}):
        assert key_id() == "outer"
        with only_environment(keys | {"AWS_ACCESS_KEY_ID": "inner"}):
            assert key_id() == "inner"
        assert key_id() == "outer"
