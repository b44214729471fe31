"""Planted in the state machine: leases, runs and their limit, writes that are tried again, old copies that are read."""

from typing import Final

from tests.planted.bug import Near, simulated
from tests.simulation.planted import LEASE, LIFE, POLL_WORKER, SERVICE, Bug

RUNNER: Final = "adapters/files/runner.py"
_RUNNER: Final = "tests/adapters/files/test_runner.py"
_ALONE: Final = "tests/adapters/sqs/polling/test_alone.py"
_LEASE: Final = "tests/domain/test_lease.py"
_RUNS: Final = "tests/domain/test_runs.py"
_SERVICE: Final = "tests/domain/test_service.py"

_LATE_OPERATION: Final = f"{_SERVICE}::test_without_a_deadline_a_completion_is_tried_for_one_lease_after_the_operation"
_UNTIL_MARGIN: Final = f"{_SERVICE}::test_a_completion_that_cannot_be_written_until_the_margin_is_lost_and_not_released"
_DEADLINE: Final = f"{_SERVICE}::test_a_completion_is_tried_until_the_deadline_though_the_lease_was_shorter"
_UNTIL_WRITTEN: Final = f"{_SERVICE}::test_the_heartbeat_goes_on_until_the_record_is_written"
_PREVENTED: Final = f"{_RUNS}::test_a_run_that_was_counted_and_is_prevented_counts_no_more"
_LOST: Final = (
    "        return self._refused or self._clock.now() >= end.wall or self._clock.monotonic() >= end.monotonic\n"
)
_LAST_TRY: Final = "        last_try = self.clock.monotonic() + run.lease if run.last_try is None else run.last_try\n"

