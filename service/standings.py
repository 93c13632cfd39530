"""Know whose word and whose key no longer count, without asking the store for every decision."""

from sayso.clock import now_ms
from sayso.rechecks import Standing
from service.memories import Memory
from service.store.people import People


class Standings:
    """Reviewers who were shut out and agents whose keys were revoked, as they stood less than a second ago."""

    def __init__(self, people: People) -> None:
        self._people = people
        self._memory = Memory(self._read)

    async def find(self, tenant: str) -> Standing:
        """Return whom to trust no longer. A name with a key that still holds is trusted."""
        return await self._memory.find(tenant)

    async def _read(self, tenant: str) -> Standing:
        keys = [key for key in await self._people.list_keys(tenant) if key.kind == "agent"]
        holding = {key.name for key in keys if key.holds(now_ms())}
        revoked = {key.name: 0 for key in keys if key.name not in holding}
        for key in keys:
            if key.name in revoked:
                revoked[key.name] = max(revoked[key.name], key.revoked_at_ms or key.ends_at_ms or 0)
        inactive = {one.name for one in await self._people.list_reviewers(tenant) if not one.active}
        return Standing(revoked, frozenset(inactive))
