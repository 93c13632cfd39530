"""Checkpoints in the store, and which chains changed since the last one."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from sayso.core.clock import new_id
from sayso.features.evidence.checkpoints import Checkpoint, Leaf, read_checkpoint
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import as_ms, text, texts
from service.core.store.rules import RuleVersion, digest_files
from service.core.store.tenants import StorePart

RUN, RULES, ACTIVITY = "run ", "rules ", "activity"
_COMPARED = "compared"
_LEASE_S = 120
_PAGE = 1_000


class Last(NamedTuple):
    """The number, the SHA-256 of the statement, and the time of the last checkpoint; `begun` is false before it."""

    number: int = 0
    digest: str = ""
    at_ms: int = 0


class CheckpointStore(StorePart):
    """The checkpoints of one tenant."""

    async def now_ms(self) -> int:
        return as_ms(*await self._redis.time())

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[bool]:
        """Yield whether no other process makes or delivers checkpoints meanwhile."""
        key, holder = self._keys.lease("checkpoints"), new_id("chk")
        taken = bool(await self._redis.set(key, holder, nx=True, ex=_LEASE_S))
        try:
            yield taken
        finally:
            if taken and text(await self._redis.get(key) or b"") == holder:
                await self._redis.delete(key)

    async def rest(self) -> None:
        """Forget what changed, as nobody makes checkpoints; the next one covers every run again."""
        await self._redis.unlink(self._keys.unchecked, self._keys.checking)
        await self._redis.hdel(self._keys.checkpoint_sinks, "begun")

    async def list_runs(self, begin_ms: int, end_ms: int) -> list[str]:
        """Return the runs that began in a time, and deleted ones that ended in it, the first first."""
        keys = self._keys
        indexes = [keys.runs_of(text(owner)) for owner in await self._redis.smembers(keys.owners)]
        begins: dict[str, float] = {}
        for index in (*indexes, keys.trails):
            pairs: Any = await self._redis.zrangebyscore(index, begin_ms, f"({end_ms}", withscores=True)
            begins |= {text(run_id): at_ms for run_id, at_ms in pairs}
        begins |= await self._store.archive.list_runs(begin_ms, end_ms)
        return sorted(begins, key=lambda run_id: (begins[run_id], run_id))

    async def begin(self) -> None:
        """Let the next checkpoints cover every run, unless that was done since checkpoints were turned on."""
        if await self._redis.hexists(self._keys.checkpoint_sinks, "begun"):
            return
        indexes = [self._keys.runs_of(text(owner)) for owner in await self._redis.smembers(self._keys.owners)]
        for index in (*indexes, self._keys.trails):
            skip = 0
            while ids := await self._redis.zrange(index, skip, skip + _PAGE - 1):
                await self._redis.hset(self._keys.checking, mapping=dict.fromkeys(texts(ids), 1))
                skip += _PAGE
        await self._redis.hset(self._keys.checkpoint_sinks, "begun", 1)

    async def read_last(self) -> Last:
        raw = text(await self._redis.get(self._keys.checkpoint) or b"")
        if not raw:
            return Last()
        number, digest, at_ms = raw.split("|")
        return Last(int(number), digest, int(at_ms))

    async def count_changed(self) -> int:
        """Return the number of new events, at least that of runs with any."""
        keys = self._keys
        runs = int(await self._redis.hlen(keys.unchecked)) + int(await self._redis.hlen(keys.checking))
        return runs if runs >= _PAGE else sum(map(int, await self._redis.hvals(keys.unchecked))) + runs

    async def list_changed(self, limit: int) -> list[str]:
        """Return runs for the next checkpoint. They stay in the list until it is saved, even if this process ends."""
        keys = self._keys
        if not await self._redis.exists(keys.checking):
            if not await self._redis.exists(keys.unchecked):
                return []
            await self._redis.rename(keys.unchecked, keys.checking)
        names: set[str] = set()
        async for name, _ in self._redis.hscan_iter(keys.checking, count=limit):
            names.add(text(name))
            if len(names) >= limit:
                break
        return sorted(names)

    async def read_heads(self, run_ids: Iterable[str], since_ms: int) -> list[Leaf]:
        """Return the heads of these runs' trails, of the activity log, and of the rules saved since a time."""
        ids, keys = list(run_ids), self._keys
        async with self._redis.pipeline(transaction=False) as pipe:
            for run_id in ids:
                pipe.lindex(keys.trail(run_id), -1)
            pipe.lindex(keys.activity, -1)
            pipe.zrangebyscore(keys.rule_versions, since_ms, "+inf")
            *lasts, activity, versions = await pipe.execute()
        leaves = [_read_head(f"{RUN}{run_id}", raw) for run_id, raw in zip(ids, lasts, strict=True) if raw]
        leaves += [_read_head(ACTIVITY, activity)] if activity else []
        rules = [(name, await self.digest_rules(name)) for name in texts(versions)]
        return sorted([*leaves, *(Leaf(f"{RULES}{name}", 1, digest) for name, digest in rules if digest)])

    async def digest_rules(self, version: str) -> str:
        """Return the digest of a stored version of the rules, computed anew; empty for a deleted one."""
        raw: Any = await self._redis.get(self._keys.rule_version(version))
        stored = self._readings.read_other(RuleVersion, raw, f"rules {version}") if raw else None
        return digest_files(stored.text.encode(), stored.lists) if stored is not None else ""

    async def save(self, last: Last, made: Checkpoint, digest: str, done: Sequence[str]) -> bool:
        """Save a checkpoint after `last`, in one commit; return False where another process was faster."""
        keys, commit = self._keys, Commit()
        commit.expect(keys.checkpoint, last.number)
        commit.write("SET", keys.checkpoint, f"{made.number}|{digest}|{made.at_ms}")
        commit.write("ZADD", keys.checkpoints, made.number, made.line)
        for leaf in made.leaves:
            commit.write("HSET", keys.checkpoint_of, leaf.chain, made.number)
        for start in range(0, len(done), _PAGE):
            commit.write("HDEL", keys.checking, *done[start : start + _PAGE])
        return await self._send(commit)

    async def list_lines(self, after: int, limit: int) -> list[str]:
        """Return the checkpoints after a number, as lines of JSON."""
        raws: Any = await self._redis.zrangebyscore(self._keys.checkpoints, f"({after}", "+inf", start=0, num=limit)
        return texts(raws)

    async def find_of(self, chain: str) -> Checkpoint | None:
        """Return the latest checkpoint with a chain, or None."""
        number = text(await self._redis.hget(self._keys.checkpoint_of, chain) or b"")
        lines: Any = await self._redis.zrangebyscore(self._keys.checkpoints, number, number) if number else []
        return read_checkpoint(text(lines[0])) if lines else None

    async def read_delivered(self) -> dict[str, int]:
        """Return the number of the last checkpoint that each sink has."""
        held: Any = await self._redis.hgetall(self._keys.checkpoint_sinks)
        return {text(name): int(number) for name, number in held.items() if text(name) not in ("begun", _COMPARED)}

    async def note_delivered(self, sink: str, number: int) -> None:
        await self._redis.hset(self._keys.checkpoint_sinks, sink, number)

    async def is_compared(self, freeze_id: str) -> bool:
        """Return whether the runs were compared with the sinks' files for the loss of this freeze."""
        return text(await self._redis.hget(self._keys.checkpoint_sinks, _COMPARED) or b"") == freeze_id

    async def note_compared(self, freeze_id: str) -> None:
        await self._redis.hset(self._keys.checkpoint_sinks, _COMPARED, freeze_id)

    async def note_all_delivered(self, at_ms: int) -> None:
        """Record that all sinks have every checkpoint up to a time; decisions may depend on it."""
        await self._redis.hset(self._keys.clock, "delivered", at_ms)

    async def forget_old(self, before_ms: int) -> None:
        """Delete the oldest checkpoint if it was made before a time, with the entries that name it."""
        oldest: Any = await self._redis.zrange(self._keys.checkpoints, 0, 0)
        if not oldest or (made := read_checkpoint(text(oldest[0]))).at_ms >= before_ms:
            return
        numbers: Any = await self._redis.hmget(self._keys.checkpoint_of, ["", *(leaf.chain for leaf in made.leaves)])
        gone = [leaf.chain for leaf, number in zip(made.leaves, numbers[1:], strict=True) if number == _write(made)]
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.zrem(self._keys.checkpoints, oldest[0])
            if gone:
                pipe.hdel(self._keys.checkpoint_of, *gone)
            await pipe.execute()


def _write(made: Checkpoint) -> bytes:
    return str(made.number).encode()


class Link(BaseModel):
    """The number and the hash of an entry of any chain."""

    seq: int = 0
    hash: str = ""


def read_link(raw: bytes) -> Link:
    """Return the number and the hash of a stored entry; 0 and no hash for a damaged one."""
    try:
        return Link.model_validate_json(raw)
    except ValidationError:
        return Link()


def _read_head(chain: str, raw: bytes) -> Leaf:
    link = read_link(raw)
    return Leaf(chain, link.seq, link.hash)
