"""Items come out in the order of their due times, and not after they were taken out."""

from datetime import timedelta

from adapters.threads.due import SPARE, DueHeap


def at(seconds: float) -> timedelta:
    return timedelta(seconds=seconds)


def test_items_come_out_when_they_are_due_the_earliest_first() -> None:
    heap: DueHeap[str] = DueHeap()
    for item, due in (("c", 3), ("a", 1), ("b", 2), ("b2", 2)):
        heap.push(item, at(due))
    assert heap.first_due() == at(1)
    assert [heap.pop(at(2)) for _ in range(4)] == ["a", "b", "b2", None]
    assert (heap.first_due(), len(heap)) == (at(3), 1)


def test_what_was_discarded_or_pushed_again_counts_once_and_by_its_last_due_time() -> None:
    heap: DueHeap[str] = DueHeap()
    heap.push("a", at(1))
    heap.push("b", at(2))
    heap.push("a", at(3))
    assert heap.first_due() == at(2)
    heap.discard("b")
    heap.discard("unknown")
    assert heap.first_due() == at(3)
    assert [heap.pop(at(9)), heap.pop(at(9))] == ["a", None]
    assert heap.first_due() is None


def test_what_comes_and_goes_early_does_not_fill_the_memory() -> None:
    heap: DueHeap[int] = DueHeap()
    heap.push(-1, at(50))
    for number in range(10_000):
        heap.push(number, at(100))
        heap.discard(number)
    assert len(heap._heap) <= 2 * 2 + SPARE + 1
    assert heap.pop(at(100)) == -1
