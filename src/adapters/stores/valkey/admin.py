"""The `StoreAdmin` of a Valkey or Redis server."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from itertools import batched
from typing import Any, Final

from valkey import Valkey

from adapters.stores.valkey.commands import Commands
from adapters.stores.valkey.mapping import PREFIX, key_of, name_of, to_number, to_record
from adapters.stores.valkey.replies import changed_of, hash_of, judged_of, landed_of, page_of
from adapters.stores.valkey.scripts import FORGET, IS_OVER, PURGE, RESTART, Script
from domain.errors import ForeignRecordError
from domain.identity import JobKey
from domain.ports.clock import Clock
from domain.ports.store_admin import Purged
from domain.record import Record, record_changed, refusal_to_forget

PAGE: Final = 1000
"""Slots of the server's table that one SCAN reads. Other clients wait while it does."""

_FEW: Final = 100
"""Records that are read in one round trip: each may bring an answer of a megabyte."""


class ValkeyStoreAdmin:
    """Looks through all keys of the database, whosever they are. While the server's table grows or shrinks a record
    may be told twice (SCAN).

    No key expires by itself: only `purge` deletes records. It judges them by its own `clock`, never by the server's.
    """

    def __init__(self, client: Valkey, clock: Clock, retention: timedelta, *, replicas: int = 0) -> None:
        self._commands = Commands(client, replicas, again=True)
        self._clock = clock
        self._retention = retention

    def close(self) -> None:
        """Close the connections."""
        self._commands.close()

    def look(self, key: JobKey) -> Record | None:
        found = self._commands.hash(key)
        return to_record(found, key) if found else None

    def records(self) -> Iterator[Record]:
        cursor = 0
        while True:
            cursor, keys = self._page(cursor, PAGE)
            for some in batched(keys, _FEW, strict=False):
                yield from self._read(some)
            if cursor == 0:
                return

    def forget(self, seen: Record, *, force: bool = False) -> Record:
        self.look(seen.key)  # the script compares a fence: what else is foreign, it would overwrite
        now = self._clock.now()
        times = to_number(now), to_number(now + self._retention)
        (landed, found), replicas = self._commands.run(
            FORGET, seen.key, *_shown(seen), *times, int(force), read=changed_of
        )
        record = to_record(found, seen.key) if found else None
        if record is not None and landed:
            self._commands.require_replicas(replicas, seen.key)
            return record
        raise refusal_to_forget(record, seen)

    def restart(self, seen: Record) -> None:
        now = to_number(self._clock.now())
        landed, replicas = self._commands.run(RESTART, seen.key, *_shown(seen), now, read=landed_of)
        if not landed:
            raise record_changed(seen)
        self._commands.require_replicas(replicas, seen.key)

    def purge(self, *, after: str | None = None, limit: int = 1000) -> Purged:
        """`after` is a place in the server's table, 0 at its end, and the keys that were told there beyond `limit`."""
        place, *names = (after or "0").split()
        following = int(place)
        if after is None or (following and len(names) < limit):
            following, keys = self._page(following, limit - len(names))
            names += [str(key) for key in keys]
        page, left = names[:limit], names[limit:]
        now = to_number(self._clock.now())
        keys = [key for name in page if (key := JobKey.parse(name)) is not None]
        known = [record.key for some in batched(keys, _FEW, strict=False) for record in self._read(some)]
        judged = [self._judge(PURGE, key, now) for key in known]
        place = " ".join([str(following), *left])
        return Purged(len(judged) - judged.count(-1), judged.count(1), place if following or left else None)

    def sample(self) -> tuple[int, int]:
        """Look at one page of the server's table, of up to `PAGE` places. Return how many records are there, and of how
        many the retention is over, so that a purge would delete them.
        """
        _, keys = self._page(0, PAGE)
        now = to_number(self._clock.now())
        judged = [self._judge(IS_OVER, key, now) for key in keys]
        return len(judged) - judged.count(-1), judged.count(1)

    def _read(self, keys: Sequence[JobKey]) -> list[Record]:
        """In one round trip; without what has gone meanwhile, and without values of other tools."""

        def send() -> list[Any]:
            pipeline = self._commands.client.pipeline(transaction=False)
            for key in keys:
                pipeline.execute_command("HGETALL", name_of(key))
            replies: list[Any] = pipeline.execute(raise_on_error=False)
            for reply in replies:
                if isinstance(reply, Exception) and not str(reply).startswith("WRONGTYPE"):
                    raise reply
            return replies

        replies = self._commands.call(send)
        records = []
        for key, reply in zip(keys, replies, strict=True):
            with suppress(ForeignRecordError), self._commands.translate_errors(key):
                if isinstance(reply, Exception):
                    raise reply
                found = hash_of(reply)
                records += [to_record(found, key)] if found else []
        return records

    def _judge(self, script: Script, key: JobKey, now: int) -> int:
        judged = 0
        with suppress(ForeignRecordError):
            judged, _ = self._commands.run(script, key, now, read=judged_of)
        return judged

    def _page(self, cursor: int, size: int) -> tuple[int, list[JobKey]]:
        """Where to go on, 0 at the end; and about so many keys that are onejob's."""

        def send() -> tuple[int, list[bytes]]:
            command = "SCAN", cursor, "MATCH", f"{PREFIX}*", "COUNT", size
            return page_of(self._commands.client.execute_command(*command))

        following, names = self._commands.call(send, again=cursor == 0)  # it means nothing to another server
        return following, [key for name in names if (key := key_of(name)) is not None]


def _shown(seen: Record) -> tuple[str, str, int, int]:
    return seen.status, seen.owner or "", seen.attempts, seen.epoch
