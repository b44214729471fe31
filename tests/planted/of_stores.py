"""Planted in the stores: SQLite's group commit and file, fingerprint schemes, what is counted."""

from typing import Final

from tests.planted.bug import Near, simulated
from tests.simulation.planted import EXPRESSIONS, GROUP_COMMIT, LIFE, RECORD, ROWS, SQLITE, Bug

IDENTITY: Final = "domain/identity.py"
DYNAMODB: Final = "adapters/stores/dynamodb/store.py"
DYNAMODB_LAYER: Final = "adapters/stores/dynamodb/layer.py"
AWS: Final = "adapters/aws.py"
QUEUE: Final = "adapters/sqs/queue.py"
SCRIPTS: Final = "adapters/stores/valkey/scripts.py"
VALKEY: Final = "adapters/stores/valkey/store.py"
VALKEY_ADMIN: Final = "adapters/stores/valkey/admin.py"
SQLITE_ADMIN: Final = "adapters/stores/sqlite/admin.py"
VALKEY_COMMANDS: Final = "adapters/stores/valkey/commands.py"
VALKEY_REPLIES: Final = "adapters/stores/valkey/replies.py"
VALKEY_POOL: Final = "adapters/stores/valkey/pool.py"
DATABASE: Final = "adapters/stores/sqlite/database.py"
FILE_SYSTEM: Final = "adapters/stores/sqlite/file_system.py"
DATABASE_FILE: Final = "adapters/stores/sqlite/file.py"

_GROUP: Final = "tests/adapters/stores/sqlite/test_group_commit.py"
_REPLACED: Final = "tests/adapters/stores/sqlite/test_replaced.py"
_NOT_OURS: Final = "tests/adapters/stores/sqlite/test_not_ours.py"
_BARE: Final = "tests/adapters/stores/dynamodb/test_bare_decorator.py"
_SWITCHED: Final = "tests/adapters/stores/valkey/test_switched_over.py"
_EVIDENCE: Final = "tests/adapters/stores/valkey/test_evidence.py"
_JOB: Final = "tests/domain/test_job.py"
_JUDGE: Final = "tests/domain/test_judge.py"
_CONTRACT: Final = "tests/contract/test_idempotency_store.py"
_AWS: Final = "tests/adapters/test_aws.py"
_ADMIN: Final = "tests/contract/test_store_admin.py"

