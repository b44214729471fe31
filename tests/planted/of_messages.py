"""Planted in what handles messages: visibility, redrives, and the threads that renew and run."""

from typing import Final

from tests.planted.bug import Near, simulated
from tests.simulation.planted import VISIBILITY, Bug

HEARTBEAT: Final = "adapters/sqs/polling/visibility_heartbeat.py"
DELETIONS: Final = "adapters/sqs/polling/deletions.py"
POLL_WORKER: Final = "adapters/sqs/polling/worker.py"
BATCH: Final = "adapters/sqs/batch.py"
LETTERS: Final = "adapters/sqs/dead_letter_queue.py"
NOTES: Final = "adapters/sqs/notes.py"
CALLER: Final = "adapters/http/identity.py"
QUEUE_URL: Final = "adapters/sqs/queue_url.py"
WANTED: Final = "entrypoints/cli/commands/dlq/wanted.py"
REDRIVE: Final = "adapters/sqs/redrive.py"
RULES: Final = "domain/redrive.py"
DLQ_REDRIVE: Final = "entrypoints/cli/commands/dlq/redrive.py"
SENDER: Final = "adapters/sqs/sender.py"
JOB_FACTORY: Final = "domain/job_factory.py"
OPERATION: Final = "domain/operation.py"
GROUPS: Final = "adapters/sqs/groups.py"
QUEUE: Final = "adapters/sqs/queue.py"
MESSAGE: Final = "adapters/sqs/message.py"
RENEWALS: Final = "adapters/threads/heartbeat.py"
PERIODIC: Final = "adapters/threads/periodic.py"
POOL: Final = "adapters/threads/pool.py"
CREW: Final = "adapters/threads/crew.py"
IDENTITY: Final = "domain/identity.py"
HTTP_REQUEST: Final = "adapters/http/request.py"

_HEARTBEAT: Final = "tests/adapters/sqs/polling/test_visibility_heartbeat.py"
_DELETIONS: Final = "tests/adapters/sqs/polling/test_deletions.py"
_WORKER: Final = "tests/adapters/sqs/polling/test_worker.py"
_LETTERS: Final = "tests/adapters/sqs/test_dead_letter_queue.py"
_NOTES: Final = "tests/adapters/sqs/test_notes.py"
_CALLER: Final = "tests/adapters/http/test_identity.py"
_QUEUE_URL: Final = "tests/adapters/sqs/test_queue_url.py"
_WANTED: Final = "tests/entrypoints/test_wanted.py"
_REDRIVE: Final = "tests/adapters/sqs/test_redrive.py"
_RULES: Final = "tests/entrypoints/test_redrive_rules.py"
_VISIBILITY: Final = "tests/adapters/sqs/test_visibility.py"
_RENEWALS: Final = "tests/adapters/threads/test_heartbeat.py"
_LEASES: Final = "tests/adapters/threads/test_many_leases.py"
_PERIODIC: Final = "tests/adapters/threads/test_periodic.py"
_POOL: Final = "tests/adapters/threads/test_pool.py"
_CREW: Final = "tests/adapters/threads/test_crew.py"

_LET_GO_FIRST: Final = f"{_HEARTBEAT}::test_a_visibility_is_set_when_nothing_extends_the_message_any_more"
_STALE: Final = f"{_RULES}::test_a_stale_letter_that_is_forced_is_sent_as_if_it_were_new_whatever_is_on_record"
_YOUNG: Final = f"{_RULES}::test_a_letter_that_is_not_stale_keeps_its_age"
_FORGOTTEN: Final = f"{_REDRIVE}::test_an_age_that_is_forgotten_is_forgotten_wherever_it_stands"
_DUPLICATE: Final = f"{_VISIBILITY}::test_a_duplicate_of_a_running_job_looks_again_after_1_2_4_seconds"
_FOREIGN: Final = "tests/entrypoints/test_foreign_bodies.py"
_GROUPS: Final = "tests/adapters/sqs/test_groups.py"
_KEPT_GROUP: Final = f"{_GROUPS}::test_a_message_keeps_its_group_in_another_queue"
_SENDER: Final = "tests/adapters/sqs/test_sender.py"
_NO_LONGER: Final = f"{_LEASES}::test_no_renewal_reaches_beyond_the_deadline_and_what_hangs_is_told_once"

