"""What is due when: items in the order of their due times, each of which can be taken out again."""

from collections.abc import Hashable
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

SPARE: Final = 64
"""Entries of discarded items that may stay beside as many as there are items."""


class DueHeap[T: Hashable]:
    """Items by due time, on the monotonic clock. Not thread-safe: its user's lock guards it."""

    def __init__(self) -> None:
        self._heap: list[tuple[timedelta, int, T]] = []
        self._current: dict[T, int] = {}
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._current)

    def push(self, item: T, due: timedelta) -> None:
        """Add the item, or give it another due time."""
        number = next(self._numbers)
        self._current[item] = number
        if len(self._heap) > 2 * len(self._current) + SPARE:  # what comes and goes early would fill the memory
            self._heap = [entry for entry in self._heap if self._current.get(entry[2]) == entry[1]]
            heapify(self._heap)
        heappush(self._heap, (due, number, item))

    def discard(self, item: T) -> None:
        """Take the item out, if it is in."""
        self._current.pop(item, None)

    def first_due(self) -> timedelta | None:
        """The earliest due time; None if there is no item."""
        heap = self._heap
        while heap and self._current.get(heap[0][2]) != heap[0][1]:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop(self, until: timedelta) -> T | None:
        """Take out the item that is due first, if it is due by then."""
        first = self.first_due()
        if first is None or first > until:
            return None
        item = heappop(self._heap)[2]
        del self._current[item]
        return item
