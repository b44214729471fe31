"""The writes, as Lua: what `IdempotencyStore` says in words, each one script, which the server runs alone.

`#!lua` lets the server refuse a script before it begins (out of memory, read only, disk failing): none is left half
done. `allow-oom` is for what ends a job or keeps it: its effect happened or is under way, and to forget that would be
worse than a few bytes beyond the limit. A claim is refused.

A record is a hash. Its times are whole microseconds since 1970, by the clock of the worker that wrote it. No key
expires by itself, so the server's clock decides nothing: a record is deleted only by `PURGE`, which judges it at a time
that its caller passes in. Older versions set an expiry. Each write removes it (`PERSIST`), and removes it first: a user
who may not do that changes nothing.

What is found to have landed before is written to all the same (its attempt, as it was): WAIT speaks only of what came
before a write on its own connection.
"""

from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final


@dataclass(frozen=True, slots=True)
class Script:
    """A script, and the name by which a server that has seen it knows it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", sha1(self.text.encode(), usedforsecurity=False).hexdigest())


_FOUND: Final = """
    local found, old = redis.call('HGETALL', KEYS[1]), {}
    for at = 1, #found, 2 do
        old[found[at]] = found[at + 1]
    end
    local function is_whole(text)
        return text and #text <= 16 and string.find(text, '^%d+$')
    end
    local in_progress = old.status == 'INPROGRESS'
    local is_sound = (in_progress or old.status == 'COMPLETED') and is_whole(old.attempts) and is_whole(old.epoch)
        and is_whole(old.lease_until) and is_whole(old.expires_at)
    local lease_over = is_sound and tonumber(old.lease_until) < tonumber(now)
    local retention_over = is_sound and tonumber(old.expires_at) < tonumber(now) and (not in_progress or lease_over)
"""
"""The record, judged at `now`. A value that is not sound was written by another tool."""

CLAIM: Final = Script(
    f"""#!lua
    local job_id, operation, owner, fingerprint, scheme, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
    {_FOUND}
    local lease_until, expires_at = ARGV[7], ARGV[8]
    local verified = 1
    local life, runs, unended = old.life or '1', old.runs or '0', old.unended or '0'
    local rejected_at = old.rejected_at or ''
    if #found > 0 then
        if not is_sound or old.job_id ~= job_id then
            return {{0, found}}
        end
        if not retention_over then
            local comparable = old.fingerprint and string.sub(old.fingerprint, 1, #scheme) == scheme
            local other_payload = comparable and old.fingerprint ~= fingerprint
            if not in_progress or not lease_over or old.released_by == owner or other_payload then
                if in_progress and old.owner == owner then
                    redis.call('PERSIST', KEYS[1])
                    redis.call('HSET', KEYS[1], 'attempts', old.attempts)
                end
                return {{0, found}}
            end
            verified = comparable and 1 or 0
        else
            life, runs, unended, rejected_at = string.format('%d', life + 1), '0', '0', ''
            redis.call('HDEL', KEYS[1], 'rejected_at')
        end
    end

    local attempts, epoch = string.format('%d', (old.attempts or 0) + 1), old.epoch or '1'
    unended = string.format('%d', unended + 1)
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'job_id', job_id, 'operation', operation, 'status', 'INPROGRESS', 'owner', owner,
        'attempts', attempts, 'lease_until', lease_until, 'expires_at', expires_at, 'fingerprint', fingerprint,
        'first_seen', old.first_seen or now, 'last_seen', now, 'epoch', epoch,
        'life', life, 'runs', runs, 'unended', unended)
    redis.call('HDEL', KEYS[1], 'answer', 'omitted', 'released_by')
    return {{1, attempts, epoch, verified, old.last_error or '', life, runs, unended, rejected_at}}
    """
)
"""1, attempt, epoch, whether fingerprints were compared, last error, and the count of runs (life, runs, unended,
rejected at); or 0 and the record that stands in the way.
"""

_HELD: Final = """
    local held = redis.call('HMGET', KEYS[1], 'status', 'attempts', 'owner', 'lease_until', 'life', 'released_by')
    local status, owner, lease_until = held[1], held[3], held[4]
    if held[2] ~= ARGV[2] then
        return 0
    end
    local function count(first)
        if (held[5] or '1') == ARGV[first] then
            redis.call('HSET', KEYS[1], 'runs', ARGV[first + 1], 'unended', ARGV[first + 2])
            if ARGV[first + 3] == '' then
                redis.call('HDEL', KEYS[1], 'rejected_at')
            else
                redis.call('HSET', KEYS[1], 'rejected_at', ARGV[first + 3])
            end
        end
    end
    local function touch()
        redis.call('PERSIST', KEYS[1])
        redis.call('HSET', KEYS[1], 'attempts', ARGV[2])
    end
