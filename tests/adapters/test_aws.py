"""An answer of status 200 counts only with AWS's own evidence: on each call of the store and of the queues."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pickle import dumps, loads
from threading import Barrier, Thread
from typing import Any, cast

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from adapters.aws import CallFailedError, NoEvidenceError, call, check_sent, client, md5_of
from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.dead_letter_queue import DeadLetterQueue
from adapters.sqs.job_sender import SqsJobSender
from adapters.sqs.message import Message, read_event
from adapters.sqs.polling.receiver import SqsReceiver
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.queue import SqsQueue, failures
from adapters.sqs.received import lambda_event
from adapters.sqs.sender import Outgoing, SqsSender
from adapters.stores.dynamodb.admin import DynamoDBStoreAdmin
from adapters.stores.dynamodb.layer import FencedDynamoDBPersistenceLayer
from adapters.stores.dynamodb.store import DynamoDBIdempotencyStore
from adapters.threads.seam import SYSTEM_THREADS
from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.life import FIRST_CLAIM
from domain.record import Acquired, Claim, Record, Status
from entrypoints.container import job_sender
from entrypoints.emulator.launcher import Emulator, only_environment
from entrypoints.http_settings import HttpSettings
from entrypoints.settings import Backend, Settings
from tests.support.aws import TABLE, emulated, in_process
from tests.support.clock import FakeClock
from tests.support.jobs import job
from tests.support.notes import NOTES
from tests.support.portal import BODIES, Portal, portal
from tests.support.sqs import Context, event, record
from tests.support.sqs_aws import make_queues
from tests.support.worker import handler

JOB = job("job-001")
DAY, LEASE = timedelta(days=1), timedelta(minutes=1)
CLAIM = Claim(JOB.key, "a", 1)
KEYS = {"AWS_ACCESS_KEY_ID": "t", "AWS_SECRET_ACCESS_KEY": "t", "AWS_DEFAULT_REGION": "us-east-1"}
ONCE = Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=5, parameter_validation=False)
MESSAGE = Message("m1", "h1", '{"job_id":"1"}', "arn:aws:sqs:us-east-1:000000000000:jobs")
URL = "http://127.0.0.1:1/000000000000/jobs"


def store_at(url: str, clock: FakeClock | None = None) -> DynamoDBIdempotencyStore:
    return DynamoDBIdempotencyStore(layer_at(url), clock or FakeClock(), DAY)


def layer_at(url: str) -> FencedDynamoDBPersistenceLayer:
    made = boto3.client("dynamodb", endpoint_url=url, config=ONCE)  # the layer itself has it give evidence
    return FencedDynamoDBPersistenceLayer(TABLE, boto3_client=made)


def seen(status: Status = Status.COMPLETED) -> Record:
    now = FakeClock().now()
    return Record(JOB.key, JOB.job_id, status, "a", 1, now, now, None)


STORE: dict[str, Callable[[DynamoDBIdempotencyStore, DynamoDBStoreAdmin], object]] = {
    "claim": lambda store, _: store.claim(JOB, owner="a", lease=LEASE),
    "begin": lambda store, _: store.begin(CLAIM, FIRST_CLAIM),
    "complete": lambda store, _: store.complete(CLAIM, Answer('"ok"')),
    "release": lambda store, _: store.release(CLAIM, "Error"),
    "renew": lambda store, _: store.renew(CLAIM, LEASE),
    "find": lambda store, _: store.find(JOB.key),
    "look": lambda _, admin: admin.look(JOB.key),
    "list": lambda _, admin: list(admin.records()),
    "forget": lambda _, admin: admin.forget(seen()),
    "restart": lambda _, admin: admin.restart(seen()),
    "purge": lambda _, admin: admin.purge(),
}


@pytest.mark.parametrize("with_id", [False, True])
@pytest.mark.parametrize("body", list(BODIES))
def test_a_store_that_anything_answers_for_cannot_answer(body: str, with_id: bool) -> None:
    with only_environment(KEYS), portal(BODIES[body], with_id=with_id) as server:
        layer = layer_at(server.url)
        store, admin = (kind(layer, FakeClock(), DAY) for kind in (DynamoDBIdempotencyStore, DynamoDBStoreAdmin))
        for name, ask in STORE.items():
            with pytest.raises(StoreUnavailableError):
                pytest.fail(f"{name}: {ask(cast(Any, store), cast(Any, admin))}")
        assert server.requests.total() == len(STORE)


SQS: dict[str, Callable[[Any], object]] = {
    "bury": lambda sqs: SqsQueue(lambda: sqs, URL).dead_letter(DeadLetter(MESSAGE, {})),
    "receive": lambda sqs: SqsReceiver(sqs, URL, visibility=LEASE, poll=timedelta()).receive(10),
    "find": lambda sqs: SqsReceiver(sqs, URL, visibility=LEASE, poll=timedelta()).find(),
    "letters": lambda sqs: list(DeadLetterQueue(sqs, URL, MESSAGE.queue_arn, NOTES).letters()),
}


@pytest.mark.parametrize("body", list(BODIES))
def test_nothing_counts_as_done_by_a_queue_that_anything_answers_for(body: str) -> None:
    with only_environment(KEYS), portal(BODIES[body]) as server:
        sqs = client("sqs", endpoint_url=server.url, config=ONCE)
        for name, ask in SQS.items():
            with pytest.raises(QueueUnavailableError):
                pytest.fail(f"{name}: {ask(sqs)}")
        queue = SqsQueue(lambda: sqs, URL)
        assert len(queue.delete([MESSAGE, MESSAGE])) == 2
        assert len(queue.set_visibility([(MESSAGE, 5)])) == 1
        assert SqsJobSender(lambda: sqs, URL, lambda: "1").send("{}", JOB) is not None
        box = DeadLetterQueue(sqs, URL, MESSAGE.queue_arn, NOTES, {"m1": "h1"})
        assert box.put_back() == 1
        (sent,) = SqsSender(sqs, URL, FakeClock(), lambda: 0.0).send([Outgoing(1, "{}")])
        assert sent.sent == []
        assert [one.number for one in sent.uncertain] == [1]


@pytest.mark.parametrize("body", [b"{}", b'{"Successful":[],"Failed":[]}', b'{"Successful":[{"Id":"7"}]}'])
def test_nor_by_one_whose_answers_have_an_id_and_lack_the_rest(body: bytes) -> None:
    with only_environment(KEYS), portal(body, with_id=True) as server:
        sqs = client("sqs", endpoint_url=server.url, config=ONCE)
        queue = SqsQueue(lambda: sqs, URL)
        with pytest.raises(QueueUnavailableError):
            queue.dead_letter(DeadLetter(MESSAGE, {}))
        assert queue.delete([MESSAGE]) == ["NoEvidenceError"]
        assert queue.set_visibility([(MESSAGE, 1)]) == ["NoEvidenceError"]
        assert SqsJobSender(lambda: sqs, URL, lambda: "1").send("{}", JOB) == "NoEvidenceError"
        (sent,) = SqsSender(sqs, URL, FakeClock(), lambda: 0.0).send([Outgoing(1, "{}")])
        assert [one.number for one in sent.uncertain] == [1]


@contextmanager
def proxied(change: Callable[[str, bytes], bytes | None]) -> Iterator[tuple[Portal, Emulator]]:
    """The emulator behind a proxy, which stands in the environment."""
    with (
        emulated() as running,
        portal(change, upstream=running.environment()["AWS_ENDPOINT_URL"]) as server,
        only_environment({**running.environment(), "AWS_ENDPOINT_URL": server.url}),
    ):
        yield server, running


def without(*members: str) -> Callable[[str, bytes], bytes | None]:
    def change(name: str, body: bytes) -> bytes | None:
        if name not in ("UpdateItem", "GetItem"):
            return None
        answer = json.loads(body)
        return json.dumps({key: value for key, value in answer.items() if key not in members}).encode()

    return change


@pytest.mark.parametrize(
    "change",
    [
        without("Attributes"),
        without("Attributes", "ConsumedCapacity", "Item"),
        lambda name, _: b"{}" if name == "UpdateItem" else None,
        lambda name, body: body[:-7] if name == "UpdateItem" else None,
        lambda name, _: b"" if name == "UpdateItem" else None,
    ],
    ids=["no old item", "nothing", "empty object", "truncated", "empty"],
)
def test_an_effect_happens_once_behind_a_proxy_that_loses_parts_of_answers(
    change: Callable[[str, bytes], bytes | None],
) -> None:
    runs: list[int] = []

    def run(_job: object, attempt: Any) -> str:
        runs.append(attempt.number)
        return "ok"

    clock = FakeClock()
    with proxied(change) as (server, _):
        server.is_on = False
        store = store_at(server.url, clock)
        first = store.claim(job("job-001"), owner="killed", lease=timedelta(seconds=1))
        assert isinstance(first, Acquired)
        clock.advance(seconds=60)
        server.is_on = True
        handle = handler(run, clock=clock)
        for receives in range(1, 4):
            handle(event(record("m", '{"job_id":"job-001"}', receives=receives)), Context())
            clock.advance(minutes=3)
        server.is_on = False
        handle(event(record("m", '{"job_id":"job-001"}', receives=4)), Context())
        clock.advance(minutes=3)
        handle(event(record("m", '{"job_id":"job-001"}', receives=5)), Context())
    assert len(runs) == 1


@pytest.mark.parametrize(
    "answer", [{}, {"ResponseMetadata": {}}, {"Attributes": {}}, {"Attributes": {"id": {"S": "x"}}}]
)
def test_a_claim_without_the_old_item_is_asked_again_and_is_the_attempt_that_it_is(answer: dict[str, Any]) -> None:
    clock = FakeClock()
    with in_process():
        layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=boto3.client("dynamodb", config=ONCE))
        store, asked = DynamoDBIdempotencyStore(layer, clock, DAY), layer.client.update_item
        store.claim(JOB, owner="killed", lease=timedelta(seconds=1))
        clock.advance(seconds=60)
        layer.client.update_item = lambda **request: (asked(**request), answer)[1]  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreUnavailableError, match="UpdateItem"):
            store.claim(JOB, owner="b", lease=LEASE)
        layer.client.update_item = asked  # type: ignore[method-assign]
        again = store.claim(JOB, owner="b", lease=LEASE)
    assert isinstance(again, Acquired)
    assert again.claim.attempt == 2


@pytest.mark.parametrize("name", ["begin", "complete", "release", "renew"])
@pytest.mark.parametrize("answer", [{}, {"Attributes": {}}, {"Attributes": {"id": {"S": "x"}}}])
def test_a_write_that_does_not_show_what_stood_there_is_asked_again_and_lands(
    name: str, answer: dict[str, Any]
) -> None:
    with in_process():
        layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=boto3.client("dynamodb", config=ONCE))
        store, asked = DynamoDBIdempotencyStore(layer, FakeClock(), DAY), layer.client.update_item
        store.claim(JOB, owner="a", lease=timedelta(seconds=1))
        layer.client.update_item = lambda **_: answer  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreUnavailableError, match="UpdateItem"):
            STORE[name](store, cast(Any, None))
        layer.client.update_item = asked  # type: ignore[method-assign]
        STORE[name](store, cast(Any, None))


@pytest.mark.parametrize("answer", [{}, {"Item": {}}, {"Item": {"id": {"S": "x"}}}])
def test_a_consistent_read_that_shows_nothing_of_the_table_cannot_answer(answer: dict[str, Any]) -> None:
    with in_process():
        layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=boto3.client("dynamodb", config=ONCE))
        assert DynamoDBStoreAdmin(layer, FakeClock(), DAY).look(JOB.key) is None
        layer.client.get_item = lambda **_: answer  # type: ignore[method-assign, assignment]
        with pytest.raises(StoreUnavailableError, match="GetItem"):
            DynamoDBStoreAdmin(layer, FakeClock(), DAY).look(JOB.key)


@pytest.mark.parametrize("error", [RuntimeError("refresh"), OSError(5, "token"), KeyError("AccessKeyId"), Exception()])
def test_whatever_a_call_raises_cannot_answer(error: Exception) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            if name == "meta":
                raise AttributeError(name)

            def ask(**_: Any) -> Any:
                raise error

            return ask

    broken: Any = Broken()
    layer = FencedDynamoDBPersistenceLayer(TABLE, boto3_client=broken)
    store, admin = (kind(layer, FakeClock(), DAY) for kind in (DynamoDBIdempotencyStore, DynamoDBStoreAdmin))
    for ask in STORE.values():
        with pytest.raises(StoreUnavailableError, match=type(error).__name__):
            ask(cast(Any, store), cast(Any, admin))
    for request in SQS.values():
        with pytest.raises(QueueUnavailableError):
            request(broken)
    assert SqsJobSender(lambda: broken, URL, lambda: "1").send("{}", JOB) == type(error).__name__
    (sent,) = SqsSender(broken, URL, FakeClock(), lambda: 0.0).send([Outgoing(1, "{}")])
    assert [one.number for one in sent.uncertain] == [1]


def test_a_queue_whose_client_cannot_be_made_cannot_answer() -> None:
    def make() -> Any:
        raise RuntimeError("refresh")

    queue = SqsQueue(make, URL)
    with pytest.raises(QueueUnavailableError, match="RuntimeError"):
        queue.dead_letter(DeadLetter(MESSAGE, {}))
    assert queue.delete([MESSAGE]) == ["RuntimeError"]


def test_through_the_emulator_everything_is_evidence() -> None:
    with proxied(lambda _name, _body: None) as (server, _):
        store = store_at(server.url)
        answer = store.claim(JOB, owner="a", lease=LEASE)
        assert isinstance(answer, Acquired)
        store.renew(answer.claim, LEASE * 2)
        store.complete(answer.claim, Answer('"ok"'))
        store.complete(answer.claim, Answer('"ok"'))
        queues = make_queues()
        queue = SqsQueue(lambda: client("sqs"), queues.dead_letter_url)
        queues.send("{}")
        (message,) = read_event(lambda_event(queues.receive(1), queues.arn))
        assert queue.set_visibility([(message, 30)]) == []
        queue.dead_letter(DeadLetter(message, {}))
        assert queue.delete([message]) == []


def test_entries_that_a_batch_does_not_name_have_failed() -> None:
    told = {"Successful": [{"Id": "0"}, {}], "Failed": [{"Id": "1", "Code": "Busy"}, {"Id": "9"}]}
    assert failures(told, 3) == {1: "Busy", 2: "NoEvidenceError"}
    assert failures({"Successful": [{"Id": "0"}], "Failed": [{"Id": "0"}]}, 1) == {0: "unknown"}


@pytest.mark.parametrize("answer", [{}, {"MessageId": ""}, {"MessageId": "1", "MD5OfMessageBody": md5_of("b")}, None])
def test_a_message_counts_as_sent_only_with_its_id_and_its_digest(answer: Any) -> None:
    with pytest.raises(NoEvidenceError, match="SendMessage"):
        check_sent("SendMessage", "a", answer)
    assert check_sent("SendMessage", "a", {"MessageId": "1", "MD5OfMessageBody": md5_of("a")}) == "1"


def test_its_errors_are_those_of_botocore_and_can_be_pickled() -> None:
    for error in (NoEvidenceError(operation="Scan", lacks="Items"), CallFailedError(kind="OSError")):
        assert isinstance(error, BotoCoreError)
        assert str(loads(dumps(error))) == str(error)
    with pytest.raises(CallFailedError, match="OSError") as raised:
        call(lambda: (_ for _ in ()).throw(OSError("x")))
    assert isinstance(raised.value.__cause__, OSError)


def test_threads_that_send_their_first_jobs_at_once_share_one_client(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    barrier, real = Barrier(8), boto3.client

    def counted(*arguments: Any, **options: Any) -> Any:
        made.append(arguments)
        return real(*arguments, **options)

    with only_environment(KEYS):
        monkeypatch.setattr(boto3, "client", counted)
        settings = Settings(backend=Backend.DYNAMODB, table=TABLE)
        sender = cast(Any, job_sender(settings, HttpSettings(jobs_queue_url=URL), SYSTEM_THREADS))
        clients: list[object] = []

        def send() -> None:
            barrier.wait()
            clients.append(sender.client())

        threads = [Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 1
    assert len(set(map(id, clients))) == 1
