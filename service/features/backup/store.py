"""A consistent copy of a live store, and its way back, over the plain protocol: no fork and no right to replicate.

The store names each key that changes (client tracking) while all keys are read one after the other. What changed is
read again, until one script reads the rest at an instant at which nothing else can have changed: the store's own count
of changes is what it was before the last names came. The copy is the store at that instant.
"""

import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError, RedisError, ResponseError
from redis.retry import Retry

from sayso.errors import SaysoError, Unavailable
from service.core.settings.stores import read_cluster
from service.core.store.connection.connecting import connect_blocking, describe_fault, name_shared, text
from service.core.store.connection.macs import MAC, find_kind, find_shared
from service.core.store.keys import INSTANCE_KEYS, KEYS, PREFIX, SESSIONS, SHARED, keys_of, own_name
from service.features.backup.files import Entry

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
        with closing(Link(url, _find_prefix(url))) as link:
            for entry in link.read_all():
                yield entry._replace(name=find_shared(entry.name))
    except (RedisError, OSError) as error:
        raise Unavailable(describe_fault(url, error)) from error


def _find_prefix(url: str) -> str:
    """Return what the names of all keys of a store begin with; in a cluster, of those of its tenant."""
    cluster = read_cluster(url)
    return own_name(PREFIX, cluster.tenant) if cluster is not None else PREFIX


def _list(names: Iterable[bytes], values: Iterable[Any]) -> Iterator[Entry]:
    for name, (expires_ms, *dump) in zip(names, values, strict=True):
        yield Entry(name, expires_ms, dump[0] if dump else None)


class Link:
    """One connection, and the names of the keys with a prefix that have changed since they were read."""

    def __init__(self, url: str, prefix: str) -> None:
        self._prefix = prefix
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
            raise Unavailable("The store was emptied meanwhile, so there is no copy of it.")
        return replies

    def read_all(self) -> Iterator[Entry]:
        """Yield the entries of a consistent copy; raises `Unavailable` where the store changes too fast."""
        self.ask(("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", self._prefix))
        cursor: Any = b"0"
        while True:
            ((cursor, names),) = self.ask(("SCAN", cursor, "MATCH", f"{self._prefix}*", "COUNT", _SCANNED))
            yield from self.read(names)
            if int(cursor) == 0:
                break
        yield from self.read_changed()

    def read_changed(self) -> Iterator[Entry]:
        """Yield what has changed since it was read, the last of it at one instant."""
        for _ in range(_ROUNDS):
            while len(self.changed) > _FEW:
                yield from self.read([self.changed.pop() for _ in range(_SCANNED)])
            (count,) = self.ask(("EVAL", _READ_COUNT, 0))
            self.ask(("PING",))  # the names of what changed before that count come before this answer
            names = list(self.changed)
            (values,) = self.ask(("EVAL", _READ, len(names), *names, count))
            if values is not None:
                self.changed.difference_update(names)
                yield from _list(names, values)
                return
        raise Unavailable("The store changes too fast for a consistent copy. Try again at a quieter time.")

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


EXPIRED = frozenset(
    (
        *("sessions", "sessions-of", "provider-sessions", "sign-in", "password-given", "app-begun", "attempts"),
        *("passkey-challenge", "contact-code", "mailed-code", "install-state", "lease", "presence"),
    )
)
"""What is not restored: sessions and unused codes, of which some may have ended or been used since, and leases."""


class NotVerified(SaysoError):
    """The restored store is not what was backed up."""


async def load(redis: Redis, entries: Iterable[Entry], mark: tuple[str, str] | None = None) -> Counter[str]:
    """Write all entries, under their names in this store; return how many more keys without an end of each kind it has.

    With the key and the text of a mark, it writes only while the store has that; raises `Unavailable`.
    """
    counts: Counter[str] = Counter()
    entries = (entry._replace(name=_name_in(redis, entry.name)) for entry in entries)
    while some := list(islice(entries, _AT_ONCE)):
        async with redis.pipeline(transaction=mark is not None) as pipe:
            if mark is not None:
                await pipe.watch(mark[0])
                if text(await pipe.get(mark[0]) or b"") != mark[1]:
                    raise Unavailable("Another move, or a way back, began meanwhile. Run the command again.")
                pipe.multi()  # type: ignore[no-untyped-call]
            for entry in some:
                pipe.pttl(entry.name)
                _put(pipe, entry)
            replies: list[Any] = await pipe.execute(raise_on_error=False)
        for entry, before, reply in zip(some, replies[::2], replies[1::2], strict=True):
            if isinstance(reply, NoPermissionError):
                raise Unavailable(
                    "The store refuses RESTORE. Use a user who may send it: distribution/store/users.acl."
                )
            if isinstance(reply, ResponseError):
                raise Unavailable(f"The store does not take the key {entry.name!r}: {reply}. Empty it, then try again.")
            if isinstance(reply, Exception):
                raise Unavailable from reply
            counts[find_kind(entry.name)] += (entry.dump is not None and entry.expires_ms < 0) - (before == -1)
    return counts


def _name_in(redis: Redis, name: bytes) -> bytes:
    """Return the name in this store of a key of any store."""
    return name_shared(redis, text(find_shared(name))).encode() if find_kind(name) in SHARED else name


