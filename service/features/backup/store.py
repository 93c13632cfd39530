"""A consistent copy of a live store, and its way back, over the plain protocol: no fork and no right to replicate.

The store names each key that changes (client tracking) while all keys are read one after the other. What changed is
read again, until one script reads the rest at an instant at which nothing else can have changed: the store's own count
of changes is what it was before the last names came. The copy is the store at that instant.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.retry import Retry

from sayso.errors import SaysoError, Unavailable
from service.core.store.connection.connecting import connect_blocking, describe_fault
from service.core.store.connection.macs import find_kind
from service.core.store.keys import FORMAT
from service.features.backup.files import Entry

_PREFIX = "sayso:"
_AT_ONCE = 200
_SCANNED, _FEW = 200, 2_000
_ROUNDS = 1_000
_COUNT = """\
local info = redis.call('INFO', 'persistence')
local count = (string.match(info, 'rdb_changes_since_last_save:(%d+)') or '')
  .. ' ' .. (string.match(info, 'rdb_last_save_time:(%d+)') or '')
"""
_READ_COUNT = f"#!lua flags=no-writes\n{_COUNT}return count"
_READ = f"""#!lua flags=no-writes
{_COUNT}
if count ~= ARGV[1] then return false end
local values = {{}}
for at, key in ipairs(KEYS) do values[at] = {{redis.call('PEXPIRETIME', key), redis.call('DUMP', key)}} end
return values
"""


def read_store(url: str) -> Iterator[Entry]:
    """Yield the entries of a consistent copy; raises `Unavailable`, also where the store does not name changed keys."""
    try:
        with closing(_Link(url)) as link:
            yield from _read(link)
    except (RedisError, OSError) as error:
        raise Unavailable(describe_fault(url, error)) from error


def _read(link: "_Link") -> Iterator[Entry]:
    link.ask(("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", _PREFIX))
    cursor: Any = b"0"
    while True:
        ((cursor, names),) = link.ask(("SCAN", cursor, "MATCH", f"{_PREFIX}*", "COUNT", _SCANNED))
        yield from link.read(names)
        if int(cursor) == 0:
            break
    for _ in range(_ROUNDS):
        while len(link.changed) > _FEW:
            names = [link.changed.pop() for _ in range(_SCANNED)]
            yield from link.read(names)
        (count,) = link.ask(("EVAL", _READ_COUNT, 0))
        link.ask(("PING",))  # the names of what changed before that count come before this answer
        names = list(link.changed)
        (values,) = link.ask(("EVAL", _READ, len(names), *names, count))
        if values is not None:
            yield from _list(names, values)
            return
    raise Unavailable("The store changes too fast for a consistent copy. Make the backup at a quieter time.")


def _list(names: Iterable[bytes], values: Iterable[Any]) -> Iterator[Entry]:
    for name, (expires_ms, *dump) in zip(names, values, strict=True):
        yield Entry(name, expires_ms, dump[0] if dump else None)


class _Link:
    """One connection, and the names of the keys that have changed since they were read."""

    def __init__(self, url: str) -> None:
        self._client = connect_blocking(url, protocol=3, socket_timeout=60, retry=Retry(NoBackoff(), 0))
        self._connection: Any = self._client.connection_pool.get_connection()
        self._connection._parser.set_invalidation_push_handler(self._note)
        self.changed: set[bytes] = set()
        self._emptied = False

    def ask(self, *commands: tuple[Any, ...]) -> list[Any]:
        """Send commands at once and return their replies."""
        self._connection.send_packed_command(self._connection.pack_commands(commands))
        replies = [self._connection.read_response() for _ in commands]
        if self._emptied:
            raise Unavailable("The store was emptied meanwhile, so there is no backup.")
        return replies

    def read(self, names: list[bytes]) -> Iterator[Entry]:
        """Yield keys as they are now; one that changes from now on is in `changed`."""
        self.changed.difference_update(names)
        replies = self.ask(*(command for name in names for command in (("PEXPIRETIME", name), ("DUMP", name))))
        yield from _list(
            names,
            ((at, *([dump] if dump is not None else [])) for at, dump in zip(replies[::2], replies[1::2], strict=True)),
        )

    def close(self) -> None:
        self._connection.disconnect()
        self._client.close()

    def _note(self, push: Any) -> None:
        if push[1] is None:
            self._emptied = True
        else:
            self.changed.update(push[1])


_EXPIRED = frozenset(
    (
        *("sessions", "sessions-of", "provider-sessions", "sign-in", "password-given", "app-begun", "attempts"),
        *("passkey-challenge", "contact-code", "mailed-code", "install-state", "lease", "presence"),
    )
)
"""What is not restored: sessions and unused codes, of which some may have ended or been used since, and leases."""


class NotVerified(SaysoError):
    """The restored store is not what was backed up."""


async def load(redis: Redis, backup: Iterable[Entry]) -> Counter[str]:
    """Restore all entries but the format; return how many keys without an end there are of each kind."""
    counts: Counter[str] = Counter()
    entries = (entry for entry in backup if entry.name != FORMAT.encode() and find_kind(entry.name) not in _EXPIRED)
    while some := list(islice(entries, _AT_ONCE)):
        async with redis.pipeline(transaction=False) as pipe:
            for entry in some:
                pipe.pttl(entry.name)
                _put(pipe, entry)
            replies: list[Any] = await pipe.execute(raise_on_error=False)
        for entry, before, reply in zip(some, replies[::2], replies[1::2], strict=True):
            if isinstance(reply, ResponseError):
                raise Unavailable(f"The store does not take the key {entry.name!r}: {reply}. Empty it, then try again.")
            if isinstance(reply, Exception):
                raise Unavailable from reply
            counts[find_kind(entry.name)] += (entry.dump is not None and entry.expires_ms < 0) - (before == -1)
    return +counts


def _put(pipe: Any, entry: Entry) -> None:
    if entry.dump is None:
        pipe.delete(entry.name)
    else:
        pipe.restore(entry.name, max(0, entry.expires_ms), entry.dump, replace=True, absttl=entry.expires_ms >= 0)


async def compare(redis: Redis, counts: Counter[str]) -> None:
    """Raise `NotVerified` where the store has other keys than these."""
    present: Counter[str] = Counter()
    cursor: Any = 0
    while True:
        cursor, names = await redis.scan(cursor, match="sayso:*", count=1_000)
        async with redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.pttl(name)
            ends = await pipe.execute()
        present.update(find_kind(name) for name, end in zip(names, ends, strict=True) if end == -1)
        if not int(cursor):
            break
    present[find_kind(FORMAT)] -= 1
    if wrong := [
        f"{kind}: {present[kind]} of {counts[kind]}" for kind in {*present, *counts} if present[kind] != counts[kind]
    ]:
        raise NotVerified(
            f"Keys are missing or too many: {'; '.join(sorted(wrong))}. Empty the store, and restore again."
        )
