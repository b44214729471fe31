"""Planted in the stores: SQLite's group commit and file, fingerprint schemes, what is counted."""

from typing import Final

from tests.planted.bug import Near, simulated
from tests.simulation.planted import EXPRESSIONS, GROUP_COMMIT, MEMORY, RECORD, SQLITE, Bug

IDENTITY: Final = "domain/identity.py"
DYNAMODB: Final = "adapters/powertools/store.py"
SCRIPTS: Final = "adapters/valkey/scripts.py"
VALKEY: Final = "adapters/valkey/store.py"
VALKEY_ADMIN: Final = "adapters/valkey/admin.py"
SQLITE_ADMIN: Final = "adapters/sqlite/admin.py"
DATABASE_FILE: Final = "adapters/sqlite/file.py"

_GROUP: Final = "tests/adapters/sqlite/test_group_commit.py"
_REPLACED: Final = "tests/adapters/sqlite/test_replaced.py"
_JOB: Final = "tests/domain/test_job.py"
_JUDGE: Final = "tests/domain/test_judge.py"
_CONTRACT: Final = "tests/contract/test_idempotency_store.py"
_ADMIN: Final = "tests/contract/test_store_admin.py"

_SCHEMES: Final = f"{_CONTRACT}::test_a_scheme_is_the_whole_name_before_the_colon"
_TOLD: Final = f"{_CONTRACT}::test_a_release_counts_as_it_is_told"
_COUNTED: Final = f"{_CONTRACT}::test_a_run_is_counted_once_under_the_fence"
_ANEW: Final = f"{_CONTRACT}::test_a_run_that_begins_a_life_anew_is_its_first"
_RETENTION: Final = f"{_CONTRACT}::test_after_the_retention_runs_are_counted_anew_and_attempts_go_on"
_LASTS: Final = f"{_CONTRACT}::test_a_claim_drops_no_runs_while_the_retention_lasts"
_AS_IT_WAS: Final = f"{_ADMIN}::test_a_restarted_job_has_no_runs_and_is_as_it_was"
_RUNS_ON: Final = f"{_ADMIN}::test_a_job_that_runs_is_restarted_and_its_attempt_does_not_count"
_CHANGED: Final = f"{_ADMIN}::test_what_changed_since_it_was_shown_is_not_restarted"

