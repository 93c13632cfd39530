"""A pass over all stored values: which have MACs, and the addition of MACs where an operator vouches for the values."""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from redis.asyncio import Redis

from service.core.store.connection.connecting import connect, name_shared, text
from service.core.store.connection.macs import MAC, PLAIN, Macs, find_kind, name_value
from service.core.store.keys import MACS, PREFIX

_SCANNED = 1_000
_NAMED = 20
_COPIES = ("ready", "handed")
_REPLACE = """
local value
if ARGV[1] == 'string' then
  value = redis.call('GET', KEYS[1])
elseif ARGV[1] == 'hash' then
  value = redis.call('HGET', KEYS[1], ARGV[2])
else
  value = redis.call('LINDEX', KEYS[1], ARGV[2])
end
if value ~= ARGV[3] then
  return 0
end
if ARGV[1] == 'string' then
  redis.call('SET', KEYS[1], ARGV[4], 'KEEPTTL')
elseif ARGV[1] == 'hash' then
  redis.call('HSET', KEYS[1], ARGV[2], ARGV[4])
else
  redis.call('LSET', KEYS[1], ARGV[2], ARGV[4])
end
return 1
"""


class _Value(NamedTuple):
    """One stored value; `place` is its field, or its number in a list."""

    type: str
    key: str
    place: Any
    raw: bytes


@dataclass
class Survey:
    """How many values have a MAC of the current key, of an earlier one, none, and a wrong one, with some names."""

    current: int = 0
    earlier: int = 0
    absent: int = 0
    wrong: int = 0
    named: list[str] = field(default_factory=list)
    cut: bool = False

    @property
    def refused(self) -> int:
        return self.absent + self.wrong


async def survey(url: str, macs: Macs, *, add: bool = False, most: int = 0, prefix: str = "") -> Survey:
    """Count values by their MACs, up to `most`; with `add`, give those with none or an earlier one theirs.

    Without a prefix, those of all keys.
    """
    counts = Survey()
    async with connect(url) as redis:
        async for value in _walk(redis, prefix):
            if most and counts.current + counts.earlier + counts.refused >= most:
                counts.cut = True
                break
            await _count(redis, macs, value, counts, add=add)
        if add:
            await redis.set(name_shared(redis, MACS), macs.add(MACS, "1"), nx=True)
    return counts


async def _count(redis: Redis, macs: Macs, value: _Value, counts: Survey, *, add: bool) -> None:
    prefix, key, field, stored = b"", value.key, value.place if value.type == "hash" else "", value.raw
    if find_kind(value.key) in _COPIES:
        name, _, stored = value.raw.partition(b" ")
        prefix, key = name + b" ", f"{value.key.partition('}:')[0]}}}:s:{text(name)}"
    body = macs.open(key, stored, field)
    if body is not None and stored == macs.add(key, body, field):
        counts.current += 1
        return
    if body is not None:
        counts.earlier += 1
    elif MAC.search(stored):
        counts.wrong += 1
    else:
        counts.absent += 1
    if body is None and len(counts.named) < _NAMED:
        counts.named.append(name_value(key, field))
    if add and (body is not None or not MAC.search(stored)):
        after = prefix + macs.add(key, stored if body is None else body, field)
        await redis.eval(_REPLACE, 1, value.key, value.type, value.place, value.raw, after)


async def _walk(redis: Redis, prefix: str) -> AsyncIterator[_Value]:
    """Yield the values of all keys that have MACs, and the copies of records."""
    async for name in redis.scan_iter(match=f"{prefix or name_shared(redis, PREFIX)}*", count=_SCANNED):
        key, kind = text(name), find_kind(name)
        if kind in PLAIN and kind not in _COPIES:
            continue
        type_ = text(await redis.type(key))
        if type_ == "string":
            raw: Any = await redis.get(key)
            values: Iterable[tuple[Any, Any]] = [("", raw)] if raw is not None else []
        elif type_ == "hash":
            values = (await redis.hgetall(key)).items()
        elif type_ == "list":
            values = enumerate(await redis.lrange(key, 0, -1))
        else:
            continue
        for place, raw in values:
            yield _Value(type_, key, place, raw)