NEAR: Final = (
    # a visibility that is set while the message is still extended
    Near(Bug("a visibility is set before the message is let go", HEARTBEAT, "        self._heartbeat.let_go([message for message, _ in timeouts])\n        return self._queue.set_visibility(timeouts)\n", "        failed = self._queue.set_visibility(timeouts)\n        self._heartbeat.let_go([message for message, _ in timeouts])\n        return failed\n"), (_LET_GO_FIRST,)),
    Near(Bug("of the messages that get a visibility one is let go", HEARTBEAT, "[message for message, _ in timeouts])\n", "[message for message, _ in timeouts[:1]])\n"), (_LET_GO_FIRST,)),
    Near(Bug("the wrong receipt is let go", HEARTBEAT, "            for handle in handles:\n                self._forget(handle)\n", "            for handle in sorted(self._held)[-len(handles) :]:\n                self._forget(handle)\n"), (f"{_HEARTBEAT}::test_what_was_let_go_is_extended_no_more",)),
    Near(Bug("an extension that is under way is not waited for", HEARTBEAT, "            self._answered.wait_for(lambda: not handles & self._asked)\n", "            pass\n"), (f"{_HEARTBEAT}::test_letting_go_waits_for_the_extension_that_is_under_way",)),
    Near(Bug("an extension is waited for only where all are under way", HEARTBEAT, "lambda: not handles & self._asked)", "lambda: not handles <= self._asked)"), (f"{_HEARTBEAT}::test_letting_go_of_several_waits_for_the_one_that_is_being_extended",)),
    Near(Bug("what is let go while it waits for its request is extended", HEARTBEAT, "                held = [one for one in batch if self._is_held(one)]\n", "                held = list(batch)\n"), (f"{_HEARTBEAT}::test_what_is_let_go_before_its_request_begins_is_not_in_it",)),
    Near(Bug("what was let go is waited for again after its extension", HEARTBEAT, "                if not self._is_held(held):  # it was deleted meanwhile\n                    continue\n", ""), (f"{_HEARTBEAT}::test_a_message_that_was_deleted_while_it_was_extended_is_no_failure",)),
    Near(Bug("a message whose deletion is tried again is let go", DELETIONS, "        self._gone([one.message for one in due if one not in again])\n", "        self._gone([one.message for one in due])\n"), (f"{_DELETIONS}::test_what_is_asked_for_again_is_held_until_it_is_deleted",)),
    Near(Bug("what is done is let go before it is deleted", POLL_WORKER, "[entry.message for entry in ended if not isinstance(entry.end, Ack)])\n", "[entry.message for entry in ended])\n"), (f"{_WORKER}::test_what_is_done_is_held_until_it_is_deleted",)),
    Near(Bug("a message is extended beyond its attempt's time", HEARTBEAT, "        return last if self.bound is None else min(last, self.bound)\n", "        return last\n"), (f"{_HEARTBEAT}::test_a_message_is_extended_no_further_than_its_attempt_may_take_and_that_is_not_called_too_long",)),
    # a forced redrive of a stale letter that keeps its age
    Near(Bug("a forced letter without a record keeps its age", RULES, "        return Decision(Verdict.RUNS, forget_age=is_stale)\n    is_live", "        return Decision(Verdict.RUNS)\n    is_live"), (_STALE,)),
    Near(Bug("a forced letter of a released job keeps its age", RULES, "        return Decision(Verdict.RUNS, forget_age=is_stale, restart=has_runs)\n", "        return Decision(Verdict.RUNS, restart=has_runs)\n"), (_STALE,)),
    Near(Bug("a forced letter of a running job keeps its age", RULES, "Decision(Verdict.WAITS, forget_age=is_stale, ", "Decision(Verdict.WAITS, "), (_STALE,)),
    Near(Bug("a forced letter of a finished job keeps its age", RULES, "    if force:\n        return Decision(Verdict.RUNS, forget=True, forget_age=is_stale)\n", "    if force:\n        return Decision(Verdict.RUNS, forget=True)\n"), (_STALE,)),
    Near(Bug("a forced letter of another payload keeps its age", RULES, "            return Decision(Verdict.MISMATCH, send=False)\n        return Decision(Verdict.RUNS, forget=True, forget_age=is_stale)\n", "            return Decision(Verdict.MISMATCH, send=False)\n        return Decision(Verdict.RUNS, forget=True)\n"), (_STALE,)),
    Near(Bug("every letter without a record loses its age", RULES, "        return Decision(Verdict.RUNS, forget_age=is_stale)\n    is_live", "        return Decision(Verdict.RUNS, forget_age=True)\n    is_live"), (_YOUNG,)),
    Near(Bug("whatever is forced loses its age", RULES, "    is_stale = first_sent is not None and now - first_sent > retention\n    if is_stale and not force:\n        return Decision(Verdict.STALE, send=False)\n", "    is_stale = first_sent is not None and now - first_sent > retention\n    if is_stale and not force:\n        return Decision(Verdict.STALE, send=False)\n    is_stale = force\n"), (_YOUNG,)),
    Near(Bug("a letter is stale by the time of its own message", DLQ_REDRIVE, "first_sent=letter.first_sent, now", "first_sent=letter.message.sent_at, now"), (f"{_RULES}::test_a_letter_is_as_old_as_the_first_message_of_its_job",)),
    Near(Bug("payloads of two schemes are another payload", RULES, "same_scheme(record.fingerprint, job.fingerprint) and record.fingerprint != job.fingerprint", "record.fingerprint not in (None, job.fingerprint)"), (f"{_RULES}::test_payloads_that_cannot_be_compared_are_no_mismatch",)),
    Near(Bug("an age stays in the note that is written anew", REDRIVE, "if name != \"first_sent\"}", "if name != \"sent\"}"), (_FORGOTTEN,)),
    Near(Bug("a claim stays where the age does not fit", REDRIVE, "for name, value in letter.attributes.items() if name != ATTRIBUTE}", "for name, value in letter.attributes.items()}"), ("tests/adapters/sqs/test_redrive_size.py::test_a_claim_gives_way_to_an_age_and_is_left_out_where_that_does_not_fit",)),
    Near(Bug("an age is not told where SQS moved the message", REDRIVE, "    if not forget_age and letter.first_sent is not None:\n", "    if not forget_age and letter.note:\n"), ("tests/adapters/sqs/test_redrive_size.py::test_the_age_is_added_as_long_as_it_fits",)),
    Near(Bug("an age is forgotten where it is not asked for", REDRIVE, "    if letter.note and not forget_age:\n        return dict(letter.attributes)\n", "    forget_age = True\n"), (f"{_REDRIVE}::test_an_age_that_is_not_to_be_forgotten_goes_with_the_message",)),
    Near(Bug("a redrive does not pass on that the age is to be forgotten", DLQ_REDRIVE, "epoch=epoch, forget_age=decision.forget_age\n", "epoch=epoch\n"), (f"{_RULES}::test_a_forced_redrive_sends_a_stale_letter_without_its_age",)),
    # a lease that is believed in longer than the store keeps it
    Near(Bug("a renewal counts from its answer", RENEWALS, "        beat.lease.extend(asked, length)\n", "        beat.lease.extend(Moment.of(self._clock), length)\n"), (f"{_RENEWALS}::test_a_renewal_counts_from_when_it_was_asked_for_and_not_from_its_answer",)),
    Near(Bug("a shortened renewal is believed to be a full one", RENEWALS, "        beat.lease.extend(asked, length)\n", "        beat.lease.extend(asked, beat.length)\n"), (f"{_RENEWALS}::test_a_renewal_that_is_cut_at_the_deadline_is_believed_until_there",)),
    Near(Bug("a renewal near the deadline is a full one", RENEWALS, "        length = beat.length if beat.end is None else min(beat.length, beat.end - asked.monotonic)\n", "        length = beat.length\n"), (_NO_LONGER,)),
    Near(Bug("a renewal that failed is believed", RENEWALS, "            return beat.length / (2 * BEATS_PER_LEASE)\n", "            beat.lease.extend(asked, length)\n            return beat.length / (2 * BEATS_PER_LEASE)\n"), (f"{_RENEWALS}::test_a_store_that_never_answers_loses_the_lease_by_time",)),
    # when a deferred message comes back
    Near(simulated("a deferred message waits by its receives alone"), (f"{_VISIBILITY}::test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over",)),
    Near(Bug("a deferred message is not back at the lease's end though many receives were used up", VISIBILITY, "            if has_run > LONGEST_INVOCATION:\n                latest = max(latest, has_run / 2)\n", "            if has_run > LONGEST_INVOCATION or receives > 10:\n                latest = max(latest, doubled / 16)\n"), (f"{_VISIBILITY}::test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over",)),
    Near(Bug("a deferred message is not back at the end of a lease that is not renewed", VISIBILITY, "            if has_run > LONGEST_INVOCATION:\n", "            if has_run > LONGEST_INVOCATION / 2:\n"), (f"{_VISIBILITY}::test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over",)),
    Near(Bug("a job that has run for an unknown time has run for long", VISIBILITY, "timedelta(0) if since is None else now - since", "LONGEST_INVISIBLE if since is None else now - since"), (f"{_VISIBILITY}::test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over",)),
    Near(simulated("a deferred message is back before the lease is over"), (f"{_VISIBILITY}::test_a_deferred_message_is_back_when_the_lease_that_it_met_is_over",)),
    Near(Bug("a deferred message's wait does not double", VISIBILITY, "            doubled = backoff(receives, FIRST_LOOK,", "            doubled = backoff(1, FIRST_LOOK,"), (_DUPLICATE,)),
    Near(Bug("a job of hours uses up a receive at each end of its lease", VISIBILITY, "            if has_run > LONGEST_INVOCATION:\n", "            if False:\n"), (f"{_VISIBILITY}::test_a_duplicate_of_a_job_of_12_hours_uses_up_few_receives",)),
    Near(Bug("a look that is too late is in the past", VISIBILITY, "            return now + min(doubled, max(latest, timedelta(0)))\n", "            return now + min(doubled, latest)\n"), (f"{_VISIBILITY}::test_a_lease_that_is_over_is_looked_at_within_a_second",)),
    Near(Bug("a visibility reaches beyond SQS's 12 hours", VISIBILITY, "ceil(min(visible_at - now, longest).total_seconds())", "ceil((visible_at - now).total_seconds())"), (f"{_VISIBILITY}::test_a_message_is_never_invisible_for_more_than_12_hours_from_its_receive",)),
    Near(Bug("a visibility is rounded down", VISIBILITY, "ceil(min(visible_at - now, longest).total_seconds())", "int(min(visible_at - now, longest).total_seconds())"), (f"{_VISIBILITY}::test_a_timeout_is_whole_seconds_never_too_early_never_negative",)),
    # a redrive begins another life
    Near(Bug("a letter of a released job begins no other life", RULES, "        return Decision(Verdict.RUNS, forget_age=is_stale, restart=has_runs)\n", "        return Decision(Verdict.RUNS, forget_age=is_stale)\n"), (f"{_RULES}::test_a_letter_of_a_job_that_is_not_done_begins_another_life_of_it",)),
    Near(Bug("a letter of a running job begins no other life", RULES, "Decision(Verdict.WAITS, forget_age=is_stale, restart=has_runs)", "Decision(Verdict.WAITS, forget_age=is_stale)"), (f"{_RULES}::test_a_letter_of_a_job_that_is_not_done_begins_another_life_of_it",)),
    Near(Bug("a life that counts no run has nothing to leave behind", RULES, "    has_runs = record.life != Life(record.life.number)\n", "    has_runs = record.life.runs > 0\n"), (f"{_RULES}::test_whatever_a_life_has_counted_ends_with_it",)),
    Near(Bug("every other life has something to leave behind", RULES, "    has_runs = record.life != Life(record.life.number)\n", "    has_runs = record.life != Life()\n"), (f"{_RULES}::test_whatever_a_life_has_counted_ends_with_it",)),
    Near(Bug("a redrive begins no other life", DLQ_REDRIVE, "            self.records.admin.restart(record)\n", "            pass\n"), (f"{_RULES}::test_a_message_that_is_sent_back_has_all_its_runs",)),
    # threads
    Near(Bug("a thread that was refused counts as one", POOL, "                except ThreadRefusedError:\n                    break\n            return len(self._members)\n", "                except ThreadRefusedError:\n                    return wanted\n            return len(self._members)\n"), (f"{_POOL}::test_a_refused_thread_leaves_the_others_and_can_be_had_later",)),
    Near(Bug("a batch counts on a thread that was refused", CREW, "        more = min(more, self._pool.ensure(number + more) - number)\n", "        self._pool.ensure(number + more)\n"), (f"{_CREW}::test_a_batch_that_gets_no_thread_at_all_has_ended_and_is_never_run",)),
    Near(Bug("a thread that died counts as one", POOL, "            self._members = [member for member in self._members if member.is_alive()]\n", ""), (f"{_POOL}::test_a_thread_that_died_is_replaced_and_what_waits_is_run",)),
    Near(Bug("work is given to a server that was refused", PERIODIC, "        except ThreadRefusedError:\n            return\n        self._servers.append(server)\n", "        except ThreadRefusedError:\n            pass\n        self._servers.append(server)\n"), (f"{_PERIODIC}::test_a_refused_thread_is_asked_for_at_the_next_use_and_by_supervision",)),
    Near(Bug("a lease is renewed after its context has ended", RENEWALS, "                beat.has_ended = True\n                self._beats.discard(beat)\n", "                pass\n"), (f"{_RENEWALS}::test_nothing_is_renewed_after_the_operation",)),
    Near(Bug("a renewal that is under way is not waited for", RENEWALS, "            with beat.renewal:  # waits for a renewal that is under way: none comes later\n                pass\n", ""), (f"{_LEASES}::test_an_ended_context_waits_for_its_renewal_and_is_renewed_no_more",)),
    Near(Bug("a renewal that was due before the end is asked for after it", RENEWALS, "            if beat.has_ended:\n                return\n", ""), (f"{_RENEWALS}::test_a_renewal_that_was_due_before_the_end_is_not_asked_for_after_it",)),
    Near(Bug("a lease's first renewal is due by the wall clock", RENEWALS, "lease.end.monotonic - length + length / BEATS_PER_LEASE)", "self._clock.monotonic() + (lease.end.wall - self._clock.now()) - length + length / BEATS_PER_LEASE)"), (f"{_RENEWALS}::test_a_wall_clock_that_is_set_before_the_first_renewal_does_not_delay_it",)),
    Near(Bug("a lease's end is due by the wall clock", RENEWALS, "        end = None if until is None else self._clock.monotonic() + (until - self._clock.now())\n", "        end = None if until is None else until - datetime.fromtimestamp(0, until.tzinfo)\n"), (_NO_LONGER,)),
    Near(Bug("a lease that is lost tells of no overdue attempt", RENEWALS, "                due = beat.end if beat.lease.refused else min(due, beat.end)\n", "                due = min(due, beat.end)\n                if beat.lease.refused:\n                    return\n"), (f"{_LEASES}::test_an_attempt_whose_lease_is_lost_is_told_when_it_is_overdue_too",)),
    # the order of a FIFO group as it is sent
    Near(Bug("a request holds several messages of a FIFO group", SENDER, "in_order=self._is_fifo)", "in_order=False)"), (f"{_SENDER}::test_what_is_refused_for_a_moment_keeps_its_place_in_its_group",)),
    Near(Bug("a FIFO group goes on behind what is refused for good", SENDER, "                blocked |= {message.group_id for message, _ in done.refused}\n", ""), (f"{_SENDER}::test_nothing_of_a_group_is_sent_behind_what_is_refused_for_good_and_other_groups_go_on",)),
    Near(Bug("a FIFO group goes on behind what is refused again and again", SENDER, "                blocked |= {message.group_id for message in done.unsent}\n", ""), (f"{_SENDER}::test_nothing_of_a_group_is_sent_behind_what_is_refused_again_and_again",)),
    # the group of a fair queue
    Near(Bug("a burial on a standard queue drops the group", QUEUE, "        options |= kept_group(message, url)\n", "        options |= kept_group(message, url) if is_fifo(url) else {}\n"), ("tests/adapters/sqs/test_queue.py::test_a_standard_dead_letter_queue_is_sent_the_group_if_there_is_one_and_no_deduplication_id",)),
    Near(Bug("a redrive on a standard queue drops the group", REDRIVE, "    options |= kept_group(letter.message, url)\n", "    options |= kept_group(letter.message, url) if is_fifo(url) else {}\n"), (_KEPT_GROUP,)),
    Near(Bug("a group on a standard queue is taken for FIFO", MESSAGE, "        return self.queue_arn.endswith(\".fifo\")\n", "        return self.group_id is not None\n"), ("tests/adapters/sqs/test_batch.py::test_a_group_id_on_a_standard_queue_orders_nothing",)),
    Near(Bug("a tenant that SQS does not take as a group is sent as it is", GROUPS, "    if job.tenant is None or is_group(job.tenant):\n", "    if job.tenant is None or job.tenant:\n"), (f"{_GROUPS}::test_a_tenant_is_a_group_of_its_own_in_characters_that_sqs_takes",)),
    Near(Bug("on a FIFO queue a tenant's jobs wait for one another", GROUPS, "    if is_fifo(queue):\n        return job.key.digest\n", ""), (f"{_GROUPS}::test_on_a_fifo_queue_a_job_is_a_group_of_its_own",)),
    # bodies of other services
    Near(Bug("what a from_body raises ends what is beside its message", JOB_FACTORY, "    except BaseException as error:  # the user's code", "    except ArithmeticError as error:  # the user's code"), (f"{_FOREIGN}::test_what_it_raises_rejects_its_message_alone_and_tells_no_value",)),
    Near(Bug("a job message is translated too", JOB_FACTORY, " and not _is_of_a_job(message):\n", ":\n"), (f"{_FOREIGN}::test_cloud_events_and_pointers_and_never_a_job",)),
    Near(Bug("wrapped operations forget from_body", OPERATION, "from_body=self.from_body)\n", "from_body=None)\n"), (f"{_FOREIGN}::test_wrapped_operations_translate_too",)),
    # foreign text whose cost is looked at before it is paid
    Near(Bug("an id is normalised before its length is looked at", IDENTITY, "    if len(value) > MAX_ID_CODE_POINTS:\n", "    if False:\n"), ("tests/adapters/sqs/test_batch.py::test_a_message_with_an_endless_name_costs_its_neighbours_nothing[job_id]",)),
    Near(Bug("a decomposed id is refused by the length of its composed form", IDENTITY, "MAX_ID_CODE_POINTS: Final = _MOST_CODE_POINTS * MAX_ID_BYTES\n", "MAX_ID_CODE_POINTS: Final = MAX_ID_BYTES\n"), ("tests/domain/test_job.py::test_the_longest_spelling_of_a_legal_id_is_legal",)),
    Near(Bug("an HTTP body is decoded before its size is looked at", HTTP_REQUEST, "        if len(body) > (_MAX_BASE64 if self.is_base64 else MAX_BODY_BYTES):\n", "        if False:\n"), ("tests/adapters/http/test_request.py::test_the_limit_is_looked_at_before_the_body_is_decoded",)),
    Near(Bug("a number is rounded before it is compared", "domain/strict_json.py", "    if not _is_exact(digits, number):\n", "    if False:\n"), ("tests/domain/test_strict_json.py::test_a_number_that_a_double_does_not_hold_as_written_is_refused_by_name",)),
    Near(Bug("a number that is too small becomes zero", "domain/strict_json.py", "        return not any(digit in \"123456789\" for digit in digits.lower().partition(\"e\")[0])\n", "        return True\n"), ("tests/domain/test_strict_json.py::test_a_number_that_a_double_does_not_hold_as_written_is_refused_by_name",)),
    # a note that no worker wrote
    Near(Bug("a note is believed whoever wrote it", NOTES, "        return facts if secret is not None and hmac.compare_digest(mac, _mac(secret, facts, message.body)) else {}\n", "        return facts\n"), (f"{_NOTES}::test_a_note_that_was_changed_or_is_not_signed_is_a_claim",)),
    Near(Bug("a note is signed without its body", NOTES, "sha256(body.encode(errors=\"surrogatepass\")).digest() + written", "written"), (f"{_NOTES}::test_a_note_belongs_to_its_body_and_to_its_namespaces_secret",)),
    Near(Bug("an age is taken from what a message claims", NOTES, "        return earliest(self.of(message), message)\n", "        return earliest(claimed(message), message)\n"), ("tests/adapters/sqs/test_batch.py::test_an_age_that_no_worker_wrote_makes_no_job_stale",)),
    Near(Bug("a letter is as old as it claims", LETTERS, "        return earliest(self.note, self.message)\n", "        return earliest(self.note | self.claim, self.message)\n"), (f"{_RULES}::test_an_age_that_a_message_claims_makes_no_letter_stale",)),
    Near(Bug("a letter chooses an operation by what it claims", LETTERS, "_text(self.note, \"operation\") or factory", "self.claim.get(\"operation\") or factory"), (f"{_LETTERS}::test_a_claimed_operation_is_not_the_jobs",)),
    Near(Bug("a job is buried without its age while its note cannot be signed", BATCH, "            if entry.operation is not None:\n                raise\n", ""), ("tests/adapters/sqs/test_batch.py::test_a_job_whose_note_cannot_be_signed_stays_and_what_is_no_job_leaves_all_the_same",)),
    # which job
    Near(Bug("an id is that of every tenant", WANTED, "return job is not None and job.key in self.keys", "return job is not None and job.job_id in [\"1\"]"), (f"{_WANTED}::test_an_id_is_that_of_one_job",)),
    Near(Bug("an id is compared as it is typed", WANTED, "ids = [clean_id(each, \"job_id\") for each in options.job_ids]", "ids = list(options.job_ids)"), (f"{_WANTED}::test_an_id_and_a_tenant_are_meant_in_normal_form",)),
    Near(Bug("an operation that is asked for filters nothing", WANTED, "        by_operation = self.operation is None or ", "        by_operation = True or "), (f"{_WANTED}::test_operation_and_tenant_filter",)),
    Near(Bug("each letter of a job is told to run", DLQ_REDRIVE, "        return replace(decision, verdict=Verdict.REPEATED)\n", "        return decision\n"), (f"{_RULES}::test_a_job_of_three_letters_is_told_to_run_once",)),
    Near(Bug("another payload of a job that was sent is sent too", DLQ_REDRIVE, "        if same_scheme(sent, job.fingerprint) and sent != job.fingerprint:\n", "        if False:\n"), (f"{_RULES}::test_another_payload_of_a_job_that_was_sent_is_left",)),
    # who is calling
    Near(Bug("an identity of a pool that is not told is its role", CALLER, "    if any(_session(iam.get(name)) == _POOL_SESSION for name in (\"userId\", \"callerId\", \"userArn\")):\n", "    if False:\n"), (f"{_CALLER}::test_an_identity_of_a_pool_that_a_function_url_does_not_tell_is_refused",)),
    Near(Bug("an empty identity is its role's", CALLER, "    if (pool := iam.get(\"cognitoIdentity\")) is not None:\n", "    if pool := _members(iam.get(\"cognitoIdentity\")):\n"), (f"{_CALLER}::test_an_identity_that_is_not_whole_is_never_the_roles",)),
    # where a queue is
    Near(Bug("a queue of another region is taken for this one's", QUEUE_URL, "        if says is not None and asked is not None and says != asked:\n", "        if False:\n"), (f"{_QUEUE_URL}::test_a_queue_of_another_place_is_told",)),
    Near(Bug("a queue is known by account and name", QUEUE_URL, "    return _path(one) == _path(other) and _place(one) == _place(other)\n", "    return _path(one) == _path(other)\n"), (f"{_QUEUE_URL}::test_a_queue_is_the_same_by_place_account_and_name",)),
)  # fmt: skip