NEAR: Final = (
    # what was judged on rows that were rolled back
    Near(simulated("SQLite: a refusal judged on rows that were rolled back"), (f"{_GROUP}::test_a_refusal_judged_on_rows_that_were_rolled_back_is_not_told",)),
    Near(Bug("group commit: a value judged on rows that were rolled back", GROUP_COMMIT, "                entry.error = _copied(error)\n", "                if entry.value is None:\n                    entry.error = _copied(error)\n"), (f"{_GROUP}::test_an_answer_judged_on_rows_that_were_rolled_back_is_not_told",)),
    Near(Bug("group commit: what came before the error counts as written", GROUP_COMMIT, "                except sqlite3.Error:\n                    raise\n", "                except sqlite3.Error as error:\n                    if entry is batch[0]:\n                        raise\n                    entry.error = error\n                    break\n"), (f"{_GROUP}::test_an_error_of_sqlite_fails_every_piece_and_writes_nothing",)),
    Near(Bug("group commit: a commit that fails is believed", GROUP_COMMIT, "            self._connection.execute(\"COMMIT\")\n", "            with suppress(sqlite3.Error):\n                self._connection.execute(\"COMMIT\")\n"), (f"{_GROUP}::test_a_commit_that_fails_fails_every_piece",)),
    Near(Bug("group commit: the error of one piece is given to those after it", GROUP_COMMIT, "                    entry.error = error\n", "                    for other in batch[batch.index(entry) :]:\n                        other.error = error\n"), (f"{_GROUP}::test_a_refused_piece_neither_stops_nor_fails_those_that_share_its_commit",)),
    Near(Bug("group commit: a refused piece ends the batch", GROUP_COMMIT, "                    entry.error = error\n", "                    entry.error = error\n                    break\n"), (f"{_GROUP}::test_a_refused_piece_neither_stops_nor_fails_those_that_share_its_commit",)),
    Near(Bug("group commit: nothing is rolled back", GROUP_COMMIT, "                self._connection.execute(\"ROLLBACK\")\n", "                pass\n"), (f"{_GROUP}::test_an_error_of_sqlite_fails_every_piece_and_writes_nothing",)),
    Near(Bug("group commit: an interrupt leaves the transaction open", GROUP_COMMIT, "        except BaseException as error:\n", "        except Exception as error:\n"), (f"{_GROUP}::test_an_interrupt_lets_nobody_believe_that_it_landed",)),
    # schemes compared without their colon, and other ways to compare what cannot be compared
    Near(Bug("a scheme is compared by how it begins", IDENTITY, "stored.partition(\":\")[0] == given.partition(\":\")[0]", "stored.startswith(given.partition(\":\")[0])"), (f"{_JOB}::test_fingerprints_of_one_scheme_can_be_compared",)),
    Near(Bug("a scheme is compared by how the stored one begins", IDENTITY, "stored.partition(\":\")[0] == given.partition(\":\")[0]", "given.startswith(stored.partition(\":\")[0])"), (f"{_JOB}::test_fingerprints_of_one_scheme_can_be_compared",)),
    Near(Bug("an ignore list is no part of a scheme that is compared", IDENTITY, "stored.partition(\":\")[0] == given.partition(\":\")[0]", "stored.partition(\":\")[0].partition(\"-\")[0] == given.partition(\":\")[0].partition(\"-\")[0]"), (f"{_JOB}::test_fingerprints_of_one_scheme_can_be_compared",)),
    Near(Bug("a scheme is compared in lower case", IDENTITY, "stored.partition(\":\")[0] == given.partition(\":\")[0]", "stored.partition(\":\")[0].lower() == given.partition(\":\")[0].lower()"), (f"{_JOB}::test_fingerprints_of_one_scheme_can_be_compared",)),
    Near(Bug("an ignore list makes no scheme", IDENTITY, "    if not names:\n", "    if True:\n"), (f"{_JOB}::test_volatile_members_do_not_count_and_their_list_names_the_scheme",)),
    Near(Bug("a payload that was forgotten is compared", IDENTITY, "stored is not None and stored.partition(\":\")[0] ==", "(stored or given).partition(\":\")[0] =="), (f"{_JOB}::test_fingerprints_of_one_scheme_can_be_compared",)),
    Near(Bug("DynamoDB: a scheme is compared by how it begins", EXPRESSIONS, "text(f\"{record.scheme}:\")", "text(record.scheme)"), (f"{_SCHEMES}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a scheme keeps its fingerprint", DYNAMODB, "scheme=job.fingerprint.partition(\":\")[0]", "scheme=job.fingerprint[:4]"), (f"{_SCHEMES}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: payloads of two schemes are compared", EXPRESSIONS, " OR NOT begins_with(#fingerprint, :scheme))\"", " OR (#fingerprint = :fingerprint AND begins_with(#fingerprint, :scheme)))\""), (f"{_SCHEMES}[dynamodb (moto)]",)),
    Near(Bug("Valkey: a scheme is compared by how it begins", VALKEY, "scheme = f\"{job.fingerprint.partition(':')[0]}:\"", "scheme = job.fingerprint.partition(':')[0]"), (f"{_SCHEMES}[valkey]",)),
    Near(Bug("Valkey: a scheme is compared by its first two characters", SCRIPTS, "string.sub(old.fingerprint, 1, #scheme) == scheme", "string.sub(old.fingerprint, 1, 2) == string.sub(scheme, 1, 2)"), (f"{_SCHEMES}[valkey]",)),
    Near(Bug("Valkey: a payload that was forgotten is compared", SCRIPTS, "local comparable = old.fingerprint and string", "local comparable = not old.fingerprint or string"), (f"{_CONTRACT}::test_a_forgotten_payload_matches_any[valkey]",)),
    # what is counted
    Near(simulated("runs are kept past the retention"), (f"{_RETENTION}[memory-completed]", "tests/domain/test_runs.py::test_runs_before_the_end_of_the_retention_do_not_count")),
    Near(Bug("a rejection is kept past the retention", RECORD, "        rejected=old.rejected if old and same_life else None,\n", "        rejected=old.rejected if old else None,\n"), (f"{_RETENTION}[memory-released]",)),
    Near(Bug("a claim is a run", RECORD, "        runs=old.runs if old and same_life else 0,\n", "        runs=old.runs + 1 if old and same_life else 0,\n"), (f"{_LASTS}[memory]", "tests/domain/test_runs.py::test_late_starts_are_no_runs")),
    Near(Bug("a claim forgets the rejection", RECORD, "        rejected=old.rejected if old and same_life else None,\n", "        rejected=None,\n"), (f"{_LASTS}[memory]",)),
    Near(Bug("a restart forgets that an attempt is under way", RECORD, "    return -1 if seen.is_held else 0\n", "    return 0\n"), (f"{_RUNS_ON}[memory]",)),
    Near(Bug("memory: a count that was set back is overwritten", MEMORY, "            if held.runs == claim.runs:\n", "            if True:\n"), (f"{_RUNS_ON}[memory]",)),
    Near(Bug("memory: a first run keeps the rejection", MEMORY, "rejected = None if anew else held.rejected", "rejected = held.rejected"), (f"{_ANEW}[memory]",)),
    Near(Bug("SQLite: a run is counted each time it is asked for", SQLITE, "runs = iif(runs = ?2, ?3, runs) {_HELD}", "runs = iif(?2 = ?3, runs, runs + 1) {_HELD}"), (f"{_COUNTED}[sqlite]",)),
    Near(Bug("SQLite: a count that was set back is overwritten", SQLITE, "runs = iif(runs = ?2, ?3, runs) {_HELD}", "runs = iif(?2 = ?3, runs, ?3) {_HELD}"), (f"{_RUNS_ON}[sqlite]",)),
    Near(Bug("SQLite: a first run is one more", SQLITE, "runs = iif(?, 0, runs) + ?, ", "runs = iif(?, runs, runs) + ?, "), (f"{_TOLD}[sqlite-None-first-1]",)),
    Near(Bug("SQLite: a release forgets the rejection", SQLITE, "rejected = coalesce(?, iif(?, NULL, rejected)) {_HELD}", "rejected = coalesce(?, iif(?, NULL, NULL)) {_HELD}"), (f"{_TOLD}[sqlite-None-same-2]",)),
    Near(Bug("SQLite: a restart keeps the rejection", SQLITE_ADMIN, "SET runs = ?, rejected = NULL WHERE", "SET runs = ? WHERE"), (f"{_AS_IT_WAS}[sqlite]",)),
    Near(Bug("SQLite: what changed is restarted", SQLITE_ADMIN, "            if record is None or not record.is_same_as(seen):\n", "            if record is None:\n"), (f"{_CHANGED}[sqlite]",)),
    Near(Bug("DynamoDB: a count that was set back is overwritten", EXPRESSIONS, "    unchanged = \"#runs = :before\"\n", "    unchanged = \"(#runs = :before OR #runs <> :before)\"\n"), (f"{_RUNS_ON}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a first run of a record without a count is refused", EXPRESSIONS, "f\"({unchanged} OR attribute_not_exists(#runs))\" if not record.runs else unchanged", "unchanged"), (f"{_COUNTED}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a run that was prevented is one more", EXPRESSIONS, "1 if runs is RunCount.ONE_MORE else -1", "1"), (f"{_TOLD}[dynamodb (moto)-None-undone-1]",)),
    Near(Bug("DynamoDB: a first run keeps the rejection", EXPRESSIONS, "    elif runs is RunCount.FIRST:\n        write.removes.append(\"#rejected\")\n", ""), (f"{_TOLD}[dynamodb (moto)-None-first-1]",)),
    Near(Bug("DynamoDB: runs are kept past the retention", EXPRESSIONS, "    write.sets.append(\"#runs = :zero\")\n", "    write.sets.append(\"#runs = if_not_exists(#runs, :zero)\")\n"), (f"{_RETENTION}[dynamodb (moto)-completed]",)),
    Near(Bug("DynamoDB: a restart keeps the rejection", EXPRESSIONS, "    write.set(\"runs\", number(runs))\n    write.removes = [\"#rejected\"]\n", "    write.set(\"runs\", number(runs))\n"), (f"{_AS_IT_WAS}[dynamodb (moto)]",)),
    Near(Bug("Valkey: a count that was set back is overwritten", SCRIPTS, "    if (redis.call('HGET', KEYS[1], 'runs') or '0') == ARGV[3] then\n", "    if ARGV[3] then\n"), (f"{_RUNS_ON}[valkey]",)),
    Near(Bug("Valkey: a first run keeps the rejection", SCRIPTS, "        if ARGV[5] == '1' then\n", "        if ARGV[5] == 'true' then\n"), (f"{_ANEW}[valkey]",)),
    Near(Bug("Valkey: a release does not count", SCRIPTS, "    elseif ARGV[6] ~= '0' then\n", "    elseif ARGV[6] == '-1' then\n"), (f"{_TOLD}[valkey-None-one more-3]",)),
    Near(Bug("Valkey: runs are kept past the retention", SCRIPTS, "    local runs = same_life and old.runs or '0'\n", "    local runs = old.runs or '0'\n"), (f"{_RETENTION}[valkey-completed]",)),
    Near(Bug("Valkey: what changed is restarted", SCRIPTS, "    if not is_same then\n        return 0\n", "    if not is_sound then\n        return 0\n"), (f"{_CHANGED}[valkey]",)),
    # a file that is replaced while it is in use
    Near(Bug("SQLite: a read is answered from a file that is gone", SQLITE, "            self._file.check_in_place()\n            return found\n", "            return found\n"), (f"{_REPLACED}::test_nothing_is_answered_from_a_file_that_is_not_in_its_place[replaced-find]",)),
    Near(Bug("SQLite: a file is looked for before it is read", SQLITE, "            with self._reading:\n                found = read(self._reader, key)\n            self._file.check_in_place()\n", "            self._file.check_in_place()\n            with self._reading:\n                found = read(self._reader, key)\n"), (f"{_REPLACED}::test_what_was_read_while_the_file_was_replaced_is_not_told",)),
    Near(Bug("SQLite: a write lands in a file that is gone", GROUP_COMMIT, "            self._check()\n", ""), (f"{_REPLACED}::test_nothing_is_written_to_a_file_that_is_replaced_while_its_lock_is_waited_for",)),
    Near(Bug("SQLite: a file is looked for before the lock", GROUP_COMMIT, "            self._connection.execute(\"BEGIN IMMEDIATE\")\n            self._check()\n", "            self._check()\n            self._connection.execute(\"BEGIN IMMEDIATE\")\n"), (f"{_REPLACED}::test_nothing_is_written_to_a_file_that_is_replaced_while_its_lock_is_waited_for",)),
    Near(Bug("SQLite: another file of the same name is the same", DATABASE_FILE, "        if _identity(self._path) != self._identity:\n", "        if _identity(self._path) is None:\n"), (f"{_REPLACED}::test_nothing_is_answered_from_a_file_that_is_not_in_its_place[replaced-find]",)),
)  # fmt: skip
