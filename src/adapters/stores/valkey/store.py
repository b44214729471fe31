"""The `IdempotencyStore` in Valkey or Redis: it keeps the time, and says what the scripts' replies mean."""

from datetime import timedelta
from typing import Final

from valkey import Valkey

from adapters.stores.valkey.commands import Commands
from adapters.stores.valkey.mapping import of_life, to_number, to_record
from adapters.stores.valkey.replies import Taken, claim_of, landed_of
from adapters.stores.valkey.scripts import BEGIN, CLAIM, COMPLETE, RELEASE, RENEW, Script
from domain.answer import Answer
from domain.errors import LeaseLostError, StoreUnavailableError
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.ports.clock import Clock
from domain.record import Acquired, Claim, Claimable, ClaimAnswer, Record, judge, kept_until

MAX_ANSWER_BYTES: Final = 1_000_000
"""The server has one thread: while it moves an answer, everyone waits."""

MAX_ERROR_BYTES: Final = 100


class ValkeyIdempotencyStore:
    """Thread-safe, and safe among processes and machines. Each method is one request of one round trip.

    With `replicas`, a write counts only when so many replicas have it. `client` must not try again by itself.
    """

    max_answer_bytes: int | None = MAX_ANSWER_BYTES

    def __init__(self, client: Valkey, clock: Clock, retention: timedelta, *, replicas: int = 0) -> None:
        self._commands = Commands(client, replicas)
        self._clock = clock
        self._retention = retention

    def close(self) -> None:
        """Close the connections."""
        self._commands.close()

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        now = self._clock.now()
        scheme = f"{job.fingerprint.partition(':')[0]}:"
        identity = job.job_id, job.operation, owner, job.fingerprint, scheme
        times = to_number(now), to_number(now + lease), to_number(kept_until(now, lease, self._retention))
        reply, landed = self._commands.run(CLAIM, job.key, *identity, *times, read=claim_of)
        if isinstance(reply, Taken):
            self._commands.require_replicas(landed, job.key)
            claim = Claim(job.key, owner, reply.attempt, reply.epoch, reply.life)
            return Acquired(claim, reply.last_error.decode(errors="replace") or None, reply.verified)
        seen = judge(to_record(reply, job.key), job, owner, now)
        if isinstance(seen, Claimable):
            raise StoreUnavailableError(f"{job.key}: a claim was refused, but the record is free")
        if isinstance(seen, Acquired):
            self._commands.require_replicas(landed, job.key)
        return seen

    def begin(self, claim: Claim, life: Life) -> None:
        self._write(BEGIN, claim, *of_life(life))

    def complete(self, claim: Claim, answer: Answer) -> None:
        now = self._clock.now()
        times = to_number(now), to_number(now + self._retention)
        self._write(COMPLETE, claim, answer.text, answer.omitted or "", *times)

    def release(self, claim: Claim, error: str, *, forget_payload: bool = False, life: Life | None = None) -> None:
        short = error.encode("ascii", "replace")[:MAX_ERROR_BYTES]
        counted = of_life(life or claim.life.ended())
        self._write(RELEASE, claim, short, int(forget_payload), to_number(self._clock.now()), *counted)

    def renew(self, claim: Claim, lease: timedelta) -> None:
        now = self._clock.now()
        self._write(RENEW, claim, to_number(now + lease), to_number(kept_until(now, lease, self._retention)))

    def find(self, key: JobKey) -> Record | None:
        found = self._commands.hash(key)
        return to_record(found, key) if found else None

    def _write(self, script: Script, claim: Claim, *values: str | bytes | int) -> None:
        held, landed = self._commands.run(script, claim.key, claim.owner, claim.attempt, *values, read=landed_of)
        if not held:
            raise LeaseLostError(f"{claim.key}: attempt {claim.attempt} holds no claim")
        self._commands.require_replicas(landed, claim.key)