"""
"""Each of these answers 1 where it landed, now or before, and 0 where the lease is lost."""

BEGIN: Final = Script(
    f"""#!lua flags=allow-oom
    {_HELD}
    if status ~= 'INPROGRESS' or owner ~= ARGV[1] then
        return 0
    end
    touch()
    count(3)
    return 1
    """
)

COMPLETE: Final = Script(
    f"""#!lua flags=allow-oom
    {_HELD}
    if owner ~= ARGV[1] then
        return 0
    end
    if status == 'COMPLETED' then
        touch()
        return 1
    end
    if status ~= 'INPROGRESS' then
        return 0
    end
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'status', 'COMPLETED', 'answer', ARGV[3], 'last_seen', ARGV[5], 'expires_at', ARGV[6])
    if ARGV[4] ~= '' then
        redis.call('HSET', KEYS[1], 'omitted', ARGV[4])
    end
    redis.call('HDEL', KEYS[1], 'runs', 'unended', 'rejected_at')
    return 1
    """
)

RELEASE: Final = Script(
    f"""#!lua flags=allow-oom
    {_HELD}
    if status ~= 'INPROGRESS' then
        return 0
    end
    if not owner and lease_until == '0' and held[6] == ARGV[1] then
        touch()
        return 1
    end
    if owner ~= ARGV[1] then
        return 0
    end
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'lease_until', '0', 'last_seen', ARGV[5], 'released_by', ARGV[1])
    redis.call('HDEL', KEYS[1], 'owner')
    if ARGV[3] ~= '' then
        redis.call('HSET', KEYS[1], 'last_error', ARGV[3])
    end
    if ARGV[4] == '1' then
        redis.call('HDEL', KEYS[1], 'fingerprint')
    end
    count(6)
    return 1
    """
)

RENEW: Final = Script(
    f"""#!lua flags=allow-oom
    {_HELD}
    if status ~= 'INPROGRESS' or owner ~= ARGV[1] then
        return 0
    end
    if tonumber(lease_until) < tonumber(ARGV[3]) then
        redis.call('PERSIST', KEYS[1])
        redis.call('HSET', KEYS[1], 'lease_until', ARGV[3], 'expires_at', ARGV[4])
    else
        touch()
    end
    return 1
    """
)

_SAME: Final = f"""
    local now = ARGV[5]
    {_FOUND}
    local is_same = is_sound and old.status == ARGV[1] and (old.owner or '') == ARGV[2] and old.attempts == ARGV[3]
        and old.epoch == ARGV[4]
"""
"""`Record.is_same_as`."""

FORGET: Final = Script(
    f"""#!lua flags=allow-oom
    {_SAME}
    if not is_same or (in_progress and old.lease_until ~= '0' and ARGV[7] ~= '1') then
        return {{0, found}}
    end
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'status', 'INPROGRESS', 'lease_until', '0', 'expires_at', ARGV[6],
        'epoch', string.format('%d', old.epoch + 1), 'life', string.format('%d', (old.life or 1) + 1))
    redis.call('HDEL', KEYS[1], 'owner', 'fingerprint', 'answer', 'omitted', 'released_by', 'runs', 'unended',
        'rejected_at')
    return {{1, redis.call('HGETALL', KEYS[1])}}
    """
)
"""Whether it landed, and the record as it now is."""

RESTART: Final = Script(
    f"""#!lua flags=allow-oom
    {_SAME}
    if not is_same then
        return 0
    end
    redis.call('PERSIST', KEYS[1])
    redis.call('HSET', KEYS[1], 'life', string.format('%d', (old.life or 1) + 1))
    redis.call('HDEL', KEYS[1], 'runs', 'unended', 'rejected_at')
    return 1
    """
)
"""Whether it landed."""

IS_OVER: Final = Script(
    f"""#!lua flags=no-writes
    local now = ARGV[1]
    {_FOUND}
    if #found == 0 then
        return -1
    end
    return retention_over and 1 or 0
    """
)
"""What `PURGE` would do: 1 where it would delete the record, 0 where the record stays, -1 where there is none."""

PURGE: Final = Script(
    f"""#!lua flags=allow-oom
    local now = ARGV[1]
    {_FOUND}
    if #found == 0 then
        return -1
    end
    if retention_over then
        return redis.call('DEL', KEYS[1])
    end
    if is_sound then
        redis.call('PERSIST', KEYS[1])
    end
    return 0
    """
)
"""Also removes the expiry that older versions set from what stays, since no write comes to a record that is completed.

1 where it is deleted, 0 where it stays, -1 where there is none: it has gone since, or was told twice."""
