"""`onejob run` as a user meets it: what is printed, written and answered to the shell."""

import fcntl
import gzip
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from adapters.files.lines import Line
from adapters.files.runner import LineResult
from adapters.files.traces import LastTraces
from domain.operation import Operations
from domain.outcome import Rejected
from entrypoints.cli.app import app
from entrypoints.cli.commands.run.options import RunOptions
from entrypoints.cli.commands.run.run import _container as run_container
from entrypoints.cli.commands.run.view import Tally
from entrypoints.cli.errors import UnusableOptionError
from entrypoints.cli.operations import chosen_operations
from entrypoints.cli.output import printable
from entrypoints.emulator.launcher import only_environment
from entrypoints.settings import Backend
from tests.support.disks import grow, make_read_only, small_disk

OPERATIONS = """
import os, time
from domain.errors import PermanentError
from domain.operation import Operation

def ok(job, attempt):
    with open("effects", "a") as file:
        file.write(f"{job.job_id}\\n")
    return {"ran": job.job_id}

def refuse(job, attempt):
    raise PermanentError("refused", "amount: expected less")

def fail(job, attempt):
    raise ValueError("secret value")

def odd(job, attempt):
    return object()

async def asynchronous(job, attempt):
    return None

class Silent(Exception):
    def __str__(self):
        raise RuntimeError

def mute(job, attempt):
    raise Silent

def wander(job, attempt):
    with open(HOME + "/effects", "a") as file:
        file.write(f"{job.job_id}\\n")
    os.chdir("/")

HOME = os.getcwd()

def talk(job, attempt):
    print("talking")
    return None

def until_renewed(job, attempt):
    import sqlite3
    seen = set()
    deadline = time.monotonic() + 10
    while len(seen) < 3:
        assert time.monotonic() < deadline, "the lease is never renewed"
        connection = sqlite3.connect(".onejob/records.sqlite")
        seen.update(connection.execute("SELECT lease_until FROM record").fetchall())
        connection.close()
        time.sleep(0.01)
    return attempt.lost()

class Deep:
    @staticmethod
    def inside(job, attempt):
        return None

def wait_for_file(job, attempt):
    open(f"started-{job.job_id}", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.01)

def swallow(job, attempt):
    os.system("cat >/dev/null")
    return ok(job, attempt)

def drain(job, attempt):
    import sys
    assert (sys.stdin.read(), os.read(0, 9)) == ("", b"")
    return ok(job, attempt)

not_callable = 3
pay = Operation("pay", ok)
λ = ok
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, with operations of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr("adapters.files.runner.FIRST_BACKOFF", timedelta(milliseconds=1))
    (tmp_path / "mine.py").write_text(OPERATIONS)
    sys.modules.pop("mine", None)
    return tmp_path


def jobs(*texts: str, name: str = "jobs.jsonl") -> str:
    Path(name).write_text("".join(f"{text}\n" for text in texts))
    return name


def numbered(count: int) -> list[str]:
    return [json.dumps({"job_id": str(number), "n": number}) for number in range(count)]


def run(*arguments: str, given: bytes | None = None) -> Result:
    return CliRunner().invoke(app, ["run", *arguments], input=given)


def effects() -> list[str]:
    return Path("effects").read_text().split() if Path("effects").exists() else []


def summary(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])["summary"]
    return found


def test_a_file_is_run_and_run_again_is_skipped(folder: Path) -> None:
    file = jobs(*numbered(20))
    first = run(file, "--operation", "mine:ok", "--json")
    assert first.exit_code == 0
    assert summary(first) | {"seconds": 0} == {
        "executed": 20,
        "skipped": 0,
        "failed": 0,
        "rejected": 0,
        "not_run": 0,
        "rejected_by_reason": {},
        "seconds": 0,
    }
    again = run(file, "--operation", "mine:ok", "--json")
    assert (again.exit_code, summary(again)["skipped"], len(effects())) == (0, 20, 20)
    assert (folder / ".onejob" / "records.sqlite").exists()


def test_the_story_names_what_it_runs_and_sums_it_up() -> None:
    file = jobs('{"job_id":"1"}', '{"job_id":"1"}', "nonsense", '{"job_id":"[red]2"}')
    result = run(file, "--operation", "mine:ok")
    assert result.exit_code == 1
    assert "operation ok, namespace onejob, store sqlite .onejob/records.sqlite" in result.stderr
    lines = result.stdout.splitlines()
    assert "line 2  1  skipped: done before" in lines
    assert "line 3  rejected: not_json: at character 0" in lines
    table = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines if line.startswith("│")]
    assert [row for row in table if row[0] not in ("duration", "rate")] == [
        ["executed", "2"],
        ["skipped", "1"],
        ["failed", "0"],
        ["rejected", "1"],
        ["not_json", "1"],
    ]


def test_standard_input_and_gzip_are_read() -> None:
    packed = gzip.compress("\n".join(numbered(3)).encode())
    assert summary(run("-", "--operation", "mine:ok", "--json", given=packed))["executed"] == 3
    Path("jobs.gz").write_bytes(packed)
    assert summary(run("jobs.gz", "--operation", "mine:ok", "--json"))["skipped"] == 3


def test_failures_are_told_by_type_and_place_and_their_text_only_if_asked_for() -> None:
    file = jobs('{"job_id":"1"}')
    quiet = run(file, "--operation", "mine:fail", "--max-attempts", "2")
    assert quiet.exit_code == 1
    assert "secret" not in quiet.output
    assert quiet.stdout.count("line 1  1  failed: ValueError at ") == 2
    assert quiet.stdout.count("mine.py:15, trying again") == 1
    loud = run(file, "--operation", "mine:fail", "--max-attempts", "1", "--show-errors", "--name", "other")
    assert "mine.py:15: secret value" in loud.stdout


def test_lines_that_did_not_finish_are_written_ready_to_be_run_again() -> None:
    file = jobs('{"job_id":"1"}', "nonsense", '{"job_id":"2", "operation":"else"}')
    result = run(file, "--operation", "mine:refuse", "--failed", "failed.jsonl", "--json")
    assert result.exit_code == 1
    assert Path("failed.jsonl").read_text().splitlines() == [
        "nonsense",
        '{"job_id":"1"}',
        '{"job_id":"2", "operation":"else"}',
    ] or sorted(Path("failed.jsonl").read_text().splitlines()) == sorted(Path(file).read_text().splitlines())
    assert summary(result)["rejected_by_reason"] == {"refused": 1, "not_json": 1, "unknown_operation": 1}
    assert "3 lines to be run again: failed.jsonl" in result.stderr
    again = run("failed.jsonl", "--operation", "mine:refuse", "--name", "refuse", "--json")
    assert summary(again)["rejected"] == 3


def test_a_line_without_a_newline_stays_a_line_of_its_own() -> None:
    Path("jobs.jsonl").write_text("a\nb")
    run("jobs.jsonl", "--operation", "mine:ok", "--failed", "failed.jsonl")
    assert Path("failed.jsonl").read_text() == "a\nb\n"


def test_two_amounts_are_never_taken_for_one() -> None:
    file = jobs(*(f'{{"job_id":"1","amount":{amount}}}' for amount in ("12345678901234567.89", "12345678901234567.01")))
    result = run(file, "--operation", "mine:ok", "--json")
    assert (summary(result)["rejected_by_reason"], effects()) == ({"inexact_number": 2}, [])


def test_an_omitted_answer_is_told() -> None:
    result = run(jobs('{"job_id":"1"}'), "--operation", "mine:odd")
    assert result.exit_code == 0
    assert "line 1  1  executed, its answer omitted: unserializable: object" in result.stdout


def test_namespace_name_and_db_each_make_another_set_of_jobs() -> None:
    file = jobs('{"job_id":"1"}')
    for more in ([], ["--namespace", "other"], ["--name", "other"], ["--db", "other.sqlite"], ["--store", "memory"]):
        assert summary(run(file, "--operation", "mine:ok", "--json", *more))["executed"] == 1
    assert summary(run(file, "--operation", "mine:ok", "--json"))["skipped"] == 1


def test_the_registered_operation_is_the_default() -> None:
    assert summary(run(jobs('{"job_id":"1"}'), "--json"))["executed"] == 1
    assert summary(run(jobs('{"job_id":"1"}'), "--operation", "default", "--json"))["skipped"] == 1
    assert summary(run(jobs('{"job_id":"1"}'), "--operation", "default", "--name", "x", "--json"))["executed"] == 1


VOLATILE = """
from domain.operation import Operation
from mine import ok

