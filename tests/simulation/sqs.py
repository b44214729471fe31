"""SQS as far as it matters: at least once, visibility, receive counts, FIFO groups, its own dead-letter rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.plan import PlannedMessage
from tests.simulation.world import World

MAX_RECEIVES = 100
"""The backstop. So far apart from MAX_ATTEMPTS that only a worker that never settles reaches it. What SQS delivers
again while it is in flight is not counted: of some seeds that is six in ten.
"""


@dataclass(slots=True)
class SentMessage:
    """A message in the queue."""

    planned: PlannedMessage
    body: str
    visible_at: int
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    receives: int = 0
    redelivered: int = 0
    """So many of its receives are SQS's own doing: it delivers again what is in flight."""

    receipt: str = ""
    is_gone: bool = False

    def is_in_flight(self, now: int) -> bool:
        return self.receives > 0 and self.visible_at > now


@dataclass(slots=True)
class SimulatedQueue:
    """The source queue. What happens to a message there is told to the oracle by whoever does it."""

    world: World
    fifo: bool
    messages: list[SentMessage] = field(default_factory=list)
    buried_by_sqs: list[SentMessage] = field(default_factory=list)
    announced: set[str] = field(default_factory=set)
    """Names of all that was or will be sent."""
    _by_receipt: dict[str, SentMessage] = field(default_factory=dict)

    def send(self, message: SentMessage) -> None:
        self.messages.append(message)

    def waiting(self) -> list[SentMessage]:
        return [message for message in self.messages if not message.is_gone]

    def receive(self, most: int) -> list[SentMessage]:
        """A batch, in an order of chance; of a FIFO group in its order, and none while one of it is in flight."""
        batch: list[SentMessage] = []
        for message in self._candidates():
            if len(batch) == most:
                break
            message.receives += 1
            if message.receives - message.redelivered > MAX_RECEIVES:
                message.is_gone = True
                self.buried_by_sqs.append(message)
                continue
            message.receipt = f"{message.planned.name}#{message.receives}"
            self._by_receipt[message.receipt] = message
            batch.append(message)
        return batch

    def hide(self, batch: list[SentMessage], visibility: int) -> None:
        for message in batch:
            message.visible_at = self.world.now + visibility

    def _candidates(self) -> list[SentMessage]:
        now = self.world.now
        waiting = self.waiting()
        if not self.fifo:
            visible = [message for message in waiting if message.visible_at <= now]
            self.world.chance.shuffle(visible)
            return visible
        groups: dict[str, list[SentMessage]] = {}
        for message in waiting:
            groups.setdefault(message.planned.group, []).append(message)
        names = sorted(groups)
        self.world.chance.shuffle(names)
        found = []
        for name in names:
            if not any(message.is_in_flight(now) for message in groups[name]):
                found += [message for message in groups[name] if message.visible_at <= now]
        return found

    def by_receipt(self, receipt: str) -> SentMessage | None:
        """None where SQS would do nothing: gone, or, mostly, received again since."""
        message = self._by_receipt.get(receipt)
        if message is None or message.is_gone or message.receipt != receipt:
            return None
        return message

    def is_something_visible(self) -> bool:
        now = self.world.now
        return any(message.visible_at <= now and not message.is_gone for message in self.messages)

    def next_visible(self) -> int | None:
        """The first tick at which something may be received; of a FIFO group nothing while one of it is in flight."""
        if not self.fifo:
            return min((message.visible_at for message in self.messages if not message.is_gone), default=None)
        now, first, blocked = self.world.now, dict[str, int](), dict[str, int]()
        for message in self.waiting():
            group, at = message.planned.group, message.visible_at
            first[group] = min(first.get(group, at), at)
            if message.is_in_flight(now):
                blocked[group] = max(blocked.get(group, at), at)
        return min((max(at, blocked.get(group, at)) for group, at in first.items()), default=None)
