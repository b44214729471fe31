"""An eventually consistent read may answer what an operator has had forgotten; then the job would not run again."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast

import pytest

from domain.answer import Answer
from domain.delivery import Delivery
from domain.outcome import Executed, Outcome, Skipped
from domain.record import Acquired
from domain.service import JobService
from tests.support.aws import dynamodb_admin, dynamodb_client, dynamodb_store, in_process
from tests.support.clock import FakeClock
from tests.support.jobs import RecordedEvents, counting_ids, job, operations

DAY = timedelta(days=1)
LEASE = timedelta(minutes=1)
REDELIVERED = Delivery(receives=2)
JOB = job("1")


class LateClient:
    """A client whose eventually consistent reads answer an old copy."""

    def __init__(self) -> None:
        self._client = dynamodb_client()
        self._copy: dict[str, Any] | None = None

    def freeze(self) -> None:
        """What is stored now is what those reads answer from now on."""
        key = {"id": {"S": str(JOB.key)}}
        self._copy = cast(Any, self._client.get_item(TableName="records", Key=key, ConsistentRead=True))

    def get_item(self, **request: Any) -> Any:
        is_late = self._copy is not None and not request["ConsistentRead"]
        return self._copy if is_late else self._client.get_item(**request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.client = LateClient()
        self.store = dynamodb_store(self.clock, DAY, cast(Any, self.client))
        self.admin = dynamodb_admin(self.clock, DAY)

    def complete(self, answer: str) -> None:
        held = self.store.claim(JOB, owner="a", lease=LEASE)
        assert isinstance(held, Acquired)
        self.store.complete(held.claim, Answer(answer))

    def forget(self) -> None:
        seen = self.admin.look(JOB.key)
        assert seen is not None
        self.admin.forget(seen)

    def redelivered(self) -> Outcome:
        service = JobService(
            store=self.store,
            operations=operations(lambda *_: "anew"),
            events=RecordedEvents(),
            clock=self.clock,
            new_id=counting_ids(),
            jitter=lambda: 0.0,
            max_attempts=5,
            margin=timedelta(seconds=5),
        )
        return service.process(JOB, lease=LEASE, deadline=None, delivery=REDELIVERED)


@pytest.fixture
def world() -> Iterator[World]:
    with in_process():
        yield World()


def test_what_was_forgotten_again_is_answered_from_no_old_copy(world: World) -> None:
    world.complete('"first"')
    world.forget()
    world.complete('"second"')
    world.client.freeze()
    world.forget()
    assert world.redelivered() == Executed(Answer('"anew"'))
    assert world.redelivered() == Skipped(Answer('"anew"'))
    found = world.store.find(JOB.key)
    assert found is not None
    assert (found.epoch, found.answer) == (3, Answer('"anew"'))


def test_an_old_copy_of_what_is_deleted_is_no_answer_either(world: World) -> None:
    world.complete('"first"')
    world.forget()
    world.complete('"second"')
    world.client.freeze()
    world.clock.advance(days=2)
    assert world.admin.purge().deleted == 1
    assert world.store.find(JOB.key) is None


def test_of_the_first_forget_an_old_copy_tells_nothing(world: World) -> None:
    """The sentence in the port: nothing in a record of epoch 1 says that it was forgotten since."""
    world.complete('"first"')
    world.client.freeze()
    world.forget()
    assert world.redelivered() == Skipped(Answer('"first"'))
