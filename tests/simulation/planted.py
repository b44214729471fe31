"""Bugs that the simulator must find, each planted in a copy of the source: the product has no switch for them.

uv run just planted            every bug, so many seeds each; prints in how many it was found (CI: `--part`, a quarter of them)
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STEPS: Final = (50, 500, 1000, 5000)
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Bug:
    """`old` stands once in the file, and `new` takes its place."""

    name: str
    file: str
    old: str
    new: str
    backend: str = "memory"


MEMORY: Final = "adapters/stores/memory.py"
RECORD: Final = "domain/record.py"
LIFE: Final = "domain/life.py"
SERVICE: Final = "domain/service.py"
BATCH: Final = "adapters/sqs/batch.py"
DEAD_LETTER: Final = "adapters/sqs/dead_letter.py"
NOTES: Final = "adapters/sqs/notes.py"
ENTRY: Final = "adapters/sqs/entry.py"
VISIBILITY: Final = "adapters/sqs/visibility.py"
LEASE: Final = "domain/lease.py"
HEARTBEAT: Final = "adapters/threads/heartbeat.py"
PERIODIC: Final = "adapters/threads/periodic.py"
VISIBILITY_HEARTBEAT: Final = "adapters/sqs/polling/visibility_heartbeat.py"
POLL_WORKER: Final = "adapters/sqs/polling/worker.py"
RULES: Final = "domain/redrive.py"
GROUP_COMMIT: Final = "adapters/stores/sqlite/group_commit.py"
SQLITE: Final = "adapters/stores/sqlite/store.py"
ROWS: Final = "adapters/stores/sqlite/rows.py"
EXPRESSIONS: Final = "adapters/stores/dynamodb/expressions.py"
LAYER: Final = "adapters/stores/dynamodb/layer.py"
DYNAMODB_RECORD: Final = "adapters/stores/dynamodb/record.py"

BUGS: Final = (
    Bug("unconditional complete", MEMORY, "                held, now = self._held(claim), self._clock.now()\n                self._records[claim.key] = completed(", "                held, now = self._records[claim.key], self._clock.now()\n                self._records[claim.key] = completed("),
    Bug("unconditional release", MEMORY, "                held, now = self._held(claim), self._clock.now()\n                self._records[claim.key] = released(", "                held, now = self._records[claim.key], self._clock.now()\n                self._records[claim.key] = released("),
    Bug("unconditional renew", MEMORY, "            held, now = self._held(claim), self._clock.now()\n            self._records[claim.key] = renewed(", "            held, now = self._records[claim.key], self._clock.now()\n            self._records[claim.key] = renewed("),
    Bug("a late renewal moves the lease back", RECORD, "    if held.lease_until is not None and held.lease_until >= now + lease:\n        return held\n", ""),
    Bug("no owner in the fence", RECORD, "record.in_progress and (record.owner, record.attempts) == (claim.owner, claim.attempt)", "record.in_progress and record.attempts == claim.attempt"),
    Bug("no attempt in the fence", RECORD, "record.in_progress and (record.owner, record.attempts) == (claim.owner, claim.attempt)", "record.in_progress and record.owner == claim.owner"),
    Bug("attempts start anew", RECORD, "attempts=(old.attempts if old else 0) + 1", "attempts=(old.attempts if old and old.owner else 0) + 1"),
    Bug("release keeps the lease", RECORD, "        lease_until=RELEASED,\n        last_error=error", "        last_error=error"),
    Bug("somebody's completion taken for one's own", RECORD, "        and record.status is Status.COMPLETED\n        and (record.owner, record.attempts) == (claim.owner, claim.attempt)\n", "        and record.status is Status.COMPLETED\n"),
    Bug("retention shorter than the lease", RECORD, "    return now + max(retention, lease)\n", "    return now + retention\n"),
    Bug("lease over at its very end", RECORD, "else self.lease_until) < now", "else self.lease_until) <= now"),
    Bug("retention over at its very end", RECORD, "self.expires_at < now and", "self.expires_at <= now and"),
    Bug("retention judged before the lease", RECORD, "self.expires_at < now and (not self.in_progress or self.lease_is_over(now))", "self.expires_at < now"),
    Bug("a live lease is no obstacle", RECORD, "    return Busy(record.lease_until or record.expires_at, verified, record.last_seen)\n", "    return Claimable(verified)\n"),
    Bug("no mismatch check", RECORD, "    if verified and record.fingerprint != job.fingerprint:\n", "    if verified and record.fingerprint != job.fingerprint and False:\n"),
    Bug("no mismatch check on takeover", RECORD, "    if verified and record.fingerprint != job.fingerprint:\n", "    if verified and record.fingerprint != job.fingerprint and not (record.in_progress and record.lease_is_over(now)):\n"),
    Bug("mismatch of schemes", RECORD, "    if verified and record.fingerprint != job.fingerprint:\n", "    if record.fingerprint not in (None, job.fingerprint):\n"),
    Bug("own claim recognised without fingerprint", RECORD, "    if record.owner == owner and record.fingerprint == job.fingerprint:\n", "    if record.owner == owner:\n"),
    Bug("own claim not recognised", RECORD, "    if record.owner == owner and record.fingerprint == job.fingerprint:\n", "    if False:\n"),
    Bug("another answer replayed", RECORD, "        return Completed(record.answer or Answer(\"null\"), verified)\n", "        return Completed(Answer(\"null\"), verified)\n"),
    Bug("release on completion loss", SERVICE, "            return Failed(Failure.COMPLETION_LOST, type(error).__name__)\n", "            return self._release(run, Lease(claim, run.began, run.lease, self.clock), \"\", Failed(Failure.COMPLETION_LOST, type(error).__name__))\n"),
    Bug("burying on receives instead of attempts", SERVICE, "        is_exhausted = life.runs >= limit and delivery.is_redelivery\n", "        is_exhausted = delivery.receives > limit\n"),
    Bug("no deadline guard after the claim", SERVICE, "        return Failed(Failure.NOT_STARTED) if is_over or is_over_by_date else None\n", "        return None\n"),
    Bug("an error of unknown class is no answer that may have landed", SERVICE, "            except Exception as error:\n                tried += 1\n", "            except StoreUnavailableError as error:\n                tried += 1\n"),
    Bug("a completion is tried once", SERVICE, "            self._ask(lambda: self.store.complete(claim, answer), last_try)\n", "            self._ask(lambda: self.store.complete(claim, answer), last_try, 1)\n"),
    Bug("an old copy in progress believed to be free", SERVICE, "            case Completed() | Busy():\n                return seen\n", "            case Busy():\n                return Completed(Answer(\"null\"))\n            case Completed():\n                return seen\n"),
    Bug("acknowledging a deferred message", BATCH, "            case Deferred() | Failed():\n                return self._retry(message, outcome)\n", "            case Deferred():\n                return Ack()\n            case Failed():\n                return self._retry(message, outcome)\n"),
    Bug("acknowledging what cannot be buried", BATCH, "                    return self._retry(message, Failed(Failure.UNEXPECTED))\n                except StoreUnavailableError", "                    return Ack()\n                except StoreUnavailableError"),
    Bug("acknowledging what cannot be read", BATCH, "                self.events.rejected_unread(entry.message, job, rejected)\n                return rejected\n", "                self.events.rejected_unread(entry.message, job, rejected)\n                return None\n"),
    Bug("returning while an operation runs", BATCH, "        while not all_ended:", "        while False and not all_ended:"),
    Bug("FIFO tail run after a failure", BATCH, "            if isinstance(entry.end, Retry):\n", "            if False:\n"),
    Bug("lease ends before the invocation", BATCH, "                lease = invocation.end + self.grace - self.clock.now()\n", "                lease = (invocation.end - self.clock.now()) / 4\n"),
    Bug("not started counts as done", BATCH, "                entry.end = Retry(soon(self.clock.now(), self.jitter))\n", "                entry.end = Ack()\n"),
    Bug("no back-off", VISIBILITY, "    again = now + backoff(receives, FIRST_BACKOFF, LONGEST_BACKOFF, jitter)\n", "    again = now\n"),
    Bug("a deferred message is back before the lease is over", VISIBILITY, "            latest = until + timedelta(seconds=1) - now\n", "            latest = (until - now) / 2\n"),
    Bug("an outage backs off like any failure", VISIBILITY, "            return max(again, now + OUTAGE_BACKOFF * (1 + jitter() / 2))\n", "            return again\n"),
    Bug("DynamoDB: lease over at its very end", EXPRESSIONS, "\"#lease < :now_ms\"", "\"#lease <= :now_ms\"", "dynamodb"),
    Bug("DynamoDB: retention judged before the lease", EXPRESSIONS, "f\"({_EXPIRED} AND (#status <> :in_progress OR {_LEASE_OVER}))\"", "_EXPIRED", "dynamodb"),
    Bug("DynamoDB: no owner in the fence", EXPRESSIONS, "#status = :in_progress AND #owner = :owner AND #attempts = :attempts", "#status = :in_progress AND (#owner = :owner OR #attempts = :attempts)", "dynamodb"),
    Bug("DynamoDB: a finished record may be written", EXPRESSIONS, "#status = :in_progress AND #owner = :owner AND #attempts = :attempts", "(#status = :in_progress OR #status <> :in_progress) AND #owner = :owner AND #attempts = :attempts", "dynamodb"),
    Bug("DynamoDB: no mismatch check on takeover", EXPRESSIONS, "        lapsed = f\"{lapsed} AND {_SAME_PAYLOAD}\"\n", "        lapsed = f\"{lapsed} AND ({_SAME_PAYLOAD} OR #id = #id)\"\n", "dynamodb"),
    Bug("lookup ignores the payload", SERVICE, "        seen = judge(record, run.job, run.execution_id, self.clock.now())\n", "        seen = Completed(record.answer or Answer('null'))\n"),
    Bug("lookup ignores the retention", SERVICE, "        seen = judge(record, run.job, run.execution_id, self.clock.now())\n", "        seen = judge(record, run.job, run.execution_id, min(self.clock.now(), record.expires_at))\n"),
    Bug("rejected though the release was refused", SERVICE, "        except LeaseLostError:\n            return Failed(Failure.LEASE_LOST, raised)\n", "        except LeaseLostError:\n            return outcome\n"),
    Bug("rejected though a renewal was refused", SERVICE, "            if lease.refused:", "            if False:"),
    Bug("run though the lease is over", SERVICE, "        if lease.lost():\n", "        if False:\n"),
    Bug("an attempt's number is always 1", SERVICE, "Attempt(claim.attempt, ", "Attempt(1, "),
    Bug("an unknown operation buried at once", SERVICE, "UNKNOWN_OPERATION_RECEIVES: Final = 10\n", "UNKNOWN_OPERATION_RECEIVES: Final = 1\n"),
    Bug("a letter without its attempts", SERVICE, "detail, acquired.last_error, claim.attempt)", "detail, acquired.last_error, 0)"),
    Bug("lost() never tells", LEASE, "        return self._refused or self._clock.now() >= end.wall or self._clock.monotonic() >= end.monotonic\n", "        return False\n"),
    Bug("visibility is never set", BATCH, "        visibilities = self.queue.set_visibility(timeouts) if timeouts else []", "        visibilities: list[str] = []"),
    Bug("back-off never doubles", VISIBILITY, "    again = now + backoff(receives,", "    again = now + backoff(1,"),
    Bug("a deferred message is kept back for an hour too long", VISIBILITY, "until + timedelta(seconds=1)", "until + timedelta(hours=1)"),
    Bug("a KeyError in the batch code", BATCH, "        if not all_ended:\n            self._return_unstarted(entries)\n        while not all_ended:", "        if len(entries) > 2:\n            raise KeyError(len(entries))\n        if not all_ended:\n            self._return_unstarted(entries)\n        while not all_ended:"),
    Bug("SystemExit ends the worker", SERVICE, "            if self.ends_process(error):\n                raise\n            run.error", "            if self.ends_process(error) or isinstance(error, SystemExit):\n                raise\n            run.error"),
    Bug("a cancellation ends the worker", SERVICE, "            if self.ends_process(error):\n                raise\n            run.error", "            if self.ends_process(error) or not isinstance(error, (Exception, SystemExit)):\n                raise\n            run.error"),
    Bug("an interrupted attempt is released", SERVICE, "            if self.ends_process(error):\n                raise\n            run.error", "            if self.ends_process(error) and type(error).__name__ != 'Interrupted':\n                raise\n            run.error"),
    Bug("an interruption is swallowed", BATCH, "        if error is not None:\n            raise error\n", ""),
    Bug("nothing done is settled beside an interruption", BATCH, "delete=error is not None)", "delete=False)"),
    Bug("no grace in the lease", BATCH, "                lease = invocation.end + self.grace - self.clock.now()\n", "                lease = invocation.end - self.clock.now()\n"),
    Bug("a failed job is not released", SERVICE, "            return self._release(run, lease, type(error).__name__, failed, count.run)\n", "            return failed\n"),
    Bug("a rejected job is not released", SERVICE, "            return self._release(run, lease, error_type, rejected, count.run, forget_payload=True)\n", "            return rejected\n"),
    Bug("an exhausted job is not released", SERVICE, "            return self._release(run, lease, last_error, rejected, count.unrun)\n", "            return rejected\n"),
    Bug("an unstarted job is not released", SERVICE, "            return self._release(run, lease, last_error, prevented, count.unrun)\n        try:", "            return prevented\n        try:"),
    Bug("a release is tried once", SERVICE, "                run.last_try,\n                STORE_TRIES,\n            )\n        except LeaseLostError:\n", "                run.last_try,\n                1,\n            )\n        except LeaseLostError:\n"),
    Bug("a failing release stands for the outcome", SERVICE, "            if lease.refused:", "            if True:"),
    Bug("what is done is not settled before the time-out", BATCH, "            self._settle(entries, invocation, delete=True)\n            self.events.flush()\n            all_ended = running.wait_for_next()\n", "            self._settle(entries, invocation, delete=False)\n            self.events.flush()\n            all_ended = running.wait_for_next()\n"),
    Bug("what ends after the margin is not settled", BATCH, "            self.events.flush()\n            all_ended = running.wait_for_next()\n", "            self.events.flush()\n            while not all_ended:\n                all_ended = running.wait_for_next()\n"),
    Bug("unstarted messages are not given back before the time-out", BATCH, "        if not all_ended:\n            self._return_unstarted(entries)\n        while not all_ended:", "        while not all_ended:"),
    Bug("a lane's tail is back at once", BATCH, "                        behind.end = entry.end\n", "                        behind.end = Retry(self.clock.now())\n"),
    Bug("a lane's tail backs off by itself", BATCH, "                        behind.end = entry.end\n", "                        behind.end = self._retry(behind.message, Failed(Failure.UNEXPECTED))\n"),
    Bug("what could not be buried is back at once", BATCH, "                    return self._retry(message, Failed(Failure.UNEXPECTED))\n                except StoreUnavailableError", "                    return Retry(self.clock.now())\n                except StoreUnavailableError"),
    Bug("a back-off is twice as long", VISIBILITY, "    again = now + backoff(receives, FIRST_BACKOFF,", "    again = now + backoff(receives, 2 * FIRST_BACKOFF,"),
    Bug("writes are tried beyond the margin", SERVICE, "self.clock.monotonic() + pause > last_try)", "self.clock.monotonic() + pause > last_try + self.margin)"),
    Bug("a claim is tried without end", SERVICE, "                if tried == tries or ", "                if "),
    Bug("a permanent error keeps the payload", SERVICE, "error_type, rejected, count.run, forget_payload=True)", "error_type, rejected, count.run)"),
    Bug("any failure forgets the payload", SERVICE, "type(error).__name__, failed, count.run)", "type(error).__name__, failed, count.run, forget_payload=True)"),
    Bug("the code of a permanent error is lost", SERVICE, "rejected = Rejected(code, detail, error_type, claim.attempt)", "rejected = Rejected(PermanentError.code, detail, error_type, claim.attempt)"),
    Bug("a payload mismatch is called stale", SERVICE, "                return Rejected(\"payload_mismatch\")\n", "                return Rejected(\"stale\")\n"),
    Bug("a letter without its error", SERVICE, "detail, acquired.last_error, claim.attempt)", "detail, None, claim.attempt)"),
    Bug("an unstarted attempt forgets the last error", SERVICE, "            return self._release(run, lease, last_error, prevented, count.unrun)\n        try:", "            return self._release(run, lease, \"NotStarted\", prevented, count.unrun)\n        try:"),
    Bug("another body in the letter", DEAD_LETTER, "    return DeadLetter(message, attributes)\n", "    return DeadLetter(__import__(\"copy\").replace(message, body=\"\"), attributes)\n"),
    Bug("a refused renewal is not told", LEASE, "        self._refused = True\n", "        pass\n"),
    Bug("a renewal extends nothing", LEASE, "        self._end = _end(asked, length)\n\n    def refuse", "        pass\n\n    def refuse"),
    Bug("an unstarted message is back after three hours", VISIBILITY, "    return now + timedelta(seconds=1 + int(jitter() * 10))\n", "    return now + timedelta(hours=3)\n"),
    Bug("an unstarted message is back at once", VISIBILITY, "    return now + timedelta(seconds=1 + int(jitter() * 10))\n", "    return now\n"),
    Bug("a redrive makes a message young again", NOTES, "    return min(filter(None, (earlier, message.sent_at)), default=None)\n", "    return message.sent_at\n"),
    Bug("a second letter forgets when it was first sent", DEAD_LETTER, "    sent = notes.first_sent(message)\n    facts", "    sent = message.sent_at\n    facts"),
    Bug("stale messages run", BATCH, "sent is not None and self.clock.now() - sent > self.retention", "sent is None"),
    Bug("an old copy in progress is believed", SERVICE, "            case Mismatch() if record is not None and not record.in_progress:\n", "            case Mismatch():\n"),
    Bug("a deleted record is completed all the same", MEMORY, "                held, now = self._held(claim), self._clock.now()\n                self._records[claim.key] = completed(", "                if claim.key not in self._records:\n                    return\n                held, now = self._held(claim), self._clock.now()\n                self._records[claim.key] = completed("),
    Bug("DynamoDB: a deleted record may be written", EXPRESSIONS, "#status = :in_progress AND #owner = :owner AND #attempts = :attempts", "(attribute_not_exists(#id) OR #status = :in_progress AND #owner = :owner AND #attempts = :attempts)", "dynamodb"),
    Bug("DynamoDB: an old answer is left behind", EXPRESSIONS, "removes=[\"#data\", \"#omitted\", \"#released_by\"]", "removes=[\"#released_by\"]", "dynamodb"),
    Bug("a too large answer is stored", SERVICE, "Answer.of(value, self.store.max_answer_bytes)", "Answer.of(value, None)"),
    Bug("a too large answer fails the job", SERVICE, "        return self._complete(run, claim, self._answer(value))\n", "        answer = self._answer(value)\n        if answer.omitted:\n            return self._release(run, lease, \"TooLarge\", Failed(Failure.OPERATION_RAISED, \"TooLarge\"))\n        return self._complete(run, claim, answer)\n"),
    Bug("a replay does not tell that its answer was omitted", RECORD, "        return Completed(record.answer or Answer(\"null\"), verified)\n", "        return Completed(Answer(record.answer.text if record.answer else \"null\"), verified)\n"),
    Bug("no tenant in the key", "domain/identity.py", "job_id if tenant is None else [tenant, job_id]", "job_id"),
    Bug("S3's test event is buried", "adapters/sqs/envelope.py", "            raise NothingToDoError\n", "            break\n"),
    Bug("never given up", SERVICE, "        if count.are_exhausted:\n", "        if False:\n"),
    Bug("given up one attempt too early", SERVICE, "        is_exhausted = life.runs >= limit and delivery.is_redelivery\n", "        is_exhausted = life.runs + 1 >= limit and delivery.is_redelivery\n"),
    Bug("duplicates of a batch side by side", ENTRY, "        return self.content.key if isinstance(self.content, Job) else self.message.message_id\n", "        return self.message.message_id\n"),
    Bug("a FIFO group is no lane", ENTRY, "        if self.message.is_fifo:\n            return self.message.group_id\n", ""),
    Bug("an attempt's deadline is without the margin", SERVICE, "        last_try = None if run.deadline is None else run.deadline - self.margin\n", "        last_try = run.deadline\n"),
    Bug("another effect key for each attempt", "domain/attempt.py", "return f\"{self.key}#{step}\"", "return f\"{self.key}#{step}{self.number}\""),
    Bug("an operation's changes stay in the job", SERVICE, "operation.run(run.job.for_one_attempt(), attempt)", "operation.run(run.job, attempt)"),
    Bug("no pause between two tries", SERVICE, "                self.clock.sleep(pause)\n", ""),
    Bug("a deferral forgets until when", SERVICE, "                return Deferred(until, since)\n", "                return Deferred(self.clock.now(), since)\n"),
    Bug("the queue is told again and again", BATCH, "            entry.settled = True\n", "            pass\n"),
    Bug("claimed within the deadline margin", BATCH, "            if self.clock.now() >= invocation.end - self.margin or not entry.try_start():\n", "            if not entry.try_start():\n"),
    Bug("taken over unverified, and not told", RECORD, "        return Claimable(verified)\n", "        return Claimable()\n"),
    Bug("waited for unverified, and not told", RECORD, "    return Busy(record.lease_until or record.expires_at, verified, record.last_seen)\n", "    return Busy(record.lease_until or record.expires_at, since=record.last_seen)\n"),
    Bug("answered unverified, and not told", RECORD, "        return Completed(record.answer or Answer(\"null\"), verified)\n", "        return Completed(record.answer or Answer(\"null\"))\n"),
    Bug("the first time seen is forgotten", RECORD, "first_seen=old.first_seen if old and old.first_seen else now", "first_seen=now"),
    Bug("DynamoDB: the first time seen is forgotten", EXPRESSIONS, "#first_seen = if_not_exists(#first_seen, :now_ms)", "#first_seen = :now_ms", "dynamodb"),
    Bug("visibility is set before the heartbeat has let go", VISIBILITY_HEARTBEAT, "        self._heartbeat.let_go([message for message, _ in timeouts])\n        return self._queue.set_visibility(timeouts)\n", "        return self._queue.set_visibility(timeouts)\n"),
    Bug("let go, and an extension is still under way", VISIBILITY_HEARTBEAT, "            self._answered.wait_for(lambda: not handles & self._asked)\n", "            pass\n"),
    Bug("a message that is held is not extended", VISIBILITY_HEARTBEAT, "            refused = self._ask([(one.message, self._seconds(one, now)) for one in asked]) if asked else {}\n", "            refused = {}\n"),
    Bug("a lease is renewed at its end", HEARTBEAT, "        return beat.length / BEATS_PER_LEASE\n", "        return beat.length + timedelta(seconds=1)\n"),
    Bug("a renewal that failed is the last one", HEARTBEAT, "            return beat.length / (2 * BEATS_PER_LEASE)\n", "            return beat.length * 100\n"),
    Bug("a lease is extended from the answer on", HEARTBEAT, "        beat.lease.extend(asked, length)\n", "        beat.lease.extend(Moment.of(self._clock), length)\n"),
    Bug("nobody renews once the operation has returned", SERVICE, "                return self._held(run, operation, lease, count, last_error)\n        except", "                pass\n            return self._held(run, operation, lease, count, last_error)\n        except"),
    Bug("a helper's refused thread is taken for one", PERIODIC, "        except ThreadRefusedError:\n            return\n", "        except ThreadRefusedError:\n            self._servers.append(server)\n            server.running = type(\"_\", (), {\"is_alive\": lambda self: True})()\n            return\n"),
    Bug("a poll worker runs beside others what a worker died with", POLL_WORKER, "is_alone=lane.is_alone or self.pool.size == 1", "is_alone=True"),
    Bug("a poll worker receives while a lane waits to run alone", POLL_WORKER, "any((lane.is_alone and not lane.is_overdue) or lane.waits_until is not None for", "any(lane.is_alone for"),
    Bug("a batch runs beside others what a worker died with", BATCH, "is_alone=len(lanes) == 1, not_alone=[]", "not_alone=[]"),
    Bug("lanes that are to run alone run side by side", BATCH, "lane = beside.not_alone.pop(int(self.jitter() * len(beside.not_alone)))\n            error = self._run_beside([lane], entries, invocation)\n", "waiting, beside.not_alone[:] = list(beside.not_alone), []\n            error = self._run_beside(waiting, entries, invocation)\n"),
    Bug("what has not started is kept when told to stop", POLL_WORKER, "        if is_late:\n            self.batches.give_back([lane.entries for lane in lanes])\n            return\n", "        if is_late:\n            return\n"),
    Bug("a forced redrive of a stale letter keeps its age", RULES, "        return Decision(Verdict.RUNS, forget_age=is_stale)\n    is_live", "        return Decision(Verdict.RUNS)\n    is_live"),
    Bug("to forget keeps the epoch", RECORD, "        epoch=seen.epoch + 1,\n", "        epoch=seen.epoch,\n"),
    Bug("to forget asks for no force", MEMORY, "or (record.is_held and not force)", "or False"),
    Bug("a purge asks for the retention alone", MEMORY, "if self._records[key].retention_is_over(now)]", "if self._records[key].expires_at < now or self._records[key].lease_until == RELEASED]"),
    Bug("SQLite: a refusal judged on rows that were rolled back", GROUP_COMMIT, "                entry.error = _copied(error)\n", "                entry.error = entry.error or _copied(error)\n", "sqlite"),
    Bug("SQLite: who shares a failing commit is not told", GROUP_COMMIT, "            for entry in batch:\n                entry.error = _copied", "            for entry in batch[:1]:\n                entry.error = _copied", "sqlite"),
    Bug("SQLite: one's piece is taken for another's", GROUP_COMMIT, "            if not entry.done:\n                with self._line:\n                    batch, self._waiting = self._waiting, []\n", "            if not entry.done:\n                with self._line:\n                    batch, self._waiting = self._waiting[:1], self._waiting[1:]\n", "sqlite"),
    Bug("SQLite: a claim is judged before its turn", SQLITE, "            seen = judge(old, job, owner, now)\n            if not isinstance(seen, Claimable):\n                return seen\n            new = ", "            new = ", "sqlite"),
    Bug("SQLite: no owner in the fence", SQLITE, "            if old is None or not is_held_by(old, claim):\n", "            if old is None or not (is_held_by(old, claim) or (old.in_progress and old.attempts == claim.attempt)):\n", "sqlite"),
    Bug("the limit counts attempts", SERVICE, "        is_exhausted = life.runs >= limit and delivery.is_redelivery\n", "        is_exhausted = claim.attempt > limit and delivery.is_redelivery\n"),
    Bug("the mark of the rejected message is ignored", SERVICE, "        is_sent_anew = before.rejected_at is not None and sent_at is not None and sent_at > before.rejected_at\n", "        is_sent_anew = before.rejected_at is not None\n"),
    Bug("a run after a lapse is not counted first", SERVICE, "        may_end_otherwise = before.unended > 1 or counted.runs >= limit\n", "        may_end_otherwise = counted.runs >= limit\n"),
    Bug("a completion is tried until the first lease's end", SERVICE, "        last_try = self.clock.monotonic() + run.lease if run.last_try is None else run.last_try\n", "        last_try = run.began.monotonic + run.lease if run.last_try is None else run.last_try\n"),
    Bug("rejected though its release did not land", SERVICE, "            if isinstance(outcome, Rejected):\n                run.error = error\n                return Failed(Failure.STORE_UNAVAILABLE, raised or type(error).__name__)\n", ""),
    Bug("runs are kept past the retention", RECORD, "    if old and old.retention_is_over(now):\n        life = life.following()\n", ""),
    Bug("what an attempt counts is written to another life", RECORD, "    return replace(held, life=life) if held.life.number == claim.life.number else held\n", "    return replace(held, life=life)\n"),
    Bug("a restart begins no other life", MEMORY, "replace(record, life=record.life.following())", "record"),
    Bug("a restart counts anew in the same life", MEMORY, "replace(record, life=record.life.following())", "replace(record, life=type(record.life)(record.life.number))"),
    Bug("to forget begins no other life", RECORD, "        life=seen.life.following(),\n", "        life=seen.life,\n"),
    Bug("to forget counts anew in the same life", RECORD, "        life=seen.life.following(),\n", "        life=Life(seen.life.number),\n"),
    Bug("the same life goes on after the retention", RECORD, "        life = life.following()\n", "        life = Life(life.number)\n"),
    Bug("an attempt that is claimed is not under way", LIFE, "        return replace(self, unended=self.unended + 1)\n", "        return self\n"),
    Bug("an attempt that ended is still under way", LIFE, "        return replace(self, unended=max(0, self.unended - 1))\n", "        return self\n"),
    Bug("a release ends every attempt that nobody ended", LIFE, "        return replace(self, unended=max(0, self.unended - 1))\n", "        return replace(self, unended=0)\n"),
    Bug("a claim forgets the rejection", RECORD, "        life=life.claimed(),\n", "        life=replace(life.claimed(), rejected_at=None),\n"),
    Bug("a message sent before the rejection counts anew", SERVICE, "sent_at > before.rejected_at\n", "sent_at < before.rejected_at\n"),
    Bug("a late claim takes the job that its owner gave back", RECORD, "    if record.released_by == owner:  # a claim that was asked for before and landed after: nobody waits for its answer\n        return Busy(now, verified)\n", ""),
    Bug("a release is repeated by who did not release it", RECORD, "(record.owner, record.released_by, record.attempts, record.lease_until) == (", "(record.owner, claim.owner, record.attempts, record.lease_until) == ("),
    Bug("a claim keeps who gave it back", RECORD, "        life=life.claimed(),\n", "        life=life.claimed(),\n        released_by=old.released_by if old else None,\n"),
    Bug("a completion keeps the runs", RECORD, "        life=Life(held.life.number),\n", ""),
    Bug("a run that was counted first is counted twice", SERVICE, "        return cls(is_exhausted, counted if may_end_otherwise else None, counted.ended(), unrun)\n", "        return cls(is_exhausted, counted if may_end_otherwise else None, (counted.counted() if may_end_otherwise else counted).ended(), unrun)\n"),
    Bug("a run is never counted at its release", SERVICE, "        return cls(is_exhausted, counted if may_end_otherwise else None, counted.ended(), unrun)\n", "        return cls(is_exhausted, counted if may_end_otherwise else None, unrun, unrun)\n"),
    Bug("a counted run that was prevented is not taken back", SERVICE, "            return self._release(run, lease, last_error, prevented, count.unrun)\n        return self._run(", "            return self._release(run, lease, last_error, prevented, count.run)\n        return self._run("),
    Bug("a late start is counted", SERVICE, "            return self._release(run, lease, last_error, prevented, count.unrun)\n        try:", "            return self._release(run, lease, last_error, prevented, count.run)\n        try:"),
    Bug("a deferred message waits by its receives alone", VISIBILITY, "            return now + min(doubled, max(latest, timedelta(0)))\n", "            return now + doubled\n"),
    Bug("DynamoDB: what an attempt counts is written to another life", EXPRESSIONS, "    write.condition = f\"{write.condition} AND {same_life}\"\n", "    write.condition = f\"{write.condition} AND ({same_life} OR #life <> :life)\"\n", "dynamodb"),
    Bug("DynamoDB: the same life goes on after the retention", EXPRESSIONS, "[\"#life = if_not_exists(#life, :one) + :one\", \"#unended = :one\"]", "[\"#life = if_not_exists(#life, :one)\", \"#unended = :one\"]", "dynamodb"),
    Bug("DynamoDB: a late claim takes the job that its owner gave back", EXPRESSIONS, "        lapsed = f\"{lapsed} AND {_NOT_RELEASED_BY}\"\n", "        pass\n", "dynamodb"),
    Bug("DynamoDB: a release is repeated by who did not release it", DYNAMODB_RECORD, "(self.owner, self.released_by, self.attempts", "(self.owner, other.owner, self.attempts", "dynamodb"),
    Bug("DynamoDB: a claim that anybody answers has landed", LAYER, "        if \"Attributes\" not in answer and \"ConsumedCapacity\" in answer:\n", "        if \"Attributes\" not in answer:\n", "dynamodb"),
    Bug("a redrive that anybody answers has been sent", "adapters/aws.py", "    if not isinstance(message_id, str) or not message_id:\n        raise NoEvidenceError(operation=request, lacks=\"MessageId\")\n", ""),
    Bug("DynamoDB: a write that anybody answers has landed", LAYER, "        return self._of_key(record.idempotency_key, \"UpdateItem\", answer.get(\"Attributes\"))\n\n    def _asked", "        return self._item_to_data_record(answer[\"Attributes\"]) if \"Attributes\" in answer else record\n\n    def _asked", "dynamodb"),
    Bug("DynamoDB: a completion keeps the runs", EXPRESSIONS, "    write.removes = [\"#runs\", \"#unended\", \"#rejected_at\"]\n", "", "dynamodb"),
    Bug("SQLite: a completion whose answer was lost is refused", SQLITE, "            if unless(old, claim):\n                return\n", "", "sqlite"),
    Bug("SQLite: attempts that nobody ended are not stored", ROWS, "*(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by)", "*(life.number, life.runs, 0, _number(life.rejected_at), record.released_by)", "sqlite"),
    Bug("SQLite: the time of a rejection is not stored", ROWS, "*(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by)", "*(life.number, life.runs, life.unended, None, record.released_by)", "sqlite"),
    Bug("SQLite: who gave it back is not stored", ROWS, "*(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by)", "*(life.number, life.runs, life.unended, _number(life.rejected_at), None)", "sqlite"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Found:
    """In how many of the seeds, and the first of them."""

    bug: Bug
    seeds: int
    found_in: int
    example: str


@contextmanager
def source_with(bug: Bug | None) -> Iterator[Path]:
    """A copy of the source with this bug, or with none. It goes afterwards."""
    with tempfile.TemporaryDirectory(prefix="onejob-planted-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("*.pyc.*"))
        if bug is not None:
            path = source / bug.file
            text = path.read_text()
            if text.count(bug.old) != 1:
                raise ValueError(f"{bug.name}: what it replaces stands {text.count(bug.old)} times in {bug.file}")
            path.write_text(text.replace(bug.old, bug.new))
        yield source


def environment_of(source: Path) -> dict[str, str]:
    """Of a process that imports that source."""
    return {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def look_for(bug: Bug, seeds: int, processes: int = 1) -> Found:
    """Run the simulator on a source with this bug."""
    with source_with(bug) as source:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.simulation", "--json", "--seeds", str(seeds)),
                *("--backend", bug.backend, "--processes", str(processes)),
            ],
            cwd=ROOT,
            env=environment_of(source),
            capture_output=True,
            text=True,
        )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise RuntimeError(f"{bug.name}: {done.stderr[-2000:]}") from None
    failing: dict[str, str] = told["failing"]
    first = min(failing, key=int, default="")
    return Found(bug, seeds, len(failing), f"seed {first}: {failing[first]}" if first else "")


def look_for_all(bugs: Sequence[Bug], seeds: int | None, processes: int) -> Iterator[Found]:
    """So many bugs at a time. Without a number of seeds: as few as find it, of these steps."""
    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(lambda bug: _found(bug, (seeds,) if seeds else STEPS), bugs)


def _found(bug: Bug, steps: Iterable[int]) -> Found:
    for step in steps:
        found = look_for(bug, step)
        if found.found_in:
            break
    return found


def _part(text: str) -> tuple[int, int]:
    """Where to begin, and each which one: `2/4` is every fourth bug from the second on."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r}: K/N with K from 1 to N, as 2/4")
    return int(number) - 1, int(parts)


def main() -> int:
    """0 if every bug was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted", description=__doc__)
    parser.add_argument("--seeds", type=int, help="for each bug (default: until it is found, 5000 at most)")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--part", type=_part, default=(0, 1), metavar="K/N", help="each N-th bug from the K-th on")
    options = parser.parse_args()
    first, step = options.part
    bugs, missed = BUGS[first::step], []
    for found in look_for_all(bugs, options.seeds, options.processes):
        print(f"{found.found_in:6} of {found.seeds:<6} {found.bug.name:55} {found.example[:100]}", flush=True)
        if not found.found_in:
            missed.append(found.bug.name)
    print(f"{len(bugs) - len(missed)} of {len(bugs)} planted bugs found")
    if missed:
        print(f"missed: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
