"""The latest decisions of each person, and when they were last warned that they decide too fast."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from service.store.connection.connecting import text, translated
from service.store.insights.drills import DrillResults
from service.store.insights.facts import PersonFact
from service.store.insights.second_look import SecondLook
from service.store.tenants import TenantStore

_KEPT = 40
_KEPT_MS = 30 * DAY_MS
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
        """Add decisions, each with its time, and forget the oldest."""
        members = {
            f"{fact.decision_id}|{int(fact.approved)}|{'' if fact.look_ms is None else fact.look_ms}": at_ms
            for fact, at_ms in decisions
        }
        key = self._keys.recent(name)
        async with translated(), self._redis.pipeline(transaction=True) as pipe:
            pipe.zadd(key, members)
            pipe.zremrangebyrank(key, 0, -_KEPT - 1)
            pipe.pexpire(key, _KEPT_MS)
            await pipe.execute()

    async def warn(self, name: str, at_ms: int) -> None:
        """Warn a person from the decision of that time on."""
        async with translated():
            await self._redis.zadd(self._keys.recent(name), {_WARNED: at_ms})

    async def read(self, name: str) -> RecentDecisions:
        """Return a person's latest decisions."""
        async with translated():
            members: list[Any] = await self._redis.zrange(self._keys.recent(name), 0, -1, withscores=True)
        pairs = [(text(member), int(at_ms)) for member, at_ms in members]
        decisions = tuple(_parse(member, at_ms) for member, at_ms in pairs if member != _WARNED)
        return RecentDecisions(decisions, next((at_ms for member, at_ms in pairs if member == _WARNED), None))


def _parse(member: str, at_ms: int) -> Recent:
    _, approved, look = member.rsplit("|", 2)
    return Recent(at_ms, approved == "1", int(look) if look else None)