NEAR: Final = (
    # a lease that is believed in longer than it lasts
    Near(Bug("lost() by the wall clock alone", LEASE, _LOST, "        return self._refused or self._clock.now() >= end.wall\n"), (f"{_LEASE}::test_a_clock_that_is_set_back_prolongs_no_lease",)),
    Near(Bug("lost() by the monotonic clock alone", LEASE, _LOST, "        return self._refused or self._clock.monotonic() >= end.monotonic\n"), (f"{_LEASE}::test_a_clock_that_runs_on_while_the_machine_sleeps_ends_the_lease",)),
    Near(Bug("lost() when both clocks say so", LEASE, _LOST, _LOST.replace("end.wall or", "end.wall and")), (f"{_LEASE}::test_a_clock_that_is_set_back_prolongs_no_lease",)),
    Near(Bug("a late renewal is added to the lease that it renews", LEASE, "        self._end = _end(asked, length)\n\n    def refuse", "        self._end = _end(self._end, length)\n\n    def refuse"), (f"{_LEASE}::test_a_renewal_counts_from_when_it_was_asked_for",)),
    Near(Bug("a renewal moves one clock's end", LEASE, "    return Moment(asked.wall + length, asked.monotonic + length)\n", "    return Moment(asked.wall + length, asked.monotonic + 2 * length)\n"), (f"{_LEASE}::test_a_clock_that_is_set_back_prolongs_no_lease",)),
    Near(Bug("a lease begins with the answer to its claim", SERVICE, "        lease = Lease(claim, run.began, run.lease, self.clock)\n", "        lease = Lease(claim, Moment.of(self.clock), run.lease, self.clock)\n"), (f"{_SERVICE}::test_a_claim_that_arrives_after_its_lease_is_not_run",)),
    Near(simulated("a renewal extends nothing"), (f"{_LEASE}::test_a_renewal_moves_the_end",)),
    Near(simulated("a refused renewal is not told"), (f"{_LEASE}::test_a_refused_renewal_loses_it_at_once",)),
    # a completion that is not tried for as long as it may be
    Near(simulated("a completion is tried until the first lease's end"), (_LATE_OPERATION,)),
    Near(Bug("a completion is tried until the lease's end whatever the deadline", SERVICE, _LAST_TRY, "        end = run.began.monotonic + run.lease\n        last_try = end if run.last_try is None else min(run.last_try, end)\n"), (_DEADLINE,)),
    Near(Bug("a completion is tried for one lease whatever the deadline", SERVICE, _LAST_TRY, "        last_try = self.clock.monotonic() + run.lease\n"), (_UNTIL_MARGIN,)),
    Near(Bug("a completion is tried until twice the margin", SERVICE, _LAST_TRY, "        last_try = self.clock.monotonic() + run.lease if run.last_try is None else run.last_try - self.margin\n"), (_UNTIL_MARGIN,)),
    Near(Bug("a completion's last try is by the wall clock", SERVICE, "        last_try = self.clock.monotonic() + run.lease if run.last_try is None else run.last_try\n", "        left = run.lease if run.deadline is None else run.deadline - self.margin - self.clock.now()\n        last_try = self.clock.monotonic() + left\n"), (f"{_RUNS}::test_a_clock_that_is_set_ends_no_tries_of_a_completion",)),
    Near(simulated("a completion is tried once"), (f"{_SERVICE}::test_a_completion_is_written_again_until_it_lands",)),
    Near(Bug("a completion is tried as often as a claim", SERVICE, "            self._ask(lambda: self.store.complete(claim, answer), last_try)\n", "            self._ask(lambda: self.store.complete(claim, answer), last_try, STORE_TRIES)\n"), (f"{_SERVICE}::test_a_completion_is_written_again_until_it_lands",)),
    Near(Bug("a release is tried without end", SERVICE, "                run.last_try,\n                STORE_TRIES,\n            )\n        except LeaseLostError:\n", "                run.last_try,\n            )\n        except LeaseLostError:\n"), (f"{_SERVICE}::test_a_release_that_fails_is_told_beside_the_outcome",)),
    Near(simulated("nobody renews once the operation has returned"), (_UNTIL_WRITTEN,)),
    Near(Bug("the heartbeat ends with the margin", SERVICE, "self.heartbeat(lease, run.lease, run.deadline, ", "self.heartbeat(lease, run.lease, run.last_try, "), (f"{_SERVICE}::test_the_heartbeat_is_told_the_deadline_and_tells_when_the_attempt_is_overdue",)),
    Near(simulated("a failing release stands for the outcome"), (f"{_SERVICE}::test_a_release_that_fails_is_told_beside_the_outcome",)),
    Near(simulated("rejected though its release did not land"), (f"{_SERVICE}::test_a_rejection_whose_release_cannot_be_written_is_tried_again_since_it_had_no_effect",)),
    # runs, and the limit on them
    Near(simulated("the limit counts attempts"), (f"{_RUNS}::test_late_starts_are_no_runs",)),
    Near(simulated("given up one attempt too early"), (f"{_RUNS}::test_a_job_that_keeps_failing_is_rejected_after_its_runs",)),
    Near(simulated("the mark of the rejected message is ignored"), (f"{_RUNS}::test_a_rejected_message_that_could_not_be_sent_away_does_not_run_when_it_is_back",)),
    Near(simulated("a message sent before the rejection counts anew"), (f"{_RUNS}::test_a_message_sent_anew_after_a_permanent_error_has_all_its_runs",)),
    Near(Bug("a message sent at the time of the rejection counts anew", SERVICE, "sent_at > before.rejected_at\n", "sent_at >= before.rejected_at\n"), (f"{_RUNS}::test_a_message_that_was_not_sent_after_a_rejection_counts_on",)),
    Near(Bug("a message without a time counts anew", SERVICE, "sent_at is not None and sent_at > before.rejected_at\n", "(sent_at is None or sent_at > before.rejected_at)\n"), (f"{_RUNS}::test_a_message_that_was_not_sent_after_a_rejection_counts_on",)),
    Near(Bug("a second rejection moves the first", LIFE, "        return replace(self, rejected_at=self.rejected_at or at)\n", "        return replace(self, rejected_at=at)\n"), (f"{_RUNS}::test_a_message_sent_after_a_rejection_has_its_runs_though_the_rejected_one_comes_back",)),
    Near(Bug("a rejection leaves no time", LIFE, "        return replace(self, rejected_at=self.rejected_at or at)\n", "        return self\n"), (f"{_RUNS}::test_a_message_sent_anew_after_a_rejection_has_its_runs_whatever_its_first_receives_meet",)),
    Near(Bug("a message sent after a rejection counts anew at each run", LIFE, "        return replace(self, runs=0, unended=1, rejected_at=None)\n", "        return replace(self, runs=0, unended=1)\n"), (f"{_RUNS}::test_a_message_sent_anew_after_a_rejection_has_its_runs_whatever_its_first_receives_meet",)),
    Near(Bug("a message sent after a rejection keeps the deaths before it", LIFE, "        return replace(self, runs=0, unended=1, rejected_at=None)\n", "        return replace(self, runs=0, rejected_at=None)\n"), (f"{_RUNS}::test_a_message_sent_after_a_rejection_has_no_deaths_before_it",)),
    Near(Bug("a rejection over HTTP begins a life", SERVICE, "        if isinstance(outcome, Rejected) and run.delivery.counts_runs:\n", "        if isinstance(outcome, Rejected):\n"), (f"{_RUNS}::test_a_rejection_over_http_gives_no_message_its_runs_anew",)),
    Near(Bug("another message counts on after a rejection", SERVICE, "        is_sent_anew = before.rejected_at is not None and sent_at is not None and sent_at > before.rejected_at\n", "        is_sent_anew = False\n"), (f"{_RUNS}::test_a_message_sent_anew_after_a_rejection_has_its_runs_whatever_its_first_receives_meet",)),
    Near(simulated("a run after a lapse is not counted first"), (f"{_RUNS}::test_a_job_whose_worker_dies_each_time_has_one_run_more",)),
    Near(Bug("the last run is not counted first", SERVICE, "        may_end_otherwise = before.unended > 1 or counted.runs >= limit\n", "        may_end_otherwise = life.unended > 1\n"), (f"{_RUNS}::test_a_limit_of_one_is_one_run_also_where_it_is_killed",)),
    Near(Bug("every run is counted first", SERVICE, "        may_end_otherwise = before.unended > 1 or counted.runs >= limit\n", "        may_end_otherwise = True\n"), (f"{_SERVICE}::test_a_new_job_runs_and_its_answer_is_stored",)),
    Near(simulated("a counted run that was prevented is not taken back"), (_PREVENTED,)),
    Near(Bug("a run whose heartbeat is refused is counted", SERVICE, "            return self._release(run, lease, last_error, failed, count.unrun)\n", "            return self._release(run, lease, last_error, failed, count.run)\n"), (f"{_RUNS}::test_a_run_whose_lease_nothing_renews_is_not_counted",)),
    Near(Bug("an exhausted receive counts a run", SERVICE, "last_error, rejected, count.unrun)", "last_error, rejected, count.run)"), (f"{_RUNS}::test_a_job_that_keeps_failing_is_rejected_after_its_runs",)),
    Near(simulated("a late start is counted"), (f"{_RUNS}::test_late_starts_are_no_runs",)),
    Near(simulated("a run is never counted at its release"), (f"{_RUNS}::test_a_job_that_keeps_failing_is_rejected_after_its_runs",)),
    Near(simulated("a run that was counted first is counted twice"), (f"{_RUNS}::test_a_count_whose_answer_was_lost_counts_once",)),
    Near(Bug("a run that is refused its count runs", SERVICE, "                return Failed(Failure.LEASE_LOST)\n        if prevented", "                pass\n        if prevented"), (f"{_RUNS}::test_a_count_that_is_refused_stops_the_run",)),
    Near(Bug("a message sent after a rejection counts on from it", LIFE, "        return replace(self, runs=0, unended=1, rejected_at=None)\n", "        return replace(self, unended=1, rejected_at=None)\n"), (f"{_RUNS}::test_a_message_sent_anew_after_a_rejection_has_its_runs_whatever_its_first_receives_meet",)),
    Near(Bug("runs of HTTP are counted", SERVICE, "        if not delivery.counts_runs:\n", "        if False:\n"), (f"{_RUNS}::test_runs_of_who_decides_by_himself_are_neither_counted_nor_refused",)),
    Near(Bug("a deferral forgets since when", SERVICE, "                return Deferred(until, since)\n", "                return Deferred(until)\n"), (f"{_SERVICE}::test_a_running_job_is_deferred_to_the_end_of_its_lease",)),
    Near(Bug("a first receive buys no run", SERVICE, "        is_exhausted = life.runs >= limit and delivery.is_redelivery\n", "        is_exhausted = life.runs >= limit\n"), (f"{_RUNS}::test_a_first_receive_buys_one_run",)),
    Near(Bug("HTTP is refused at the limit on runs", SERVICE, "        if not delivery.counts_runs:\n", "        if not delivery.counts_runs and before.runs < limit:\n"), (f"{_RUNS}::test_runs_of_who_decides_by_himself_are_neither_counted_nor_refused",)),
    Near(Bug("a late start is judged by the wall clock alone", SERVICE, "if is_over or is_over_by_date else None", "if is_over_by_date else None"), (f"{_RUNS}::test_a_start_that_is_late_by_either_clock_is_prevented",)),
    Near(Bug("a late start is judged by the monotonic clock alone", SERVICE, "if is_over or is_over_by_date else None", "if is_over else None"), (f"{_RUNS}::test_a_start_that_is_late_by_either_clock_is_prevented",)),
    # an old copy that is believed
    Near(simulated("an old copy in progress is believed"), (f"{_SERVICE}::test_a_lookup_of_a_running_record_is_not_believed_since_it_may_be_old",)),
    Near(Bug("a mismatch of an old copy is believed", SERVICE, "            case Mismatch() if record is not None and not record.in_progress:\n", "            case Mismatch() if record is not None and record.is_held:\n"), (f"{_SERVICE}::test_an_old_copy_of_a_running_job_with_another_payload_rejects_nothing",)),
    # what ends no process is a failure of its job
    Near(simulated("SystemExit ends the worker"), (f"{_SERVICE}::test_sys_exit_inside_an_operation_is_a_failed_attempt",)),
    Near(simulated("a cancellation ends the worker"), (f"{_SERVICE}::test_what_ends_no_process_is_a_failed_attempt_whatever_it_is",)),
    Near(simulated("an interrupted attempt is released"), (f"{_SERVICE}::test_a_signal_ends_the_process_whatever_it_raises",)),
    Near(Bug("an answer whose code raises loses the run", SERVICE, "            return Answer(\"null\", f\"unserializable: {type(error).__name__}\")\n", "            raise\n"), (f"{_SERVICE}::test_an_answer_whose_own_code_raises_is_omitted_since_the_effect_has_happened",)),
    # a store whose client raises what nobody knows
    Near(simulated("an error of unknown class is no answer that may have landed"), (f"{_SERVICE}::test_whatever_a_store_raises_after_the_effect_may_have_landed_and_is_asked_again[error0]",)),
    # a job that may have killed its worker
    Near(simulated("a poll worker runs beside others what a worker died with"), (f"{_ALONE}::test_it_runs_when_the_others_have_ended_and_nothing_is_received_meanwhile",)),
    Near(simulated("a poll worker receives while a lane waits to run alone"), (f"{_ALONE}::test_it_runs_when_the_others_have_ended_and_nothing_is_received_meanwhile",)),
    Near(Bug("a poll worker receives while a lane runs alone", POLL_WORKER, "any((lane.is_alone and not lane.is_overdue) or lane.waits_until is not None for", "any(lane.waits_until is not None for"), (f"{_ALONE}::test_nothing_is_received_while_one_runs_alone",)),
    Near(Bug("a job that runs alone and does not end stops its worker", POLL_WORKER, "(lane.is_alone and not lane.is_overdue)", "lane.is_alone"), (f"{_ALONE}::test_one_that_runs_alone_and_does_not_end_stops_the_others_no_longer_than_its_time",)),
    Near(Bug("lanes that are to run alone are all started at once", POLL_WORKER, "            lane = waiting[int(self.jitter() * len(waiting))]\n            lane.run_alone()\n        self._staff.submit(partial(self._run, lane))\n", "            for lane in waiting:\n                lane.run_alone()\n        for lane in waiting:\n            self._staff.submit(partial(self._run, lane))\n"), (f"{_ALONE}::test_of_several_one_runs_after_another",)),
    Near(Bug("what waits to run alone is extended no further than its attempt", POLL_WORKER, "        self.visibility.bound(message, None)\n", ""), (f"{_ALONE}::test_its_message_stays_hidden_while_it_waits_longer_than_an_attempt_may_take",)),
    Near(Bug("what waits to run alone is given back by nobody at a stop", POLL_WORKER, "            lanes = list(self._lanes)\n            self._lanes = self._running\n", "            lanes = self._lanes = self._running\n"), (f"{_ALONE}::test_a_stop_gives_back_what_waits",)),
    Near(Bug("a stop waits for what is to run alone", POLL_WORKER, "            self._lanes = self._running\n            self._changed", "            self._changed"), (f"{_ALONE}::test_a_stop_gives_back_what_waits",)),
    Near(Bug("what is to run alone waits for as long as others run", POLL_WORKER, " or any(lane.is_over(now) for lane in waiting)", ""), (f"{_ALONE}::test_it_is_put_off_where_the_others_take_too_long",)),
    Near(Bug("what is to run alone waits for an attempt that does not end", POLL_WORKER, "any(lane.is_overdue for lane in self._running) or ", ""), (f"{_ALONE}::test_it_is_put_off_at_once_where_an_attempt_beside_it_does_not_end",)),
    Near(Bug("a run runs beside others what a run died with", RUNNER, "is_alone = f\"line {task.line.number}\", task.is_alone or self.workers == 1", "is_alone = f\"line {task.line.number}\", True"), (f"{_RUNNER}::test_what_a_run_died_with_runs_alone_when_the_others_are_done",)),
    Near(Bug("a run starts others beside what runs alone", RUNNER, " and not self._is_one_alone:", ":"), (f"{_RUNNER}::test_what_is_read_while_one_runs_alone_waits_for_it",)),
    Near(Bug("a job that waits to run alone is told with another's error", RUNNER, "            if task.outcome != Failed(Failure.NOT_ALONE):  # which is no end, and leaves no trace\n", "            if True:\n"), (f"{_RUNNER}::test_what_waits_to_run_alone_is_told_without_the_error_of_another",)),
    Near(Bug("a stop forgets what waits to run alone", RUNNER, "[*self._ready, *self._to_run_alone, ", "[*self._ready, "), (f"{_RUNNER}::test_a_stop_leaves_what_waits_to_run_alone",)),
    Near(Bug("what a worker died with runs beside others", SERVICE, "    return Failed(Failure.NOT_ALONE) if unended > 0 and not delivery.is_alone else None\n", "    return None\n"), (f"{_RUNS}::test_a_job_in_whose_life_a_worker_died_runs_alone",)),
)  # fmt: skip
