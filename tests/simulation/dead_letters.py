"""The dead-letter queue, and SQS as an operator's command has it: a boto-shaped client of both queues.

A letter is never lost: it leaves the dead-letter queue only when it has been sent, and what was sent will be handled.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from botocore.exceptions import ClientError

from adapters.sqs.dead_letter import DeadLetter
from adapters.sqs.notes import ATTRIBUTE
from tests.simulation.plan import PlannedMessage
from tests.simulation.sqs import SentMessage
from tests.simulation.world import Violation, World, moment

SOURCE: Final = "https://sqs.test/000000000000/jobs"
LETTERS: Final = "https://sqs.test/000000000000/letters"
DEDUPLICATED_FOR: Final = 300
"""Ticks for which a FIFO queue drops what is sent under the same deduplication id."""


@dataclass(slots=True, eq=False)
class KeptLetter:
    """A letter in the queue. `sent_as` is the message that it became, and `sent_when` its place in the order of what
    operators did.
    """

    name: str
    planned: PlannedMessage
    body: str
    attributes: Mapping[str, Mapping[str, Any]]
    sent_at: int
    visible_at: int
    receives: int = 0
    is_gone: bool = False
    sent_as: SentMessage | None = None
    sent_when: int = -1

    @property
    def receipt(self) -> str:
        return f"{self.name}#{self.receives}"


@dataclass(slots=True)
class SimulatedDeadLetters:
    """What was buried. A FIFO queue drops a burial that is repeated under the same id."""

    world: World
    fifo: bool
    letters: list[KeptLetter] = field(default_factory=list)
    sent: dict[str, tuple[int, int, SentMessage]] = field(default_factory=dict)
    """What was sent back, by deduplication id: at which tick, and in which order."""

    order: Iterator[int] = field(default_factory=count)
    _buried: dict[str, int] = field(default_factory=dict)

    def dead_letter(self, planned: PlannedMessage, letter: DeadLetter) -> None:
        now, known = self.world.now, self._buried.get(planned.name)
        if self.fifo and known is not None and now < known + DEDUPLICATED_FOR:
            return
        self._buried[planned.name] = now
        name = f"letter {len(self.letters)}"
        body = letter.message.body
        self.letters.append(KeptLetter(name, planned, body, letter.attributes, now, now))

    def waiting(self) -> list[KeptLetter]:
        return [letter for letter in self.letters if not letter.is_gone]

    def receive(self, most: int, visibility: int) -> list[KeptLetter]:
        now, waiting = self.world.now, self.waiting()
        visible = [letter for letter in waiting if letter.visible_at <= now]
        if self.fifo:
            held = {letter.planned.group for letter in waiting if letter.visible_at > now}
            visible = [letter for letter in visible if letter.planned.group not in held]
        else:
            self.world.chance.shuffle(visible)
        for letter in visible[:most]:
            letter.receives += 1
            letter.visible_at = now + visibility
        return visible[:most]

    def by_receipt(self, receipt: str) -> KeptLetter | None:
        return next((letter for letter in self.waiting() if letter.receipt == receipt), None)


@dataclass(slots=True)
class OperatorSqs:
    """What `DeadLetterQueue` and `send_back` use of boto3. `fails` is asked before and after each request:
    what it says the second time is that the request has landed, and its answer is lost.
    """

    world: World
    queue: SimulatedDeadLetters
    send: Callable[[SentMessage], None]
    announce: Callable[[PlannedMessage], PlannedMessage]
    """A name for the message that a letter becomes."""

    is_young: Callable[[PlannedMessage, bool], bool]
    """Whether the letter at hand is sent as if it were new; and whether it keeps its age, where time has passed."""

    forgotten_at: Callable[[], int]
    """When, in that order, this operator last had the job at hand forgotten; -1 if never."""

    fails: Callable[[], bool]
    is_stranger: Callable[[], bool] = lambda: False
    """Whether somebody else answers a send: HTTP 200, without evidence, and nothing is sent."""

    at_hand: KeptLetter | None = None

    def receive_message(
        self,
        *,
        MaxNumberOfMessages: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        WaitTimeSeconds: int,  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        def land() -> list[KeptLetter]:
            return self.queue.receive(MaxNumberOfMessages, VisibilityTimeout)

        received: list[KeptLetter] = self._ask("ReceiveMessage", land)
        if not received:
            self.world.pause(WaitTimeSeconds)
            received = land()
        return {"Messages": [self._message(letter) for letter in received]} if received else {}

    def delete_message(self, *, ReceiptHandle: str, **_: Any) -> None:  # noqa: N803
        def land() -> None:
            letter = self.queue.by_receipt(ReceiptHandle)
            if letter is not None:
                self._require_sent(letter)
                letter.is_gone = True

        self._ask("DeleteMessage", land)

    def change_message_visibility_batch(
        self,
        *,
        Entries: Sequence[Mapping[str, Any]],  # noqa: N803
        **_: Any,
    ) -> dict[str, Any]:
        def land() -> None:
            for entry in Entries:
                letter = self.queue.by_receipt(entry["ReceiptHandle"])
                if letter is not None:
                    letter.visible_at = self.world.now + entry["VisibilityTimeout"]

        self._ask("ChangeMessageVisibilityBatch", land)
        return {}

    def send_message(
        self,
        *,
        QueueUrl: str,  # noqa: N803
        MessageBody: str,  # noqa: N803
        MessageAttributes: Mapping[str, Mapping[str, Any]] | None = None,  # noqa: N803
        MessageGroupId: str | None = None,  # noqa: N803
        MessageDeduplicationId: str | None = None,  # noqa: N803
    ) -> dict[str, Any]:
        letter = self.at_hand
        assert letter is not None
        if MessageBody != letter.body or MessageGroupId != letter.planned.group:
            raise Violation(f"{letter.name} was sent with another body, or into another group")
        if self.is_stranger():
            return {}

        def land() -> SentMessage:
            known = self.queue.sent.get(MessageDeduplicationId or "")
            if known is not None and self.world.now < known[0] + DEDUPLICATED_FOR:
                _, letter.sent_when, letter.sent_as = known
                return known[2]
            sent = self._sent(letter, MessageBody, MessageAttributes or {})
            letter.sent_as, letter.sent_when = sent, next(self.queue.order)
            if MessageDeduplicationId is not None:
                self.queue.sent[MessageDeduplicationId] = self.world.now, letter.sent_when, sent
            self.send(sent)
            return sent

        sent: SentMessage = self._ask("SendMessage", land)
        return {"MessageId": sent.planned.name}

    def _sent(self, letter: KeptLetter, body: str, attributes: Mapping[str, Mapping[str, Any]]) -> SentMessage:
        """The message as it is anew: as old as before, unless it is sent as if it were new."""
        before = letter.planned
        keeps_age = "first_sent" in attributes.get(ATTRIBUTE, {}).get("StringValue", "")
        first_sent = None if self.is_young(before, keeps_age) else before.born_at
        planned = self.announce(replace(before, sent_at=self.world.now, first_sent=first_sent, lost_receives=0))
        in_lambda = {
            name: {"dataType": attribute["DataType"], "stringValue": attribute["StringValue"]}
            for name, attribute in attributes.items()
        }
        return SentMessage(planned, body, self.world.now, attributes=in_lambda)

    def _require_sent(self, letter: KeptLetter) -> None:
        """What was dropped as a repetition has done its work only if nothing was forgotten since."""
        sent = letter.sent_as
        if sent is None:
            raise Violation(f"{letter.name} was deleted and not sent")
        if sent.is_gone and self.forgotten_at() > letter.sent_when:
            raise Violation(f"{letter.name} is lost: its job was forgotten, and what it was sent as is gone")

    def _message(self, letter: KeptLetter) -> dict[str, Any]:
        system = {
            "ApproximateReceiveCount": str(letter.receives),
            "SentTimestamp": str(round(moment(letter.sent_at).timestamp() * 1000)),
            "MessageGroupId": letter.planned.group,
        }
        return {
            "MessageId": letter.name,
            "ReceiptHandle": letter.receipt,
            "Body": letter.body,
            "Attributes": system,
            "MessageAttributes": letter.attributes,
        }

    def _ask(self, name: str, land: Callable[[], Any]) -> Any:
        if self.fails():
            _refuse(name)
        answer = land()
        if self.fails():
            _refuse(name)
        return answer


def _refuse(name: str) -> None:
    raise ClientError({"Error": {"Code": "ServiceUnavailable", "Message": "told to fail"}}, name)
