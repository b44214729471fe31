"""Operators: processes that forget, purge and redrive with the real code of those commands."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import signature
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.dead_letter_queue import DeadLetterQueue
from adapters.sqs.ports import QueueUnavailableError
from adapters.sqs.redrive import send_back
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from entrypoints.cli import records
from entrypoints.cli.commands.dlq.redrive import RedriveOptions, Redriver
from entrypoints.cli.commands.dlq.wanted import DeadLetterOptions
from entrypoints.cli.commands.jobs import jobs
from entrypoints.cli.errors import NothingDoneError
from entrypoints.cli.records import Records, RecordsOptions
from entrypoints.purging import Purge
from tests.simulation.admins import WatchedAdmin
from tests.simulation.dead_letters import LETTERS, SOURCE, KeptLetter, OperatorSqs, SimulatedDeadLetters
from tests.simulation.oracle import Oracle
from tests.simulation.plan import FAULTS_UNTIL, PAYLOADS, PlannedMessage
from tests.simulation.queue_port import ARN
from tests.simulation.workers import Shared, Worker
from tests.simulation.world import moment
from tests.support.notes import NOTES

MOST_REDRIVES: Final = 2
"""Of one message. A letter that comes back more often is left where it is, or a run would not end."""


PLANNED: Final = "an operator"
"""Among what is announced: nothing is over before it has come."""

TELLS_EPOCHS: Final = "epoch" in signature(send_back).parameters
"""Without it a forced redrive that is repeated on a FIFO queue loses a job: SQS drops it as sent before."""

FORCED: Final = 0.4
"""The share of commands that are forced."""


class _Records(Records):
    """The records of this world."""

    def who(self) -> str:
        return "operator"


class Operator(Worker):
    """One command, in a process of its own. `again` is called when a redrive came to no end."""

    def __init__(self, shared: Shared, skew: int, letters: SimulatedDeadLetters, again: Callable[[], None]) -> None:
        super().__init__(shared, skew)
        self.letters, self.again = letters, again
        self.client: OperatorSqs | None = None
        self.key: JobKey | None = None
        self.force = self.was_old = False
        admin = shared.backend.admin(self.clock)
        self.admin = WatchedAdmin(
            self.world, self.oracle, shared.backend, admin, self, self.clock.now, self._store_fails, letters.order
        )
        settings: Any = SimpleNamespace(retention=shared.backend.retention)
        nowhere: Any = None
        self.records = _Records(settings, self.admin, self.clock, nowhere, NOTES)
        self.name = f"operator {next(shared.number)}"
        shared.queue.announced.add(self.name)

    def died(self) -> None:
        if self.client is not None:
            self.again()
        self._end()

    def _end(self) -> None:
        self.shared.queue.announced.discard(self.name)
        self.shared.look_again()

    def _store_fails(self) -> bool:
        return self._fails(self.plan.throttled)

    def _queue_fails(self) -> bool:
        return self._fails(self.plan.queue_faults)

    def _is_stranger(self) -> bool:
        if not self.plan.strangers:
            return False
        is_stranger = self._fails(self.plan.strangers)
        self.oracle.faults["answered by a stranger in the place of SQS"] += is_stranger
        return is_stranger

    def _fails(self, chance: int) -> bool:
        self.world.pause()
        self.crash_point()
        return self.world.now < FAULTS_UNTIL and self.world.chance.random() * 1000 < chance

    # The commands.

    def forget(self, key: JobKey, *, force: bool) -> None:
        """`onejob forget`."""
        try:
            seen = jobs.found(self.records, key)
            jobs.check_forgettable(seen, self.clock.now(), force=force)
            self.world.pause(self.world.chance.choice((0, 1, 5)))  # it asks whether to
            jobs.forget(self.records, seen, force=force)
        except (NothingDoneError, StoreUnavailableError):
            pass
        finally:
            self._end()

    def purge(self) -> None:
        """`onejob purge`."""
        try:
            Purge(admin=self.admin, clock=self.clock, jitter=self.world.chance.random, page=1000).run()
        except StoreUnavailableError:
            pass
        finally:
            self._end()

    def redrive(self, *, force: bool) -> None:
        """`onejob dlq redrive --all`."""
        box, redriver = self._redriver(force)
        try:
            for letter in box.letters():
                kept = next(one for one in self.letters.letters if one.name == letter.message.message_id)
                if kept.planned.redrives >= MOST_REDRIVES:
                    continue
                self._take(kept, redriver, letter)
        except (QueueUnavailableError, StoreUnavailableError):
            self.again()
        finally:
            if not self.world.is_over:
                box.put_back()
                self._end()

    def _redriver(self, force: bool) -> tuple[DeadLetterQueue, Redriver]:
        suffix = ".fifo" if self.plan.fifo else ""
        self.force = force
        self.client = OperatorSqs(
            self.world,
            self.letters,
            self.shared.send,
            self.shared.announce,
            self._is_young,
            lambda: -1 if self.key is None else self.admin.forgotten_at.get(self.key, -1),
            self._queue_fails,
            self._is_stranger,
        )
        options = RedriveOptions(
            url=LETTERS + suffix,
            queue_url=SOURCE + suffix,
            letters=DeadLetterOptions(),
            everything=True,
            force=force,
            dry_run=False,
            most=None,
            as_json=True,
            records=RecordsOptions(),
        )
        client: Any = self.client
        box = DeadLetterQueue(client, LETTERS + suffix, ARN + suffix, NOTES)
        return box, Redriver(options, box, client, SOURCE + suffix, self.records)

    def _take(self, kept: KeptLetter, redriver: Redriver, letter: Any) -> None:
        assert self.client is not None
        self.client.at_hand = kept
        self.was_old = self._is_old(kept.planned)
        job = letter.job(self.factory)
        self.key = None if job is None else job.key
        told = redriver.take(letter, job)
        if told["sent"]:
            self.oracle.faults["redriven by force" if told["forgotten"] else "redriven"] += 1
            if kept.sent_as is None:
                self.oracle.fail(f"{kept.name} is told to be sent, and is not")

    def _is_old(self, planned: PlannedMessage) -> bool:
        return (self.clock.now() - moment(planned.born_at)).total_seconds() > self.plan.retention

    def _is_young(self, planned: PlannedMessage, keeps_age: bool) -> bool:
        """A job that is older than the retention is sent by force only, and as if it were new."""
        if self.was_old != self._is_old(planned):  # it became so since it was judged
            return not keeps_age
        if planned.is_job and self.was_old and not self.force:
            self.oracle.fail(f"{planned.name} is older than the retention, and was sent though nobody forced it")
        return planned.is_job and self.was_old


@dataclass(slots=True)
class Operators:
    """When they come: some after a burial, some at any time."""

    shared: Shared
    letters: SimulatedDeadLetters
    is_planned: bool = False

    def plan_commands(self) -> None:
        """Forget and purge, while there is something to be forgotten."""
        plan, world = self.shared.plan, self.shared.world
        for _ in range(plan.commands):
            world.at(world.chance.choice((5, 30, 100, 300)) + world.chance.randint(0, 20), self._start_command)

    def buried(self, planned: PlannedMessage, letter: DeadLetter) -> None:
        """Of what was buried an operator may send back all."""
        self.letters.dead_letter(planned, letter)
        self._plan_redrive()

    def _plan_redrive(self) -> None:
        world = self.shared.world
        if self.is_planned or world.now >= FAULTS_UNTIL or world.chance.random() * 1000 >= self.shared.plan.redrives:
            return
        self.is_planned = True
        self.shared.queue.announced.add(PLANNED)
        world.at(world.now + world.chance.choice((1, 10, 100)), self._start_redrive)

    def _start_redrive(self) -> None:
        self.is_planned = False
        operator = self._operator()
        self.shared.queue.announced.discard(PLANNED)
        may_force = not self.shared.plan.fifo or TELLS_EPOCHS
        force = self.shared.world.chance.random() < FORCED and may_force
        self.shared.world.spawn(operator, partial(operator.redrive, force=force))

    def _start_command(self) -> None:
        chance, operator = self.shared.world.chance, self._operator()
        if chance.random() < 0.25:
            self.shared.world.spawn(operator, operator.purge)
            return
        planned = chance.choice(self.shared.plan.jobs)
        tenant = {"tenant": planned.tenant} if planned.tenant else {}
        job = self.shared.factory.job({"job_id": planned.job_id, **PAYLOADS[0], **tenant})
        force = self.shared.plan.hostile and chance.random() < FORCED
        self.shared.world.spawn(operator, partial(operator.forget, job.key, force=force))

    def _operator(self) -> Operator:
        plan = self.shared.plan
        return Operator(self.shared, self.shared.world.chance.choice(plan.skews), self.letters, self._plan_redrive)


@contextmanager
def audited(oracle: Oracle) -> Iterator[None]:
    """What the commands write to standard error is counted instead."""

    def count(text: str) -> None:
        oracle.faults[json.loads(text)["event"]] += 1

    with patch.object(records, "say", count):
        yield
