"""Threads that run tasks: each is started before anything is given to it, so that a refused start loses no task."""

from collections import deque
from collections.abc import Callable

from adapters.threads.seam import SYSTEM_THREADS, Running, ThreadRefusedError, Threads

type Task = Callable[[], None]


class ThreadPool:
    """At most `size` threads, kept. Ask for threads with `ensure`, then give them tasks with `submit`."""

    def __init__(self, size: int, threads: Threads = SYSTEM_THREADS, name: str = "onejob") -> None:
        self.size = size
        self._threads = threads
        self._name = name
        self._changed = threads.condition()
        self._tasks: deque[Task] = deque()
        self._members: list[Running] = []

    def ensure(self, wanted: int) -> int:
        """Start threads until there are so many, never more than `size`; how many there are. Fewer than were wanted:
        the system has none to spare.
        """
        with self._changed:
            self._members = [member for member in self._members if member.is_alive()]
            while len(self._members) < min(wanted, self.size):
                try:
                    self._members.append(self._threads.start(self._serve, self._name))
                except ThreadRefusedError:
                    break
            return len(self._members)

    def submit(self, task: Task) -> None:
        """Run it in one of the threads that there are, as soon as one is free. It must not raise."""
        with self._changed:
            self._tasks.append(task)
            self._changed.notify()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._tasks))
                task = self._tasks.popleft()
            task()