_SCHEMES: Final = f"{_CONTRACT}::test_a_scheme_is_the_whole_name_before_the_colon"
_TOLD: Final = f"{_CONTRACT}::test_a_release_counts_as_it_is_told"
_COUNTED: Final = f"{_CONTRACT}::test_a_run_is_counted_under_the_fence"
_UNENDED: Final = f"{_CONTRACT}::test_each_claim_is_an_attempt_under_way_until_it_is_ended"
_DONE: Final = f"{_CONTRACT}::test_what_is_done_has_no_runs"
_RETENTION: Final = f"{_CONTRACT}::test_after_the_retention_another_life_begins_and_attempts_go_on"
_LASTS: Final = f"{_CONTRACT}::test_a_claim_drops_no_runs_while_the_retention_lasts"
_LATE_CLAIM: Final = f"{_CONTRACT}::test_a_claim_that_lands_after_its_own_release_takes_nothing"
_RESTARTED: Final = f"{_ADMIN}::test_a_restarted_job_begins_another_life_and_is_as_it_was"
_FORGOTTEN: Final = f"{_ADMIN}::test_a_forgotten_job_begins_another_life"
_OTHER_LIFE: Final = f"{_ADMIN}::test_an_attempt_that_was_under_way_counts_nothing_in_another_life"
_FORGOTTEN_TWICE: Final = f"{_ADMIN}::test_who_gave_a_job_back_that_was_forgotten_since_is_refused_a_repetition"
_BY_FORCE: Final = f"{_ADMIN}::test_who_was_forgotten_by_force_learns_it_at_its_release_too"
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
    Near(simulated("runs are kept past the retention"), (f"{_RETENTION}[memory-completed]", "tests/domain/test_runs.py::test_runs_before_the_end_of_the_retention_do_not_count",)),
    Near(simulated("the same life goes on after the retention"), (f"{_RETENTION}[memory-lapsed]",)),
    Near(Bug("a rejection is kept past the retention", RECORD, "        life = life.following()\n", "        life = replace(life.following(), rejected_at=life.rejected_at)\n"), (f"{_RETENTION}[memory-lapsed]",)),
    Near(Bug("a claim is a run", LIFE, "        return replace(self, unended=self.unended + 1)\n", "        return replace(self, runs=self.runs + 1, unended=self.unended + 1)\n"), (f"{_LASTS}[memory]", "tests/domain/test_runs.py::test_late_starts_are_no_runs",)),
    Near(simulated("a claim forgets the rejection"), (f"{_LASTS}[memory]",)),
    Near(simulated("an attempt that is claimed is not under way"), (f"{_UNENDED}[memory]",)),
    Near(simulated("an attempt that ended is still under way"), (f"{_UNENDED}[memory]",)),
    Near(simulated("a release ends every attempt that nobody ended"), (f"{_UNENDED}[memory]", "tests/domain/test_runs.py::test_a_job_that_kills_its_workers_has_one_run_more_whatever_happens_between",)),
    Near(simulated("a restart begins no other life"), (f"{_RESTARTED}[memory]",)),
    Near(simulated("a restart counts anew in the same life"), (f"{_OTHER_LIFE}[memory-release]", "tests/domain/test_runs.py::test_a_restart_beside_a_run_gives_the_message_all_its_runs",)),
    Near(simulated("to forget begins no other life"), (f"{_FORGOTTEN}[memory]",)),
    Near(simulated("to forget counts anew in the same life"), (f"{_FORGOTTEN}[memory]",)),
    Near(simulated("what an attempt counts is written to another life"), (f"{_OTHER_LIFE}[memory-both]",)),
    Near(simulated("a completion keeps the runs"), (f"{_DONE}[memory]",)),
    Near(simulated("a late claim takes the job that its owner gave back"), (f"{_LATE_CLAIM}[memory]",)),
    Near(simulated("a claim keeps who gave it back"), (f"{_LATE_CLAIM}[memory]",)),
    Near(simulated("a release is repeated by who did not release it"), (f"{_BY_FORCE}[memory]", "tests/domain/test_runs.py::test_who_was_forgotten_by_force_rejects_nothing",)),
    Near(Bug("to forget keeps who gave it back", RECORD, "        released_by=None,\n        lease_until=RELEASED,\n        expires_at=now + retention,\n", "        lease_until=RELEASED,\n        expires_at=now + retention,\n"), (f"{_FORGOTTEN_TWICE}[memory]",)),
    Near(Bug("SQLite: a run is counted each time it is asked for", SQLITE, "lambda held: begun(held, claim, life)", "lambda held: begun(held, claim, held.life.counted())"), (f"{_COUNTED}[sqlite]",)),
    Near(Bug("SQLite: what an attempt counts is written to another life", SQLITE, "lambda held: begun(held, claim, life)", "lambda held: __import__(\"copy\").replace(held, life=life)"), (f"{_OTHER_LIFE}[sqlite-begin]",)),
    Near(simulated("SQLite: attempts that nobody ended are not stored"), (f"{_UNENDED}[sqlite]",)),
    Near(Bug("SQLite: runs are not stored", ROWS, "*(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by)", "*(life.number, 0, life.unended, _number(life.rejected_at), record.released_by)"), (f"{_COUNTED}[sqlite]",)),
    Near(Bug("SQLite: the number of a life is not stored", ROWS, "*(life.number, life.runs, life.unended, _number(life.rejected_at), record.released_by)", "*(1, life.runs, life.unended, _number(life.rejected_at), record.released_by)"), (f"{_RESTARTED}[sqlite]",)),
    Near(simulated("SQLite: the time of a rejection is not stored"), (f"{_LASTS}[sqlite]",)),
    Near(Bug("SQLite: a restart keeps the runs", SQLITE_ADMIN, "replace(record, life=record.life.following())", "replace(record, life=replace(record.life, number=record.life.number + 1))"), (f"{_RESTARTED}[sqlite]",)),
    Near(simulated("SQLite: a completion whose answer was lost is refused"), (f"{_CONTRACT}::test_completion_repeated_by_the_same_pair_succeeds_and_changes_nothing[sqlite]",)),
    Near(simulated("SQLite: who gave it back is not stored"), (f"{_LATE_CLAIM}[sqlite]",)),
    Near(Bug("SQLite: any repetition of a release succeeds", SQLITE, "            unless=was_released_by,\n", "            unless=lambda old, _: old is not None and old.owner is None,\n"), (f"{_BY_FORCE}[sqlite]",)),
    Near(Bug("SQLite: what changed is restarted", SQLITE_ADMIN, "            if record is None or not record.is_same_as(seen):\n", "            if record is None:\n"), (f"{_CHANGED}[sqlite]",)),
    Near(simulated("DynamoDB: what an attempt counts is written to another life"), (f"{_OTHER_LIFE}[dynamodb (moto)-both]",)),
    Near(Bug("DynamoDB: a record without a life counts no run", EXPRESSIONS, "    if life.number == 1:\n", "    if False:\n"), (f"{_COUNTED}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: an attempt that was ended is still under way", EXPRESSIONS, "    write.set(\"unended\", number(life.unended))\n", "    write.set(\"unended\", number(max(1, life.unended)))\n"), (f"{_TOLD}[dynamodb (moto)-counted0]",)),
    Near(Bug("DynamoDB: an attempt that is claimed is not under way", EXPRESSIONS, "#unended = if_not_exists(#unended, :zero) + :one", "#unended = if_not_exists(#unended, :one)"), (f"{_UNENDED}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a count without a rejection keeps it", EXPRESSIONS, "    if life.rejected_at is None:\n        write.removes.append(\"#rejected_at\")\n    else:\n", "    if life.rejected_at is not None:\n"), (f"{_TOLD}[dynamodb (moto)-counted0]",)),
    Near(Bug("DynamoDB: runs are kept past the retention", EXPRESSIONS, "    write.removes += [\"#runs\", \"#rejected_at\"]\n    return write\n", "    write.removes += [\"#rejected_at\"]\n    return write\n"), (f"{_RETENTION}[dynamodb (moto)-released]",)),
    Near(simulated("DynamoDB: the same life goes on after the retention"), (f"{_RETENTION}[dynamodb (moto)-completed]",)),
    Near(Bug("DynamoDB: a restart keeps the rejection", EXPRESSIONS, "    write.removes += [\"#runs\", \"#unended\", \"#rejected_at\"]\n", "    write.removes += [\"#runs\", \"#unended\"]\n"), (f"{_RESTARTED}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a restart begins no other life", EXPRESSIONS, "    write.sets.append(\"#life = if_not_exists(#life, :one) + :one\")\n", "    write.sets.append(\"#life = if_not_exists(#life, :one)\")\n"), (f"{_RESTARTED}[dynamodb (moto)]",)),
    Near(simulated("DynamoDB: a late claim takes the job that its owner gave back"), (f"{_LATE_CLAIM}[dynamodb (moto)]",)),
    Near(simulated("DynamoDB: a release is repeated by who did not release it"), (f"{_BY_FORCE}[dynamodb (moto)]",)),
    Near(Bug("DynamoDB: a release is refused where another life has begun", DYNAMODB_LAYER, "            self._release(record, forget_payload, None)  # another life has begun\n", "            raise\n"), (f"{_OTHER_LIFE}[dynamodb (moto)-release]",)),
    Near(simulated("DynamoDB: a completion keeps the runs"), (f"{_DONE}[dynamodb (moto)]",)),
    Near(Bug("Valkey: what an attempt counts is written to another life", SCRIPTS, "        if (held[5] or '1') == ARGV[first] then\n", "        if ARGV[first] then\n"), (f"{_OTHER_LIFE}[valkey-both]",)),
    Near(Bug("Valkey: a count without a rejection keeps it", SCRIPTS, "                redis.call('HDEL', KEYS[1], 'rejected_at')\n            else\n", "            else\n"), (f"{_TOLD}[valkey-counted0]",)),
    Near(Bug("Valkey: an attempt that is claimed is not under way", SCRIPTS, "    unended = string.format('%d', unended + 1)\n", ""), (f"{_UNENDED}[valkey]",)),
    Near(Bug("Valkey: a completion keeps the runs", SCRIPTS, "    end\n    redis.call('HDEL', KEYS[1], 'runs', 'unended', 'rejected_at')\n", "    end\n"), (f"{_DONE}[valkey]",)),
    Near(Bug("Valkey: a release does not count", SCRIPTS, "    count(6)\n", ""), (f"{_TOLD}[valkey-counted1]",)),
    Near(Bug("Valkey: runs are kept past the retention", SCRIPTS, "            life, runs, unended, rejected_at = string.format('%d', life + 1), '0', '0', ''\n", "            life = string.format('%d', life + 1)\n"), (f"{_RETENTION}[valkey-released]",)),
    Near(Bug("Valkey: the same life goes on after the retention", SCRIPTS, "            life, runs, unended, rejected_at = string.format('%d', life + 1), '0', '0', ''\n", "            runs, unended, rejected_at = '0', '0', ''\n"), (f"{_RETENTION}[valkey-completed]",)),
    Near(Bug("Valkey: a restart begins no other life", SCRIPTS, "    redis.call('PERSIST', KEYS[1])\n    redis.call('HSET', KEYS[1], 'life', string.format('%d', (old.life or 1) + 1))\n", "    redis.call('PERSIST', KEYS[1])\n"), (f"{_RESTARTED}[valkey]",)),
    Near(Bug("Valkey: to forget begins no other life", SCRIPTS, "'epoch', string.format('%d', old.epoch + 1), 'life', string.format('%d', (old.life or 1) + 1))\n", "'epoch', string.format('%d', old.epoch + 1))\n"), (f"{_FORGOTTEN}[valkey]",)),
    Near(Bug("Valkey: a late claim takes the job that its owner gave back", SCRIPTS, " or old.released_by == owner or ", " or "), (f"{_LATE_CLAIM}[valkey]",)),
    Near(Bug("Valkey: a release is repeated by who did not release it", SCRIPTS, " and held[6] == ARGV[1] then", " then"), (f"{_BY_FORCE}[valkey]",)),
    Near(Bug("Valkey: what changed is restarted", SCRIPTS, "    if not is_same then\n        return 0\n", "    if not is_sound then\n        return 0\n"), (f"{_CHANGED}[valkey]",)),
    Near(Bug("a claim that finds itself knows no runs", RECORD, "        return acquired(record)\n", "        return Acquired(Claim(record.key, owner, record.attempts, record.epoch), record.last_error)\n"), (f"{_UNENDED}[memory]",)),
    Near(Bug("a claim knows no runs", RECORD, "record.attempts, record.epoch, record.life)", "record.attempts, record.epoch)"), (f"{_UNENDED}[memory]",)),
    Near(Bug("DynamoDB: a claim after the retention counts in the life before", DYNAMODB_LAYER, "(life if same_life else life.following()).claimed()", "life.claimed()"), (f"{_RETENTION}[dynamodb (moto)-lapsed]",)),
    Near(Bug("DynamoDB: a record whose retention is over is not taken", DYNAMODB_LAYER, "            if refused.found is None or (refused.found.expiry_timestamp or 0) >= to_ms(now) / 1000:\n", "            if True:\n"), (f"{_RETENTION}[dynamodb (moto)-completed]",)),
    Near(Bug("Valkey: a claim after the retention counts in the life before", SCRIPTS, "old.last_error or '', life, runs, unended, rejected_at}}", "old.last_error or '', old.life or '1', old.runs or '0', unended, rejected_at}}"), (f"{_RETENTION}[valkey-released]",)),
    # a file that is replaced while it is in use
    Near(Bug("SQLite: a read is answered from a file that is gone", SQLITE, "            self._file.check_in_place()\n            return found\n", "            return found\n"), (f"{_REPLACED}::test_nothing_is_answered_from_a_file_that_is_not_in_its_place[replaced-find]",)),
    Near(Bug("SQLite: a file is looked for before it is read", SQLITE, "            with self._reading:\n                found = read(self._reader, key)\n            self._file.check_in_place()\n", "            self._file.check_in_place()\n            with self._reading:\n                found = read(self._reader, key)\n"), (f"{_REPLACED}::test_what_was_read_while_the_file_was_replaced_is_not_told",)),
    Near(Bug("SQLite: a write lands in a file that is gone", GROUP_COMMIT, "            self._check()\n", ""), (f"{_REPLACED}::test_nothing_is_written_to_a_file_that_is_replaced_while_its_lock_is_waited_for",)),
    Near(Bug("SQLite: a file is looked for before the lock", GROUP_COMMIT, "            self._connection.execute(\"BEGIN IMMEDIATE\")\n            self._check()\n", "            self._check()\n            self._connection.execute(\"BEGIN IMMEDIATE\")\n"), (f"{_REPLACED}::test_nothing_is_written_to_a_file_that_is_replaced_while_its_lock_is_waited_for",)),
    Near(Bug("SQLite: another file of the same name is the same", DATABASE_FILE, "        if _identity(self._path) != self._identity:\n", "        if _identity(self._path) is None:\n"), (f"{_REPLACED}::test_nothing_is_answered_from_a_file_that_is_not_in_its_place[replaced-find]",)),
    # a server that was switched over, and answers without evidence
    Near(Bug("Valkey: a refusal keeps the connections", VALKEY_COMMANDS, "            self._renew(generation)\n            made = ", "            made = "), (f"{_SWITCHED}::test_after_a_switch_over_the_second_try_lands_on_the_new_primary",)),
    Near(Bug("Valkey: a refusal while loading keeps the connections", VALKEY_COMMANDS, "            self._renew(generation)\n            raise RefusedError(f\"Valkey: {type(error).__name__}: {error}\") from error\n", "            raise RefusedError(f\"Valkey: {type(error).__name__}: {error}\") from error\n"), (f"{_SWITCHED}::test_every_connection_is_new_after_a_refusal[claim-loading]",)),
    Near(Bug("Valkey: what is idle is not replaced", VALKEY_POOL, "                if connection is not None:\n", "                if connection is None:\n"), (f"{_SWITCHED}::test_after_a_switch_over_the_second_try_lands_on_the_new_primary",)),
    Near(Bug("Valkey: what is in use is not replaced", VALKEY_POOL, " != self.generation:\n                connection.disconnect()\n", " != self.generation:\n                pass\n"), (f"{_SWITCHED}::test_a_refusal_costs_no_other_thread_its_answer",)),
    Near(Bug("Valkey: an operator is refused at once", VALKEY_COMMANDS, "        self._tries = 2 if again else 1\n", "        self._tries = 1\n"), (f"{_SWITCHED}::test_an_operator_who_is_refused_is_served_on_a_new_connection[look-replica]",)),
    Near(Bug("Valkey: anything but 0 is a write that landed", VALKEY_REPLIES, "    if type(reply) is not int or reply not in (0, 1):\n        raise ValueError(\"neither 0 nor 1\")\n    return reply == 1\n", "    return reply != 0\n"), (f"{_EVIDENCE}::test_an_answer_of_another_shape_is_none[complete-OK]",)),
    Near(Bug("Valkey: nothing is an empty hash", VALKEY_REPLIES, "    if not isinstance(reply, list) or", "    reply = reply or []\n    if not isinstance(reply, list) or"), (f"{_EVIDENCE}::test_an_answer_of_another_shape_is_none[find-nothing]",)),
    Near(Bug("Valkey: a call raises what is on a list", VALKEY_COMMANDS, "        except Exception as error:  # the", "        except (OSError, ValueError, TypeError, IndexError, AttributeError) as error:  # the"), (f"{_EVIDENCE}::test_whatever_a_call_raises_is_that_nobody_answered[complete-before-RuntimeError]",)),
    # a file of another owner, schema or file system
    Near(Bug("SQLite: an unknown error passes", DATABASE_FILE, "        except Exception as error:\n", "        except ArithmeticError as error:\n"), (f"{_NOT_OURS}::test_whatever_a_call_raises_is_that_the_store_cannot_answer[complete-True-error0]",)),
    Near(Bug("SQLite: a schema is judged by its version", DATABASE, "    if version:\n        _check_schema(connection, path, version)\n", ""), (f"{_NOT_OURS}::test_a_schema_that_is_not_ours_is_refused_and_left_alone[SQLiteIdempotencyStore-trigger]",)),
    Near(Bug("SQLite: what was added to a schema is not seen", DATABASE, "    for kind, name in found.keys() | ours.keys():\n", "    for kind, name in ours:\n"), (f"{_NOT_OURS}::test_a_schema_that_is_not_ours_is_refused_and_left_alone[SQLiteIdempotencyStore-index]",)),
    Near(Bug("SQLite: the owner of a log counts for nothing", DATABASE, "(\"-wal\", \"-shm\", \"-journal\")", "()"), (f"{_NOT_OURS}::test_a_file_of_another_user_is_refused_before_sqlite_opens_it[-wal]",)),
    Near(Bug("SQLite: FUSE is a disk of this machine", FILE_SYSTEM, "            if name not in _LOCAL_FUSE:\n", "            if name is None:\n"), (f"{_NOT_OURS}::test_a_network_file_system_is_refused_and_the_setting_is_named[SQLiteIdempotencyStore-fuse.sshfs]",)),
    Near(Bug("SQLite: the file system of a link counts", FILE_SYSTEM, "    real = Path(os.path.realpath(path))\n", "    real = path.parents[1] / path.name\n"), (f"{_NOT_OURS}::test_the_system_is_asked_for_the_file_system_behind_a_link",)),
    # two functions over one of our layers
    Near(Bug("bare decorator: a second configuration is taken for the first", DYNAMODB_LAYER, "        if different := [name for name, value in told.items() if value != self._configured_with[name]]:\n", "        if different := list[str]():\n"), (f"{_BARE}::test_a_second_function_with_another_configuration_is_refused_and_told_what_to_do[event_key_jmespath]",)),
    Near(Bug("bare decorator: half of a configuration stays", DYNAMODB_LAYER, "                    self.configured = False  # or the next call would go on with half of it\n", ""), (f"{_BARE}::test_a_first_configuration_that_is_refused_is_no_configuration",)),
    Near(Bug("bare decorator: the last thread's prefix is everyone's", DYNAMODB_LAYER, "        return self._prefix.get(self._last_prefix)\n", "        return self._last_prefix\n"), (f"{_BARE}::test_functions_side_by_side_on_one_layer_keep_their_own_keys",)),
    # what answers in the place of AWS
    Near(Bug("AWS: whatever answers 200 is believed", AWS, "    if not headers.get(_REQUEST_ID):\n", "    if False:\n"), (f"{_AWS}::test_nothing_counts_as_done_by_a_queue_that_anything_answers_for[{{}}]",)),
    Near(Bug("AWS: an answer of DynamoDB is believed without its checksum", AWS, "headers.get(_CHECKSUM) != str(crc32(http_response.content))", "headers.get(_CHECKSUM) == \"\""), (f"{_AWS}::test_a_store_that_anything_answers_for_cannot_answer[{{}}-True]",)),
    Near(Bug("AWS: a message without an id is sent", AWS, "    if not isinstance(message_id, str) or not message_id:\n", "    if False:\n"), (f"{_AWS}::test_a_message_counts_as_sent_only_with_its_id_and_its_digest[answer0]",)),
    Near(Bug("AWS: another body's digest is a message's", AWS, "!= digest:\n", "== \"\":\n"), (f"{_AWS}::test_a_message_counts_as_sent_only_with_its_id_and_its_digest[answer2]",)),
    Near(Bug("AWS: what botocore does not name passes through", AWS, "    except Exception as error:\n        raise CallFailedError(", "    except ZeroDivisionError as error:\n        raise CallFailedError("), (f"{_AWS}::test_its_errors_are_those_of_botocore_and_can_be_pickled",)),
    Near(Bug("SQS: an entry that the answer does not name is done", QUEUE, "        if str(number) in codes or str(number) not in landed\n", "        if str(number) in codes\n"), (f"{_AWS}::test_entries_that_a_batch_does_not_name_have_failed",)),
    Near(Bug("DynamoDB: a claim without the old item is a new job's", DYNAMODB_LAYER, "        if \"Attributes\" not in answer and \"ConsumedCapacity\" in answer:\n", "        if not answer.get(\"Attributes\"):\n"), (f"{_AWS}::test_a_claim_without_the_old_item_is_asked_again_and_is_the_attempt_that_it_is[answer0]",)),
    Near(Bug("DynamoDB: any item is the one that was asked for", DYNAMODB_LAYER, "any(item.get(name) != part for name, part in key.items())", "False"), (f"{_AWS}::test_a_consistent_read_that_shows_nothing_of_the_table_cannot_answer[answer2]",)),
)  # fmt: skip
