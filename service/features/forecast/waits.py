"""How long decided items waited, the latest of each tool and of all tools."""

from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any, NamedTuple

from sayso.core.clock import DAY_MS
from service.core.store.connection.connecting import text
from service.core.store.tenants import StorePart
from service.features.control.store import keep_latest
from service.features.insights.facts import Facts, Step

ALL_TOOLS = ""
MOST_WAITS = 200
KEPT_MS = 30 * DAY_MS


class Wait(NamedTuple):
    """When an item began to wait, when a person decided it, and who; empty where that is unknown."""

    asked_ms: int
    decided_ms: int
    by: str


class Waits(StorePart):
    """The latest waits of one tenant. A wait that is added again changes nothing."""

    async def add(self, facts: Iterable[Facts]) -> None:
        """Add the waits of items that people decided."""
        members: dict[str, dict[str, int]] = defaultdict(dict)
        for fact in facts:
            by = next((person.name for person in reversed(fact.people) if not person.drill), "")
            for place, item in enumerate(fact.items):
                if item.step is Step.DECIDED:
                    name = sha256(f"{fact.commit} {place}".encode()).hexdigest()[:16]
                    member = f"{fact.at_ms - item.wait_ms}|{name}|{by}"
                    members[item.tool][member] = members[ALL_TOOLS][member] = fact.at_ms
        for tool, latest in members.items():
            await keep_latest(self._redis, self._keys.waits(tool), latest, MOST_WAITS, KEPT_MS)

    async def read(self, tool: str, since_ms: int) -> list[Wait]:
        """Return the waits of a tool that ended since then, the earliest first."""
        members: list[Any] = await self._redis.zrange(
            self._keys.waits(tool), since_ms, "+inf", byscore=True, withscores=True
        )
        parts = ((text(member).split("|", 2), int(at_ms)) for member, at_ms in members)
        return [Wait(int(asked_ms), at_ms, by) for (asked_ms, _name, by), at_ms in parts]
