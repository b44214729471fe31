"""A store that fails as told, around a real one."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Literal

from domain.answer import Answer
from domain.errors import StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.ports.store import IdempotencyStore
from domain.record import Claim, ClaimAnswer, Record

type Fault = Literal["fails", "landed", "ok"] | BaseException
"""`fails`: nothing was written. `landed`: it was, and the answer is lost."""


class FaultyStore:
    """Each method consumes its own list of faults, then works."""

    def __init__(self, inner: IdempotencyStore, **faults: Iterable[Fault]) -> None:
        self.inner = inner
        self.max_answer_bytes = inner.max_answer_bytes
        self.calls: Counter[str] = Counter()
        self._faults = {name: list(plan) for name, plan in faults.items()}

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        answer: ClaimAnswer = self._do("claim", lambda: self.inner.claim(job, owner=owner, lease=lease))
        return answer

    def begin(self, claim: Claim, life: Life) -> None:
        self._do("begin", lambda: self.inner.begin(claim, life))

    def complete(self, claim: Claim, answer: Answer) -> None:
        self._do("complete", lambda: self.inner.complete(claim, answer))

    def release(self, claim: Claim, error: str, **how: Any) -> None:
        self._do("release", lambda: self.inner.release(claim, error, **how))

    def renew(self, claim: Claim, lease: timedelta) -> None:
        self._do("renew", lambda: self.inner.renew(claim, lease))

    def find(self, key: JobKey) -> Record | None:
        record: Record | None = self._do("find", lambda: self.inner.find(key))
        return record

    def close(self) -> None:
        self.inner.close()

    def _do(self, name: str, call: Callable[[], Any]) -> Any:
        self.calls[name] += 1
        plan = self._faults.get(name, [])
        fault = plan.pop(0) if plan else "ok"
        if isinstance(fault, BaseException):
            raise fault
        if fault == "fails":
            raise StoreUnavailableError(f"{name}: told to fail")
        answer = call()
        if fault == "landed":
            raise StoreUnavailableError(f"{name}: the answer is lost")
        return answer
