"""Peak memory of a job by the shape of its body, beside the body's size: `uv run python benchmarks/memory.py`."""

import tracemalloc
from collections.abc import Callable
from typing import Final

from adapters.sqs.envelope import unwrap
from domain.errors import InvalidJobError
from domain.job_factory import JobFactory
from domain.operation import Operations

SIZE: Final = 1_000_000
FEWER: Final = 90_000
"""Values, below the limit of 100,000."""

SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "one string": lambda _number: '"' + "a" * SIZE + '"',
    "integers": lambda _number: "1",
    "fractions": lambda _number: "1.5",
    "empty lists": lambda _number: "[]",
    "lists of one": lambda _number: "[1]",
    "objects of one": lambda _number: '{"a":1}',
    "objects, other names": lambda number: f'{{"{number:x}":"\u0142"}}',
    "objects, whole fractions": lambda _number: '{"a":1.0}',
}


def body(shape: str, size: int, values: int) -> str:
    """As many elements as fit into either."""
    make, elements = SHAPES[shape], list[str]()
    each = 1 + sum(make(0).count(opening) for opening in "[{")
    while size > 0 and values > 0:
        elements.append(make(len(elements)))
        size -= len(elements[-1].encode()) + 1
        values -= each
    return f'{{"job_id":"1","x":[{",".join(elements)}]}}'


def peaks(text: str) -> tuple[float, float] | str:
    """MB while the key is taken, and MB of one attempt's payload; the reason where the body is refused."""
    factory = JobFactory("benchmark", Operations())
    tracemalloc.start()
    try:
        job = factory.waiting_job(lambda: unwrap(text))
        read = tracemalloc.get_traced_memory()[1]
        payload = job.for_one_attempt()
        held = tracemalloc.get_traced_memory()[0]
        del payload
        return read / 1e6, held / 1e6
    except InvalidJobError as refused:
        return f"{refused.reason}, {tracemalloc.get_traced_memory()[1] / 1e6:.1f} MB"
    finally:
        tracemalloc.stop()


def main() -> None:
    """Each shape at the limit on values, and at 1 MB."""
    print(f"{'shape':26}{'body MB':>9}{'key MB':>9}{'payload MB':>12}")
    for shape in SHAPES:
        for values in (FEWER, SIZE):
            text = body(shape, SIZE, values)
            told = peaks(text)
            shown = f"  {told}" if isinstance(told, str) else f"{told[0]:9.1f}{told[1]:12.1f}"
            print(f"{shape:26}{len(text.encode()) / 1e6:9.2f}{shown}")


if __name__ == "__main__":
    main()