def _put(pipe: Any, entry: Entry) -> None:
    if entry.dump is None:
        pipe.delete(entry.name)
    else:
        pipe.restore(entry.name, max(0, entry.expires_ms), entry.dump, replace=True, absttl=entry.expires_ms >= 0)


async def compare(redis: Redis, counts: Counter[str], prefix: str = "", besides: Collection[str] = ("format",)) -> None:
    """Raise `NotVerified` where the store has other keys with the prefix than these, besides those of some kinds."""
    present: Counter[str] = Counter()
    cursor: Any = 0
    while True:
        cursor, names = await redis.scan(cursor, match=f"{prefix or name_shared(redis, PREFIX)}*", count=1_000)
        async with redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.pttl(name)
            ends = await pipe.execute()
        kinds = (find_kind(name) for name, end in zip(names, ends, strict=True) if end == -1)
        present.update(kind for kind in kinds if kind not in besides)
        if not int(cursor):
            break
    if wrong := [
        f"{kind}: {present[kind]} of {counts[kind]}" for kind in {*present, *counts} if present[kind] != counts[kind]
    ]:
        raise NotVerified(
            f"Keys are missing or too many: {'; '.join(sorted(wrong))}. Empty the store, and restore again."
        )


_SWAP = """
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
elseif ARGV[3] == '0' then
  redis.call('SET', KEYS[1], ARGV[2])
else
  redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1
"""


_OF_STORE = frozenset(("format", "store", "macs", "attempts", "moving"))
"""What stays in its store when a tenant moves. In a cluster it lies among the tenant's keys."""

APART = _OF_STORE | SHARED | {"comparing"}
"""What is not copied with the keys of a tenant's hash tag."""


class Copy:
    """One tenant's keys in one store, also those without its hash tag, and the mark of its move."""

    def __init__(self, redis: Redis, tenant: str) -> None:
        self.redis, self.keys = redis, keys_of(tenant)

    async def read_mark(self) -> str:
        """Return the text of the mark; empty for none."""
        return text(await self.redis.get(self.keys.moving) or b"")

    async def swap(self, before: str, after: str, end_ms: int = 0) -> bool:
        """Replace the mark in one step; return False where it is not `before`. With an end it expires then."""
        return bool(await self.redis.eval(_SWAP, 1, self.keys.moving, before, after, str(end_ms)))

    async def list_active(self, within_ms: int) -> list[str]:
        """Return the processes that compared their commits lately, and so do not know of the move."""
        time: Any = await self.redis.time()
        said: Any = await self.redis.hgetall(self.keys.comparing)
        since_ms = int(time[0]) * 1000 - within_ms
        return [text(name) for name, value in said.items() if int(text(value).rpartition(" ")[2]) > since_ms]

    async def is_confirmed(self, replicas: int, within_ms: int) -> bool:
        """Return whether so many replicas have all that was written before."""
        return not replicas or int(await self.redis.wait(replicas, within_ms)) >= replicas

    async def is_empty(self) -> bool:
        """Return whether the store has nothing of the tenant but marks of processes."""
        names = self.redis.scan_iter(match=f"{self.keys.prefix}*", count=1_000)
        return not {find_kind(name) async for name in names} - _OF_STORE - {"comparing"}

    async def list_others(self) -> list[bytes]:
        """Return the tenant's keys without its hash tag: its API keys, instance keys and sessions."""
        return [name async for name, owner in self._walk_others() if owner == self.keys.tenant]

    async def find_taken(self, names: Collection[bytes]) -> bool:
        """Return whether another tenant has one of these keys in this store."""
        wanted = {_name_in(self.redis, name) for name in names}
        owners = [owner async for name, owner in self._walk_others() if name in wanted]
        return any(owner != self.keys.tenant for owner in owners)

    async def delete(self) -> None:
        """Delete all of the tenant's keys but the mark."""
        names = [name async for name in self.redis.scan_iter(match=f"{self.keys.prefix}*", count=1_000)]
        own = [name for name in names if find_kind(name) not in _OF_STORE]
        await self.remove(list({*own, *await self.list_others()}))

    async def drop_others(self) -> Counter[str]:
        """Delete the credentials of other tenants, which a backup of several holds; return how many of each kind."""
        names = [name async for name, owner in self._walk_others() if owner not in ("", self.keys.tenant)]
        await self.remove(names)
        return Counter(map(find_kind, names))

    async def remove(self, names: list[bytes]) -> None:
        for begin in range(0, len(names), _AT_ONCE):
            await self.redis.unlink(*(_name_in(self.redis, name) for name in names[begin : begin + _AT_ONCE]))

    async def _walk_others(self) -> AsyncIterator[tuple[bytes, str]]:
        for shared in (KEYS, INSTANCE_KEYS, SESSIONS):
            prefix = name_shared(self.redis, shared)
            names = [name async for name in self.redis.scan_iter(match=f"{prefix}*", count=1_000)]
            for begin in range(0, len(names), _AT_ONCE):
                some = names[begin : begin + _AT_ONCE]
                for name, raw in zip(some, await self.redis.mget(some), strict=True):
                    yield name, _find_owner(raw)


def _find_owner(raw: Any) -> str:
    """Return the tenant that a credential names; nothing where it cannot be read."""
    try:
        owner = json.loads(MAC.sub(b"", raw or b"")).get("tenant")
    except (ValueError, AttributeError):
        return ""
    return owner if isinstance(owner, str) else ""
