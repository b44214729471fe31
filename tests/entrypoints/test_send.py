"""`onejob send` as a user meets it: everything checked first, sent once, and told truly."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from typer.testing import Result

from adapters.sqs.job_size import MAX_JOB_BYTES
from adapters.sqs.sender import SqsSender
from tests.support.aws import in_process
from tests.support.aws_faults import AwsFault, aws_requests, refused_entries
from tests.support.cli import file_of, objects, onejob


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with in_process():
        yield


def queue(name: str = "jobs") -> str:
    attributes: dict[Any, str] = {"FifoQueue": "true"} if name.endswith(".fifo") else {}
    return boto3.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]


def bodies(url: str) -> list[str]:
    sqs, found = boto3.client("sqs"), []
    while received := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [message["Body"] for message in received]
    return sorted(found)


def send(*arguments: str, url: str, given: bytes | None = None) -> Result:
    return onejob("send", *arguments, "--queue-url", url, given=given)


def numbered(count: int) -> list[str]:
    return [json.dumps({"job_id": f"{number:03}", "n": number}) for number in range(count)]


def test_each_line_is_a_message_as_it_stands(tmp_path: Path) -> None:
    url = queue()
    result = send(file_of(tmp_path, *numbered(23)), url=url)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "23 of 23 jobs sent\n", "")
    assert bodies(url) == numbered(23)


def test_standard_input_and_gzip(tmp_path: Path) -> None:
    url = queue()
    packed = gzip.compress("\n".join(numbered(3)).encode())
    assert objects(send("-", "--json", url=url, given=packed))[0]["sent"] == 3
    assert len(bodies(url)) == 3


def test_a_line_that_is_no_job_stops_everything_before_the_first_is_sent(tmp_path: Path) -> None:
    url = queue()
    result = send(file_of(tmp_path, *numbered(30), '{"job_id":7}', "nonsense secret"), url=url)
    assert (result.exit_code, result.stdout) == (1, "0 of 30 jobs sent, 2 lines are no job\n")
    assert result.stderr.splitlines() == [
        "line 31: invalid_payload: job_id: expected string",
        "line 32: not_json: at character 0",
        "onejob send: 2 of 32 lines are no job (invalid_payload 1, not_json 1)",
        "nothing is sent: mend them, or send the rest with --skip-invalid",
    ]
    assert bodies(url) == []


def test_the_rest_is_sent_if_told_so(tmp_path: Path) -> None:
    url = queue()
    result = send(file_of(tmp_path, "[]", *numbered(2)), "--skip-invalid", "--json", url=url)
    assert result.exit_code == 0
    assert objects(result) == [
        {"sent": 2, "jobs": 2, "invalid": 1, "refused": [], "uncertain": [], "held": [], "next_line": 4}
    ]
    assert bodies(url) == numbered(2)


def test_characters_that_sqs_does_not_carry_are_found_before(tmp_path: Path) -> None:
    result = send(file_of(tmp_path, '{"job_id":"1","a":"\uffff"}'), url=queue())
    assert "line 1: unreadable_line: a character that SQS does not carry" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("filling", ["x", "\x7f", "ä"])
def test_a_line_is_measured_as_it_is_sent_and_leaves_room_for_a_dead_letters_note(tmp_path: Path, filling: str) -> None:
    url, frame = queue(), len('{"job_id":"1","a":""}')
    room, size = MAX_JOB_BYTES - frame, len(filling.encode())
    largest = "x" * (room % size) + filling * (room // size)
    fit = [f'{{"job_id":"1","a":"{text}"}}' for text in (largest[1:], largest)]
    assert send(file_of(tmp_path, *fit), url=url).exit_code == 0
    assert bodies(url) == sorted(fit)
    result = send(file_of(tmp_path, f'{{"job_id":"1","a":"{largest}x"}}'), url=url)
    assert f"line 1: too_large: {MAX_JOB_BYTES + 1} bytes in the queue: at most {MAX_JOB_BYTES}" in result.stderr
    assert (result.exit_code, bodies(url)) == (1, [])


def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    url = queue()
    assert send(file_of(tmp_path, *numbered(3)), "--dry-run", url=url).exit_code == 0
    assert send(file_of(tmp_path, "nonsense"), "--dry-run", url=url).exit_code == 1
    assert bodies(url) == []


def test_a_lost_answer_names_the_lines_and_the_rest_goes_on(tmp_path: Path) -> None:
    url = queue()
    with aws_requests(SendMessageBatch=["ok", "lost"]) as requests:
        result = send(file_of(tmp_path, *numbered(23)), url=url)
    assert result.exit_code == 1
    assert "perhaps sent, perhaps not: lines 11-20" in result.stderr
    assert result.stdout == "13 of 23 jobs sent\n"
    assert requests.count["SendMessageBatch"] == 3
    assert len(bodies(url)) == 23


@pytest.mark.parametrize("fault", ["broken", "lost"])
def test_while_sqs_is_away_the_rest_is_not_made_uncertain(tmp_path: Path, fault: AwsFault) -> None:
    url = queue()
    file = file_of(tmp_path, *numbered(100))
    with aws_requests(SendMessageBatch=["ok", *[fault] * 9]) as requests:
        result = send(file, "--json", url=url)
    assert (result.exit_code, requests.count["SendMessageBatch"]) == (1, 4)
    (told,) = objects(result)
    assert (told["sent"], told["next_line"], told["uncertain"]) == (10, 11, list(range(11, 41)))
    assert "the same command with --from-line 11" in result.stderr
    assert send(file, "--from-line", "11", url=url).exit_code == 0
    assert set(bodies(url)) == set(numbered(100))


def test_ctrl_c_tells_where_to_go_on_and_going_on_sends_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, original, calls = queue(), SqsSender._try, []

    def interrupted(self: SqsSender, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(self, *arguments)

    file = file_of(tmp_path, *numbered(15))
    monkeypatch.setattr(SqsSender, "_try", interrupted)
    result = send(file, "--json", url=url)
    assert result.exit_code == 130
    assert "interrupted: 10 of 15 jobs were sent, and perhaps ten more" in result.stderr
    assert "the same command with --from-line 11" in result.stderr
    assert objects(result)[0]["next_line"] == 11
    assert send(file, "--from-line", "11", url=url).stdout == "5 of 5 jobs sent\n"
    assert bodies(url) == numbered(15)


def test_on_a_fifo_queue_a_job_sent_again_arrives_once_and_another_payload_does(tmp_path: Path) -> None:
    url = queue("jobs.fifo")
    file = file_of(tmp_path, '{"job_id":"1","a":1}', '{"job_id":"1","a":1}', '{"job_id":"1","a":2}')
    for _ in range(2):
        assert send(file, "--group-id", "all", url=url).exit_code == 0
    assert bodies(url) == ['{"job_id":"1","a":1}', '{"job_id":"1","a":2}']


def test_on_a_fifo_queue_each_job_can_have_a_group_of_its_own(tmp_path: Path) -> None:
    url = queue("jobs.fifo")
    with aws_requests() as requests:
        send(file_of(tmp_path, *numbered(2), numbered(1)[0]), "--group-per-job", url=url)
    asked = [[entry["MessageGroupId"] for entry in body["Entries"]] for body in requests.bodies["SendMessageBatch"]]
    (first, second), (again,) = asked
    assert (first != second, again) == (True, first)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("jobs.fifo", (), "a FIFO queue needs --group-id NAME"),
        ("jobs", ("--group-per-job",), "is no FIFO queue"),
        ("jobs", ("--group-id", ""), "--group-id '': expected"),
        ("jobs", ("--group-id", "a b"), "--group-id 'a b': expected"),
        ("jobs.fifo", ("--group-id", "x" * 129), "expected 1 to 128"),
        ("jobs.fifo", ("--group-id", "x", "--group-per-job"), "say one of them"),
        ("jobs", ("--namespace", "a.b"), "--namespace a.b: expected"),
    ],
)
def test_options_that_cannot_be_used_are_named(
    tmp_path: Path, name: str, arguments: tuple[str, ...], told: str
) -> None:
    result = send(file_of(tmp_path, *numbered(1)), *arguments, url=queue(name))
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_a_missing_file_a_missing_queue_and_denied_permission_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = queue()
    file = file_of(tmp_path, *numbered(1))
    missing = send(str(tmp_path / "none"), url=url)
    assert (missing.exit_code, "No such file" in missing.stderr) == (2, True)
    elsewhere = send(file, url=f"{url}-2")
    assert (elsewhere.exit_code, f"there is no queue {url}-2" in elsewhere.stderr) == (1, True)
    with aws_requests(SendMessageBatch=["denied"]):
        denied = send(file, url=url)
    assert (denied.exit_code, f"SendMessageBatch on {url} is denied" in denied.stderr) == (1, True)
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    homeless = send(file, url=url)
    assert (homeless.exit_code, "no region is set: --region" in homeless.stderr) == (2, True)


def in_order(url: str) -> list[str]:
    """The job ids of a FIFO queue of one group, in its order."""
    sqs, found = boto3.client("sqs"), []
    while received := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        found += [json.loads(message["Body"])["job_id"] for message in received]
        for message in received:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return found


def test_a_group_keeps_its_order_when_sqs_refuses_one_of_it_for_a_moment(tmp_path: Path) -> None:
    url = queue("jobs.fifo")
    with refused_entries(**{"001": ["InternalError"]}):
        result = send(file_of(tmp_path, *numbered(3)), "--group-id", "g", url=url)
    assert (result.exit_code, in_order(url)) == (0, ["000", "001", "002"])


def test_behind_a_job_that_sqs_refuses_for_good_nothing_of_its_group_is_sent(tmp_path: Path) -> None:
    url, file = queue("jobs.fifo"), file_of(tmp_path, *numbered(5))
    with refused_entries(**{"001": ["InvalidMessageContents!"]}):
        result = send(file, "--group-id", "g", "--json", url=url)
    assert result.exit_code == 1
    assert "line 2: SQS refuses it: InvalidMessageContents" in result.stderr
    assert "not sent, since what stands before them in their group was not: lines 3-5" in result.stderr
    assert "the same command with --from-line 2" in result.stderr
    (told,) = objects(result)
    assert (told["sent"], told["refused"], told["held"], told["next_line"]) == (1, [2], [3, 4, 5], 2)
    assert send(file, "--group-id", "g", "--from-line", "2", url=url).exit_code == 0
    assert in_order(url) == ["000", "001", "002", "003", "004"]


def test_on_a_standard_queue_a_group_is_the_tenant_of_a_fair_queue(tmp_path: Path) -> None:
    url = queue()
    with aws_requests() as requests:
        result = send(file_of(tmp_path, *numbered(12)), "--group-id", "tenant-a", url=url)
    assert (result.exit_code, result.stdout) == (0, "12 of 12 jobs sent\n")
    entries = [body["Entries"] for body in requests.bodies["SendMessageBatch"]]
    assert [len(each) for each in entries] == [10, 2], "a group orders nothing there"
    sent = [entry for each in entries for entry in each]
    assert {(entry["MessageGroupId"], "MessageDeduplicationId" in entry) for entry in sent} == {("tenant-a", False)}
    received = boto3.client("sqs").receive_message(QueueUrl=url, MessageSystemAttributeNames=["MessageGroupId"])
    assert received["Messages"][0]["Attributes"]["MessageGroupId"] == "tenant-a"
