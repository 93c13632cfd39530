"""Of each person the latest decisions and drills, and the calls that wait for a second look."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from sayso.core.records.decisions import Actor
from sayso.core.transitions.second_look import check_second_looker
from sayso.errors import NotFound, SaysoError, Unreadable
from service.core.desk.second_look import SeenCall
from service.core.store.connection.connecting import text
from service.core.store.keys import name_call
from service.core.store.suspensions.sampling import Sampling, draw
from service.core.store.tenants import EndedRun, TenantStore
from service.core.wiring import Wiring
from service.features.insights.facts import Candidate, PersonFact


async def keep_latest(redis: Any, key: str, members: Mapping[str, int], most: int, kept_ms: int) -> None:
    """Add members with their times, and forget the oldest beyond `most`."""
    async with redis.pipeline(transaction=True) as pipe:
        pipe.zadd(key, members)
        pipe.zremrangebyrank(key, 0, -most - 1)
        pipe.pexpire(key, kept_ms)
        await pipe.execute()


class DrillResults:
    """Whether one tenant's people approved the false calls of drills. A decision added again changes nothing."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys

    async def add(self, name: str, decisions: Sequence[tuple[PersonFact, int]]) -> None:
        members = {f"{fact.decision_id}|{int(fact.approved)}": at_ms for fact, at_ms in decisions}
        await keep_latest(self._redis, self._keys.drilled(name), members, 100, 180 * DAY_MS)

    async def read(self, names: Sequence[str]) -> dict[str, tuple[bool, ...]]:
        """Return for each person whether they approved each drill, the oldest first."""
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.zrange(self._keys.drilled(name), 0, -1)
            replies: list[Any] = await pipe.execute()
        return {
            name: tuple(text(member).endswith("|1") for member in members)
            for name, members in zip(names, replies, strict=True)
        }

    async def take_turn(self, every_ms: int) -> bool:
        """Return whether a drill is due: once in `every_ms`, however many clocks ask."""
        return bool(await self._redis.set(self._keys.next_drill, 1, nx=True, px=every_ms))


class Waiting(NamedTuple):
    """A call that was drawn; `at_ms` is when it was allowed or decided."""

    run_id: str
    seq: int
    at_ms: int


class SecondLook:
    """The calls of one tenant that wait for a second look, the oldest first."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self._sampling = Sampling(store)

    async def add_drawn(self, candidates: Sequence[Candidate], at_ms: int) -> None:
        """Draw candidates by HMAC of "<tenant> <run> <number of the event>", and add those that are drawn."""
        if not candidates:
            return
        key = await self._sampling.read_secret()
        named = ((call, f"{self._keys.tenant} {call.run_id} {call.seq}") for call in candidates)
        members = {name_call(call.run_id, call.seq): at_ms for call, name in named if draw(key, name, call.share)}
        if members:
            await self._redis.zadd(self._keys.second_look, members)

    async def list_waiting(self, limit: int) -> list[Waiting]:
        members: list[Any] = await self._redis.zrange(self._keys.second_look, 0, limit - 1, withscores=True)
        parts = ((text(member).rpartition(" "), int(at_ms)) for member, at_ms in members)
        return [Waiting(run_id, int(seq), at_ms) for (run_id, _, seq), at_ms in parts]

    async def count(self) -> int:
        return int(await self._redis.zcard(self._keys.second_look))

    async def waits(self, run_id: str, seq: int) -> bool:
        return await self._redis.zscore(self._keys.second_look, name_call(run_id, seq)) is not None

    async def remove(self, run_id: str, seq: int) -> None:
        await self._redis.zrem(self._keys.second_look, name_call(run_id, seq))


_WARNED = "warned"


class Recent(NamedTuple):
    """One decision; `look_ms` is None where it was not measured."""

    at_ms: int
    approved: bool
    look_ms: int | None


class RecentDecisions(NamedTuple):
    """A person's latest decisions, the oldest first, and the time of the one at which they were warned."""

    decisions: tuple[Recent, ...]
    warned_at_ms: int | None


class Recents:
    """The latest decisions of one tenant's people. A decision that is added again changes nothing."""

    def __init__(self, store: TenantStore) -> None:
        self._redis, self._keys = store.redis, store.keys
        self.drills = DrillResults(store)
        self.second_look = SecondLook(store)

    async def add(self, name: str, decisions: Sequence[tuple[PersonFact, int]]) -> None:
        members = {
            f"{fact.decision_id}|{int(fact.approved)}|{'' if fact.look_ms is None else fact.look_ms}": at_ms
            for fact, at_ms in decisions
        }
        await keep_latest(self._redis, self._keys.recent(name), members, 40, 30 * DAY_MS)

    async def warn(self, name: str, at_ms: int) -> None:
        """Warn a person from the decision of that time on."""
        await self._redis.zadd(self._keys.recent(name), {_WARNED: at_ms})

    async def read(self, name: str) -> RecentDecisions:
        members: list[Any] = await self._redis.zrange(self._keys.recent(name), 0, -1, withscores=True)
        pairs = [(text(member), int(at_ms)) for member, at_ms in members]
        parts = ((member.rsplit("|", 2), at_ms) for member, at_ms in pairs if member != _WARNED)
        decisions = tuple(Recent(at_ms, yes == "1", int(look) if look else None) for (_, yes, look), at_ms in parts)
        return RecentDecisions(decisions, next((at_ms for member, at_ms in pairs if member == _WARNED), None))


async def forget_drawn(store: TenantStore, run: EndedRun) -> list[tuple[str, ...]]:
    """Return the command that draws no erased call of a run for a second look."""
    drawn = [name_call(run.run_id, entry.seq) for entry in run.trail if "second_look" in entry.data]
    return [("ZREM", store.keys.second_look, *drawn)] if drawn else []


MOST = 50


class WaitingCall(NamedTuple):
    """A call that waits, and why this person cannot take its second look; an empty text if they can."""

    run_id: str
    seq: int
    call: SeenCall
    refusal: str


async def list_second_look(wiring: Wiring, by: Actor, most: int = MOST) -> list[WaitingCall]:
    """Return the calls that have waited longest, up to 50, those that the person can take first."""
    waiting = await wiring.part(Recents).second_look.list_waiting(most)
    calls = await asyncio.gather(*(_read(wiring, entry, by) for entry in waiting))
    return sorted((call for call in calls if call is not None), key=lambda call: bool(call.refusal))


async def _read(wiring: Wiring, waiting: Waiting, by: Actor) -> WaitingCall | None:
    try:
        call = await wiring.desk.find_seen_call(waiting.run_id, waiting.seq)
    except NotFound:
        await wiring.part(Recents).second_look.remove(waiting.run_id, waiting.seq)
        return None
    except Unreadable:
        return None
    refusal = ""
    try:
        check_second_looker(call.record, call.seen, by)
    except SaysoError as error:
        refusal = error.message
    return WaitingCall(waiting.run_id, waiting.seq, call, refusal)