charge = Operation("bill", ok, frozenset({"sent_at"}))
"""


@pytest.mark.parametrize(("name", "key_name"), [(None, "bill"), ("other", "other")])
def test_an_operation_of_ones_own_keeps_its_name_and_its_volatile_members(name: str | None, key_name: str) -> None:
    Path("volatile.py").write_text(VOLATILE)
    sys.modules.pop("volatile", None)
    named = ("--name", name) if name else ()
    file = jobs('{"job_id":"1","sent_at":1}', '{"job_id":"1","sent_at":2}', '{"job_id":"1","amount":1}')
    result = run(file, "--operation", "volatile:charge", *named, "--json")
    assert (summary(result)["executed"], summary(result)["skipped"], effects()) == (1, 1, ["1"])
    assert summary(result)["rejected_by_reason"] == {"payload_mismatch": 1}
    operations, default = chosen_operations("volatile:charge", name)
    found = operations.find(default)
    assert found is not None
    assert (default, found.name, set(found.volatile)) == (key_name, key_name, {"sent_at"})


def test_a_function_may_lie_deeper_in_its_module() -> None:
    operations, name = chosen_operations("mine:Deep.inside", None)
    assert name == "inside"
    assert operations.find("inside") is not None


@pytest.mark.parametrize(
    ("operation", "name", "told"),
    [
        ("nothing", None, "--operation nothing: not in OPERATIONS of operations"),
        ("nowhere:f", None, "--operation nowhere:f: ModuleNotFoundError"),
        ("mine:nothing", None, "--operation mine:nothing: AttributeError"),
        ("mine:", None, "--operation mine:: AttributeError"),
        (":f", None, "--operation :f: ValueError"),
        ("mine:not_callable", None, "is neither a function nor an Operation"),
        ("mine:pay", "a b", "--name a b: expected 1 to 64 characters"),
        ("paths:charge", None, "volatile 'meta.sent_at' is a path"),
        ("mine:asynchronous", None, "async or generator function runs nothing"),
        ("mine:λ", None, "--name λ: expected 1 to 64 characters"),
        ("mine:ok", "a b", "--name a b: expected 1 to 64 characters"),
    ],
)
def test_an_operation_that_cannot_be_run_is_a_clear_error(operation: str, name: str | None, told: str) -> None:
    Path("paths.py").write_text(VOLATILE.replace("sent_at", "meta.sent_at"))
    sys.modules.pop("paths", None)
    with pytest.raises(UnusableOptionError) as refused:
        chosen_operations(operation, name)
    assert told in str(refused.value)


def test_a_module_that_breaks_while_it_is_imported_is_a_clear_error() -> None:
    Path("broken.py").write_text("1 / 0")
    result = run(jobs('{"job_id":"1"}'), "--operation", "broken:f")
    assert result.exit_code == 2
    assert "--operation broken:f: ZeroDivisionError" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl: No such file"),
        (["jobs.jsonl", "--namespace", "a b"], "--namespace a b: expected 1 to 64"),
        (["jobs.jsonl", "--db", "jobs.jsonl"], "jobs.jsonl: is no SQLite file"),
        (["jobs.jsonl", "--failed", "jobs.jsonl"], "--failed jobs.jsonl: is read, or is the database"),
        (["jobs.jsonl", "--failed", "no/such/folder"], "--failed no/such/folder: No such file"),
        (["jobs.jsonl", "--store", "dynamodb"], "IDEMPOTENCY_TABLE is not set"),
        (["jobs.jsonl", "--store", "redis"], "redis"),
        (["jobs.jsonl", "--lease", "0"], "lease"),
        (["jobs.jsonl", "--concurrency", "0"], "concurrency"),
        ([], "FILE"),
    ],
)
def test_unusable_arguments_answer_2_and_name_what_to_mend(arguments: list[str], told: str) -> None:
    jobs('{"job_id":"1"}')
    result = run(*arguments)
    assert result.exit_code == 2
    assert told in result.stderr
    assert Path("jobs.jsonl").read_text() == '{"job_id":"1"}\n', "nothing is lost"


def test_a_newer_database_is_refused() -> None:
    file = jobs('{"job_id":"1"}')
    run(file, "--operation", "mine:ok")
    with closing(sqlite3.connect(".onejob/records.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    result = run(file, "--operation", "mine:ok")
    assert (result.exit_code, "upgrade onejob" in result.stderr) == (2, True)


def test_a_file_that_breaks_off_answers_1_and_what_came_was_run() -> None:
    packed = gzip.compress("\n".join(numbered(30_000)).encode())
    Path("jobs.gz").write_bytes(packed[: len(packed) // 40])
    result = run("jobs.gz", "--operation", "mine:ok", "--store", "memory", "--json")
    assert result.exit_code == 1
    assert "stopped: jobs.gz: " in result.stderr
    assert summary(result)["executed"] > 0


def test_a_full_disk_stops_the_run_and_with_room_it_goes_on(folder: Path) -> None:
    file = jobs(*numbered(3000))
    with small_disk(folder / "disk", "800k") as disk:
        db = ["--db", str(disk / "records.sqlite"), "--operation", "mine:ok", "--json", "--lease", "1"]
        full = run(file, *db, "--failed", "failed.jsonl")
        assert full.exit_code == 1
        assert "stopped: the store cannot be used: SQLite: " in full.stderr
        assert "run the same command again to go on" in full.stderr
        grow(disk)
        again = run(file, *db)
        assert again.exit_code == 0
        assert summary(again)["executed"] + summary(again)["skipped"] == 3000
        assert summary(again)["skipped"] >= summary(full)["executed"] > 0
    assert len(set(effects())) == 3000
    assert len(effects()) - 3000 <= 10, "none twice but what ran when the disk was full"


def test_a_read_only_folder_answers_2(folder: Path) -> None:
    file = jobs('{"job_id":"1"}')
    with small_disk(folder / "disk") as disk:
        make_read_only(disk)
        result = run(file, "--db", str(disk / "records.sqlite"), "--operation", "mine:ok")
    assert result.exit_code == 2
    assert "Read-only file system" in result.stderr
    assert effects() == []


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\nb", "a\u202eb", "bell\x07"])
def test_nothing_that_a_terminal_obeys_is_printed(text: str) -> None:
    assert printable(text).isprintable()


def rows(statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(".onejob/records.sqlite")) as connection:
        return connection.execute(statement).fetchall()


def test_a_lease_is_renewed_while_its_operation_runs() -> None:
    result = run(jobs('{"job_id":"1"}'), "--operation", "mine:until_renewed", "--lease", "1", "--json")
    assert (result.exit_code, rows("SELECT answer FROM record")) == (0, [("false",)]), result.output


def test_the_lease_is_as_long_as_it_was_asked_for() -> None:
    run(jobs('{"job_id":"1"}'), "--operation", "mine:ok", "--lease", "1234")
    (seconds,) = rows("SELECT (lease_until - first_seen) / 1000000 FROM record")
    assert 1233 <= seconds[0] <= 1235


def test_what_is_done_is_skipped_ever_after_unless_the_environment_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run(jobs('{"job_id":"1"}'), "--operation", "mine:ok")
    assert rows("SELECT (expires_at - first_seen) / 1000000 / 86400 / 365 FROM record") == [(100,)]
    monkeypatch.setenv("IDEMPOTENCY_EXPIRES_AFTER_SECONDS", "3600")
    run(jobs('{"job_id":"2"}'), "--operation", "mine:ok")
    assert rows("SELECT (expires_at - first_seen) / 1000000 / 60 FROM record WHERE job_id = '2'") == [(60,)]


def test_a_table_that_others_share_keeps_their_retention() -> None:
    options = RunOptions(
        source="-",
        operation=None,
        name=None,
        store=Backend.DYNAMODB,
        db=Path("x"),
        namespace="onejob",
        concurrency=1,
        lease=timedelta(seconds=1),
        max_attempts=1,
        failed=None,
        as_json=False,
        error_messages=False,
    )
    with only_environment({"IDEMPOTENCY_TABLE": "records"}):
        settings = run_container(options, Operations(), LastTraces()).settings()
    assert settings.retention == timedelta(days=28)


def test_each_run_of_a_file_tries_a_job_as_often_as_it_may() -> None:
    file = jobs('{"job_id":"1"}')
    options = ["--operation", "mine:fail", "--max-attempts", "2", "--json"]
    for number in (1, 2, 3):
        assert summary(run(file, *options))["failed"] == 1
        assert rows("SELECT attempts, runs FROM record") == [(2 * number, 0)]


def test_the_environment_sets_what_the_command_line_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDEMPOTENCY_NAMESPACE", "prod")
    monkeypatch.setenv("IDEMPOTENCY_DB", "prod.sqlite")
    file = jobs('{"job_id":"1"}')
    assert "namespace prod, store sqlite prod.sqlite" in run(file, "--operation", "mine:ok").stderr
    assert "namespace x, store sqlite prod.sqlite" in run(file, "--operation", "mine:ok", "--namespace", "x").stderr


def test_what_operations_print_stays_out_of_the_objects() -> None:
    result = run(jobs('{"job_id":"1"}', "nonsense"), "--operation", "mine:talk", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()]
    assert "talking" in result.stderr
    assert "talking" in run(jobs('{"job_id":"2"}'), "--operation", "mine:talk").stdout


def test_an_error_without_a_text_is_told_all_the_same() -> None:
    result = run(jobs('{"job_id":"1"}'), "--operation", "mine:mute", "--max-attempts", "1", "--show-errors")
    assert "mine.py" in result.stdout
    assert "no text: RuntimeError" in result.stdout


def test_codes_that_differ_from_job_to_job_do_not_fill_the_summary() -> None:
    tally = Tally()
    for number in range(100):
        tally.add(LineResult(Line(number, b"", None, None, 0), None, Rejected(f"code-{number}"), True))
    assert len(tally.as_object()["rejected_by_reason"]) == 31
    assert tally.reasons["other reasons"] == 70


def test_the_handlers_of_signals_are_as_they_were() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    run(jobs('{"job_id":"1"}'), "--operation", "mine:ok")
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_current_folder_is_searched_last() -> None:
    Path("calendar.py").write_text("def charge(job, attempt): ...")
    with pytest.raises(UnusableOptionError, match=r"AttributeError: .* \(in .*calendar\.py\)$"):
        chosen_operations("calendar:charge", None)


@pytest.mark.parametrize("code", ["raise SystemExit(0)", "import sys; sys.exit()"])
def test_a_module_that_exits_while_it_is_imported_answers_2(code: str) -> None:
    Path("leaving.py").write_text(code)
    result = run(jobs('{"job_id":"1"}'), "--operation", "leaving:f")
    assert (result.exit_code, "--operation leaving:f: SystemExit" in result.stderr) == (2, True)


@pytest.mark.parametrize("failed", [".onejob/records.sqlite", ".onejob/records.sqlite-wal", "jobs.jsonl"])
def test_failed_lines_never_overwrite_what_is_in_use(failed: str) -> None:
    file = jobs('{"job_id":"1"}')
    run(file, "--operation", "mine:ok")
    Path(failed).touch()
    before = Path(failed).read_bytes()
    result = run(file, "--operation", "mine:ok", "--failed", failed)
    assert (result.exit_code, f"--failed {failed}: is read, or is the database" in result.stderr) == (2, True)
    assert failed.endswith("-wal") or Path(failed).read_bytes()[:1000] == before[:1000]
    assert summary(run(file, "--operation", "mine:ok", "--json"))["skipped"] == 1


@pytest.mark.parametrize("wrong", [["--operation", "nothing"], ["--db", "mine.py"], ["--namespace", ""]])
def test_failed_lines_of_the_last_run_survive_a_run_that_cannot_begin(wrong: list[str]) -> None:
    Path("failed.jsonl").write_text("precious\n")
    assert run(jobs('{"job_id":"1"}'), *wrong, "--failed", "failed.jsonl").exit_code == 2
    assert Path("failed.jsonl").read_text() == "precious\n"


def test_a_line_that_is_too_long_is_not_cut_into_the_failed_lines() -> None:
    Path("jobs.jsonl").write_text("x" * 2_000_000 + "\nnonsense\n")
    result = run("jobs.jsonl", "--operation", "mine:ok", "--failed", "failed.jsonl", "--json")
    assert summary(result)["rejected"] == 2
    assert Path("failed.jsonl").read_text() == "nonsense\n"


def test_a_store_that_cannot_be_made_answers_2(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("IDEMPOTENCY_TABLE", "records")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    result = run(jobs('{"job_id":"1"}'), "--operation", "mine:ok", "--store", "dynamodb")
    assert (result.exit_code, "--store dynamodb: NoRegionError" in result.stderr) == (2, True)


# As a process: terminals, pipes and signals.


def start(*arguments: str, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", "from entrypoints.cli.app import main; main()", "run", *arguments]
    return subprocess.Popen(command, text=True, **options)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_what_runs_and_a_second_run_does_the_rest(number: int) -> None:
    file = jobs(*numbered(50))
    options = ["--operation", "mine:wait_for_file", "--concurrency", "2", "--json"]
    process = start(file, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: len(list(Path().glob("started-*"))) == 2)
    process.send_signal(number)
    assert process.stderr is not None
    until(lambda: "stopping" in process.stderr.readline())  # type: ignore[union-attr]
    Path("go").touch()
    stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "run the same command again to go on" in stderr
    ended = json.loads(stdout.splitlines()[-1])["summary"]
    assert (ended["executed"], ended["failed"]) == (2, 0)
    again = run(file, *options)
    assert (summary(again)["skipped"], summary(again)["executed"]) == (2, 48)


@pytest.mark.parametrize("source", ["/dev/stdin", "-", "pipe"])
def test_a_signal_while_the_next_line_is_waited_for_ends_it(source: str) -> None:
    os.mkfifo("pipe")
    process = start(
        source,
        "--operation",
        "mine:ok",
        "--json",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with ExitStack() as stack:
        writing = stack.enter_context(Path("pipe").open("w")) if source == "pipe" else process.stdin
        writing.write('{"job_id":"1"}\n')
        writing.flush()
        until(lambda: effects() == ["1"])
        process.send_signal(signal.SIGINT)
        assert json.loads(process.stdout.readlines()[-1])["summary"]["executed"] == 1
        assert process.wait(20) == 130
    for stream in (process.stdin, process.stdout, process.stderr):
        assert stream is not None
        stream.close()


def test_a_signal_while_the_output_is_blocked_is_no_error() -> None:
    process = start(
        jobs(*["nonsense"] * 20_000), "--operation", "mine:ok", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    until(lambda: _is_full(process.stdout))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    assert "rejected" in stdout.splitlines()[-3] + stdout


def _is_full(pipe: Any) -> bool:
    held = int.from_bytes(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, b"\0" * 4), sys.byteorder)
    return held > 60_000


@pytest.mark.parametrize("output", ["/dev/full", "a closed pipe"])
def test_an_output_that_cannot_be_written_stops_the_run_and_says_so(output: str) -> None:
    file = jobs(*["nonsense"] * 5_000, *numbered(20))
    if output == "/dev/full":
        with Path(output).open("w") as full:
            process = start(file, "--operation", "mine:ok", stdout=full, stderr=subprocess.PIPE)
    else:
        process = start(file, "--operation", "mine:ok", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(20) == 1
    assert "onejob run: stopped: output: " in told
    assert "Traceback" not in told


def test_failed_lines_that_cannot_be_written_stop_the_run_and_say_so() -> None:
    result = run(jobs("nonsense"), "--operation", "mine:ok", "--failed", "/dev/full")
    assert (result.exit_code, "stopped: --failed /dev/full: No space left" in result.stderr) == (1, True)


@pytest.mark.parametrize("closed", [0, 1])
def test_a_closed_stream_is_an_error_and_no_traceback(closed: int) -> None:
    file = "-" if closed == 0 else jobs('{"job_id":"1"}')
    redirect = "<&-" if closed == 0 else ">&-"
    command = f"{sys.executable} -c 'from entrypoints.cli.app import main; main()' run {file} --operation mine:ok"
    done = subprocess.run(["bash", "-c", f"{command} {redirect}"], stderr=subprocess.PIPE, text=True)
    assert "Traceback" not in done.stderr
    assert done.returncode == 2, done.stderr
    assert "is closed" in done.stderr


def shell(command: str) -> "subprocess.CompletedProcess[str]":
    onejob = f"{sys.executable} -c 'from entrypoints.cli.app import main; main()'"
    return subprocess.run(
        ["bash", "-c", command.replace("onejob", onejob)], capture_output=True, text=True, check=False, timeout=30
    )


def test_without_standard_error_it_runs_all_the_same() -> None:
    jobs('{"job_id":"1"}')
    assert shell("onejob run jobs.jsonl --operation mine:ok --json 2>&-").returncode == 0
    assert effects() == ["1"]


def test_failed_lines_of_the_last_run_survive_a_closed_output() -> None:
    jobs("nonsense")
    Path("failed.jsonl").write_text("precious\n")
    assert shell("onejob run jobs.jsonl --operation mine:ok --failed failed.jsonl >&-").returncode == 2
    assert Path("failed.jsonl").read_text() == "precious\n"


@pytest.mark.parametrize(("failed", "status"), [("/dev/null", 1), ("/dev/full", 1)])
def test_failed_lines_may_go_to_a_device(failed: str, status: int) -> None:
    jobs("nonsense", "nonsense")
    done = shell(f"onejob run jobs.jsonl --operation mine:ok --failed {failed} </dev/null")
    assert (done.returncode, "Traceback" in done.stderr) == (status, False)


@pytest.mark.parametrize("before", [None, 0o644, 0o666])
def test_failed_lines_are_nobody_elses(before: int | None) -> None:
    if before is not None:
        Path("failed.jsonl").write_text("of the last run\n")
        Path("failed.jsonl").chmod(before)
        os.link("failed.jsonl", "seen")
    previous = os.umask(0)
    try:
        run(jobs("nonsense"), "--operation", "mine:ok", "--failed", "failed.jsonl")
    finally:
        os.umask(previous)
    assert (Path("failed.jsonl").read_text(), Path("failed.jsonl").stat().st_mode & 0o777) == ("nonsense\n", 0o600)
    assert before is None or Path("seen").read_text() == "of the last run\n", "written aside"
    assert not list(Path().glob(".failed*"))


@pytest.mark.parametrize("target", ["theirs", "nowhere", "pipe", "folder", "/dev/null"])
def test_failed_lines_follow_no_link(target: str) -> None:
    Path("theirs").write_text("precious\n")
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("failed.jsonl").symlink_to(target)
    result = run(jobs("nonsense"), "--operation", "mine:ok", "--failed", "failed.jsonl")
    assert (result.exit_code, "--failed failed.jsonl: is a link" in result.stderr) == (2, True)
    assert (Path("theirs").read_text(), Path("nowhere").exists()) == ("precious\n", False)


def test_a_link_that_is_made_meanwhile_is_replaced_and_not_followed() -> None:
    Path("theirs").write_text("precious\n")
    Path("linking.py").write_text("import os\ndef link(job, attempt): os.symlink('theirs', 'failed.jsonl'); 1 / 0")
    file = jobs('{"job_id":"1"}')
    run(file, "--operation", "linking:link", "--failed", "failed.jsonl", "--max-attempts", "1")
    assert (Path("theirs").read_text(), Path("failed.jsonl").is_symlink()) == ("precious\n", False)
    assert Path("failed.jsonl").read_text() == Path(file).read_text()


def test_failed_lines_may_go_to_another_output() -> None:
    jobs("nonsense")
    done = shell("onejob run jobs.jsonl --operation mine:ok --failed /dev/stdout --json | cat")
    assert "nonsense" in done.stdout.splitlines()
    shell("echo before >out; onejob run jobs.jsonl --operation mine:ok --failed /dev/fd/3 3>>out")
    assert Path("out").read_text() == "before\nnonsense\n"


def test_a_folder_is_no_file_for_failed_lines() -> None:
    Path("folder").mkdir()
    result = run(jobs("nonsense"), "--operation", "mine:ok", "--failed", "folder")
    assert (result.exit_code, "--failed folder: Is a directory" in result.stderr) == (2, True)


def test_failed_lines_that_cannot_take_their_name_are_kept_and_said() -> None:
    Path("blocking.py").write_text("import os\ndef block(job, attempt): os.mkdir('failed.jsonl'); 1 / 0")
    result = run(
        jobs('{"job_id":"1"}'), "--operation", "blocking:block", "--failed", "failed.jsonl", "--max-attempts", "1"
    )
    (kept,) = Path().glob(".failed.jsonl.*")
    assert (result.exit_code, f"what was written is in {kept}" in result.stderr) == (1, True)
    assert kept.read_text() == '{"job_id":"1"}\n'


def test_an_operation_that_changes_the_folder_changes_nothing_else() -> None:
    file = jobs(*numbered(5))
    done = shell(f"onejob run {file} --operation mine:wander --json")
    assert done.returncode == 0, done.stderr
    assert len(effects()) == 5


def test_standard_input_is_not_overwritten_by_its_own_failed_lines() -> None:
    with Path(jobs("nonsense")).open() as given:
        process = start("-", "--operation", "mine:ok", "--failed", "jobs.jsonl", stdin=given, stderr=subprocess.PIPE)
    assert "is read, or is the database" in process.communicate(timeout=20)[1]
    assert (process.returncode, Path("jobs.jsonl").read_text()) == (2, "nonsense\n")


NAMES_OF_STANDARD_INPUT = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "link", "pipe"]


@pytest.mark.parametrize("operation", ["mine:swallow", "mine:drain", "greedy:ok"])
@pytest.mark.parametrize("source", NAMES_OF_STANDARD_INPUT)
def test_an_operation_and_its_children_see_an_empty_standard_input(source: str, operation: str) -> None:
    Path("greedy.py").write_text("import os, sys\nos.system('cat >/dev/null')\nsys.stdin.read()\nfrom mine import ok")
    Path("link").symlink_to("/dev/stdin")
    os.mkfifo("pipe")
    lines = "".join(json.dumps({"job_id": str(n), "fill": "x" * 8000}) + "\n" for n in range(60))
    process = start(
        source, "--operation", operation, "--concurrency", "1", "--json", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    if source == "pipe":
        Path("pipe").write_text(lines)
    stdout, _ = process.communicate(None if source == "pipe" else lines, timeout=60)
    assert process.returncode == 0
    assert json.loads(stdout.splitlines()[-1])["summary"]["executed"] == len(effects()) == 60


@pytest.mark.parametrize("source", ["-", "/dev/stdin", "jobs.jsonl"])
def test_a_file_given_as_standard_input_is_not_swallowed_either(source: str) -> None:
    jobs(*(json.dumps({"job_id": str(n), "fill": "x" * 8000}) for n in range(60)))
    with Path("jobs.jsonl").open() as given:
        process = start(source, "--operation", "mine:swallow", "--json", stdin=given, stdout=subprocess.PIPE)
        stdout, _ = process.communicate(timeout=60)
        assert os.lseek(given.fileno(), 0, os.SEEK_CUR) == (given.seek(0, 2) if source == "-" else 0)
    assert json.loads(stdout.splitlines()[-1])["summary"]["executed"] == 60


def test_a_shell_that_loops_over_its_input_keeps_it() -> None:
    jobs('{"job_id":"1"}')
    done = shell("printf 'a\\nb\\n' | while read n; do onejob run jobs.jsonl --name $n --operation mine:swallow; done")
    assert (done.returncode, effects()) == (0, ["1", "1"])


@pytest.mark.parametrize("closed", ["<&-", "2>&- </dev/null", "0<&- 2>&-"])
def test_with_closed_streams_an_operation_still_sees_an_empty_input(closed: str) -> None:
    done = shell(f"onejob run {jobs(*numbered(3))} --operation mine:drain {closed}")
    assert (done.returncode, len(effects())) == (0, 3)


def test_standard_input_is_as_it_was_afterwards() -> None:
    before = (os.fstat(0), sys.stdin)
    run(jobs('{"job_id":"1"}'), "--operation", "mine:drain")
    assert os.path.samestat(os.fstat(0), before[0])
    assert sys.stdin is before[1]


def test_a_second_signal_leaves_at_once() -> None:
    process = start(jobs(*numbered(5)), "--operation", "mine:wait_for_file", stderr=subprocess.PIPE)
    until(lambda: bool(list(Path().glob("started-*"))))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    until(lambda: "stopping" in process.stderr.readline())  # type: ignore[union-attr]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.stderr.close()


def test_a_terminal_sees_a_bar_and_gets_its_cursor_back() -> None:
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    file = jobs(*numbered(300), "nonsense", '{"job_id":"[bold]x[/bold]"}', '{"job_id":"[bold]x[/bold]"}')
    process = start(file, "--operation", "mine:ok", stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    seen = b""
    with suppress(OSError):
        while chunk := os.read(master, 65536):
            seen += chunk
    assert process.wait(20) == 1
    os.close(master)
    text = seen.decode()
    assert "line 301" in text
    assert "[bold]x[/bold]" in text, "shown as it is, not as markup"
    assert "/s" in text
    assert "executed" in text
    assert text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l")
