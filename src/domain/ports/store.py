"""The port that remembers jobs. Everything that onejob promises rests on the conditions written here."""

from datetime import timedelta
from typing import Protocol

from domain.answer import Answer
from domain.identity import JobKey
from domain.job import Job
from domain.life import Life
from domain.record import Claim, ClaimAnswer, Record


class IdempotencyStore(Protocol):
    """Every method raises `StoreUnavailableError` when it cannot answer. A write may have landed all the same; asking
    again is safe. `ForeignRecordError` (a kind of it) says that the record belongs to another `job_id`.

    `max_answer_bytes` is the largest `Answer.text`, in bytes of UTF-8, that `complete` takes; None: no limit.
    """

    max_answer_bytes: int | None

    def claim(self, job: Job, *, owner: str, lease: timedelta) -> ClaimAnswer:
        """Take the job, or say what stands in the way. Atomic: of any number of simultaneous claims one is Acquired.

        - Acquired if there is no record, if its retention is over (a live lease is judged first:
          `expired and (not in progress or lease over)`), or if its lease is over and the fingerprint matches.
          All ends are strict: at the very instant a lease or a retention is still running.
        - Fingerprints match when equal, of different schemes, or absent in the record. While the retention runs,
          any other is Mismatch: completed, in progress or lapsed.
        - Acquiring sets owner, lease end (now + lease), fingerprint and retention (never shorter than the lease),
          adds one to the attempts, drops the old answer, keeps the first time seen, the last error and the epoch.
          The count of runs (`domain.life`) goes on, with this attempt under way; once the retention is over it is the
          next life's.
        - A claim whose owner has released the record is Busy: it was asked for before, and landed after.
        - `verified` is False where the fingerprint of a record that is taken over, waited for or answered was absent or
          of another scheme.
        - A claim that finds itself in progress, its lease live, under the same owner and the same fingerprint is
          Acquired with the attempt it already has: it had landed, and its answer was lost.
        """
        ...

    def begin(self, claim: Claim, life: Life) -> None:
        """Count this attempt as a run before it runs: `life` is what is counted then.

        Same condition and same `LeaseLostError` as `complete`. Where another life has begun since the claim it succeeds
        and changes nothing.
        """
        ...

    def complete(self, claim: Claim, answer: Answer) -> None:
        """Store the answer and end the job. Retention starts anew; what is done has no runs any more.

        Lands if and only if the record is in progress under this (owner, attempt), whether or not the lease time
        has passed. Repeated by the same pair it succeeds. Otherwise `LeaseLostError`, and nothing changes.
        """
        ...

    def release(
        self,
        claim: Claim,
        error: str,
        *,
        forget_payload: bool = False,
        life: Life | None = None,
    ) -> None:
        """Give the job back after a failed attempt, so that the next delivery may take it at once.

        Ends the lease for every clock, clears the owner, keeps the attempts and `error` (a class name). With
        `forget_payload` the fingerprint goes too, so that a corrected payload may run under the same id. `life` is what
        is counted then (None: as claimed, without this attempt); it is left alone where another life has begun.
        Lands under the same condition as `complete`. Repeated by the same claim it succeeds and changes nothing, as
        long as nobody has claimed or forgotten it since. Otherwise `LeaseLostError`, and nothing changes.
        """
        ...

    def renew(self, claim: Claim, lease: timedelta) -> None:
        """Move the lease end to now + lease, and the retention with it. Same condition, same `LeaseLostError`.

        Never backwards: a renewal that would end no later than what stands there succeeds and changes nothing. It was
        asked before another one and landed after it, and the worker counts on the other.
        """
        ...

    def find(self, key: JobKey) -> Record | None:
        """The record as it was a moment ago. Eventually consistent will do, since no worker changes COMPLETED.

        An operator does (`StoreAdmin.forget`). A COMPLETED record of an epoch above 1 is therefore the record as it is
        now; of epoch 1, it may have been forgotten a moment ago.
        """
        ...

    def close(self) -> None:
        """Give back what the store holds: files, connections. No record and no claim changes.

        Call it when no other call is under way; no call but `close` may follow. Repeated, it does nothing.
        """
        ...
