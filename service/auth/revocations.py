"""A cache of deactivated reviewers and revoked keys."""

from sayso.core.records.freezes import NamedKey, Revocations, find_revoked
from service.cache import Memory, Refresher
from service.store.people import People


class RevocationCache:
    """Deactivated reviewers and revoked keys of one tenant."""

    def __init__(self, people: People, refresher: Refresher) -> None:
        self._people = people
        self._memory = Memory(self._read, refresher)

    async def find(self, *, fresh: bool = False) -> Revocations:
        return await self._memory.find(fresh=fresh)

    async def _read(self) -> Revocations:
        keys = await self._people.list_keys()
        by_name: dict[str, tuple[NamedKey, ...]] = {}
        for key in keys:
            if key.kind == "agent":
                by_name[key.name] = (*by_name.get(key.name, ()), NamedKey(key.id, key.created_at_ms))
        inactive = {reviewer.name for reviewer in await self._people.list_reviewers() if not reviewer.active}
        return Revocations(find_revoked(keys), by_name, frozenset(inactive))
