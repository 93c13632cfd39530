"""Signed messages and their delivery.

The messages for one endpoint form a lane, and the list of lanes says which has a message due, so no endpoint delays
another. An attempt claims a message by its version, so that one process sends it. A claim lasts longer than an attempt;
after a crash it expires and the message is sent again. The lists are hints; the message holds the time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from sayso.errors import Unreadable
from service.core.store.announcements import LANE, Delivery, find_place, pack_delivery, write_message
from service.core.store.connection.commits import Commit
from service.core.store.connection.connecting import text, texts
from service.core.store.connection.macs import REFUSED
from service.core.store.lua import read_script
from service.core.store.tenants import DueList, TenantStore

CLAIM_MS = 30_000  # three times as long as an attempt may take
KEPT_MS = DAY_MS  # how long a message is kept after its delivery
FAILED_KEPT_MS = 30 * KEPT_MS  # how long a message is kept that was not delivered
_MOST_FAILURES = 1_000

DELIVERED = "delivered"


class Waiting(NamedTuple):
    """A stored message with its version."""

    delivery: Delivery
    version: int


class Deliveries(DueList):
    """The messages of one tenant: the lanes with a message to send, and deletions to complete."""

    def __init__(self, store: TenantStore) -> None:
        super().__init__(store.redis, store.keys.deliveries)
        self._keys, self._readings, self._send = store.keys, store.readings, store.send
        self._settle = store.redis.register_script(read_script("lane"))

    def lane(self, endpoint_id: str) -> DueList:
        return DueList(self._redis, self._keys.lane(endpoint_id))

    async def settle_lane(self, endpoint_id: str, earliest_ms: int = 0) -> None:
        """List the lane under its next message, but not before `earliest_ms`; remove it once it is empty."""
        keys = [self._keys.lane(endpoint_id), self._keys.deliveries]
        await self._settle(keys=keys, args=[f"{LANE}{endpoint_id}", earliest_ms])

    async def add(self, messages: Sequence[Delivery], due_ms: int) -> None:
        """Save new messages. One that was saved before is left as it is."""
        for message in messages:
            commit = Commit()
            commit.expect(self._keys.delivery(message.id), 0)
            write_message(commit, self._keys, message, due_ms)
            await self._send(commit)

    async def read(self, message_id: str) -> Waiting | None:
        """Return a message with its version, or None; raises `Unreadable` for one of a later version."""
        raw = await self._redis.get(self._keys.delivery(message_id))
        if raw is None:
            return None
        version, body = _split(raw)
        return Waiting(self._readings.require_other(Delivery, body, _name(message_id)), version)

    async def group(self, message_ids: Sequence[str]) -> list[list[str]]:
        """Return the messages in groups with one subject each, in the order of their events."""
        raws = await self._redis.mget([self._keys.delivery(message_id) for message_id in message_ids])
        groups: dict[str, list[tuple[int, int, str]]] = {}
        for message_id, raw in zip(message_ids, raws, strict=True):
            read = self._readings.read_others(Delivery, [(_name(message_id), _split(raw)[1])] if raw else [])
            subject, at_ms, type_ = (read[0].subject, read[0].created_at_ms, read[0].type) if read else ("", 0, "")
            groups.setdefault(subject or message_id, []).append((at_ms, find_place(type_), message_id))
        return [[message_id for *_, message_id in sorted(group)] for group in groups.values()]

    async def claim(self, seen: Waiting, now_ms: int) -> Waiting | None:
        """Claim a message for one attempt; None if another process has it."""
        if now_ms < seen.delivery.not_before_ms:
            return None
        taken = seen.delivery.model_copy(update={"tries": seen.delivery.tries + 1, "tried_at_ms": now_ms})
        return await self._save(seen, taken, now_ms + CLAIM_MS)

    async def postpone(self, claimed: Waiting, again_at_ms: int, status: int = 0, reason: str = "") -> bool:
        """Return a message for a later attempt; False if the claim has expired."""
        refused = claimed.delivery.model_copy(update={"status": status, "reason": reason})
        return await self._save(claimed, refused, again_at_ms) is not None

    async def end(self, seen: Waiting, how: str, now_ms: int, status: int = 0, reason: str = "") -> bool:
        """End a message, delivered or not; False if the claim has expired."""
        update = {"ended": how, "ended_at_ms": now_ms, "status": status, "reason": reason}
        return await self._save(seen, seen.delivery.model_copy(update=update), None) is not None

    async def send_again(self, message_id: str, until_ms: int, now_ms: int) -> bool:
        """Make a message due now, with all its attempts; False if it is gone."""
        seen = await self.read(message_id)
        if seen is None:
            return False
        update = {"tries": 0, "until_ms": until_ms, "ended": None, "ended_at_ms": None}
        if await self._save(seen, seen.delivery.model_copy(update=update), now_ms) is None:
            return False
        await self._redis.zadd(self._keys.deliveries, {f"{LANE}{seen.delivery.endpoint_id}": now_ms}, lt=True)
        return True

    async def list_failures(self, now_ms: int, limit: int = 200) -> list[Delivery]:
        """Return messages whose last attempt failed, the latest first; forget those that are no longer kept."""
        key = self._keys.failures
        await self._redis.zremrangebyscore(key, "-inf", now_ms - FAILED_KEPT_MS)
        await self._redis.zremrangebyrank(key, 0, -_MOST_FAILURES - 1)
        names = texts(await self._redis.zrange(key, 0, limit - 1, desc=True))
        raws = await self._redis.mget([self._keys.delivery(name) for name in names]) if names else []
        gone = [name for name, raw in zip(names, raws, strict=True) if raw is None]
        if gone:
            await self._redis.zrem(key, *gone)
        kept = ((_name(name), _split(raw)[1]) for name, raw in zip(names, raws, strict=True) if raw is not None)
        return self._readings.read_others(Delivery, kept)

    async def adopt(self, message_id: str, now_ms: int) -> None:
        """Move a message of an earlier version from the list of lanes into its lane."""
        seen = await self.read(message_id)
        if seen is not None and seen.delivery.ended is None:
            lane = seen.delivery.endpoint_id
            await self._redis.zadd(self._keys.lane(lane), {message_id: seen.delivery.not_before_ms}, nx=True)
            await self._redis.zadd(self._keys.deliveries, {f"{LANE}{lane}": now_ms}, lt=True)
        await self.forget(message_id)

    async def follow_back(self, back_ms: int, now_ms: int) -> None:
        """Move postponed messages forward after the clock went back; idempotent."""
        listed: list[Any] = await self._redis.zrange(self._keys.deliveries, 0, -1, withscores=True)
        for name, at_ms in ((text(name), int(at_ms)) for name, at_ms in listed):
            if not name.startswith(LANE):
                if at_ms > now_ms:
                    await self.defer(name, now_ms)
                continue
            endpoint_id = name.removeprefix(LANE)
            key = self._keys.lane(endpoint_id)
            for message_id in texts(await self._redis.zrangebyscore(key, f"({now_ms}", "+inf")):
                try:
                    seen = await self.read(message_id)
                except Unreadable:  # its own version sends it at its own time
                    continue
                if seen is None:
                    await self.lane(endpoint_id).forget(message_id)
                elif seen.delivery.ended is None:
                    await self._save(seen, seen.delivery, max(now_ms, seen.delivery.not_before_ms - back_ms))
            await self.settle_lane(endpoint_id)

    async def _save(self, seen: Waiting, now: Delivery, next_at_ms: int | None) -> Waiting | None:
        keys = self._keys
        key, lane = keys.delivery(now.id), keys.lane(now.endpoint_id)
        commit = Commit()
        commit.expect(key, seen.version)
        now = now.model_copy(update={"not_before_ms": next_at_ms or 0})
        packed = pack_delivery(now, seen.version + 1)
        if next_at_ms is None:
            kept_ms = KEPT_MS if now.ended == DELIVERED else FAILED_KEPT_MS
            commit.write("SET", key, packed, "PX", kept_ms)
            commit.write("ZREM", lane, now.id)
        else:
            commit.write("SET", key, packed)
            commit.write("ZADD", lane, next_at_ms, now.id)
        if now.ended == DELIVERED:
            commit.write("ZREM", keys.failures, now.id)
        elif now.reason:
            commit.write("ZADD", keys.failures, now.tried_at_ms or now.ended_at_ms or 0, now.id)
        return Waiting(now, seen.version + 1) if await self._send(commit) else None


def _split(raw: Any) -> tuple[int, str]:
    version, _, body = text(raw).partition("|")
    return (int(version), body) if raw != REFUSED else (0, text(raw))


def _name(message_id: str) -> str:
    return f"message {message_id}"
