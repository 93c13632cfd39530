"""Freeze and lift, and know what is frozen without asking the store each time.

A freeze holds everywhere within a second of being made: every process looks again at least that often. Whoever is about
to refuse something because of a freeze looks once more first, so that lifting one takes effect at once.
"""

from sayso.clock import monotonic_ms, new_id
from sayso.decisions import Actor
from sayso.errors import NotFound
from sayso.freezes import Freeze
from service.store.freezes import FreezeStore

_REMEMBERED_MS = 500


class Freezes:
    """What an admin has stopped."""

    def __init__(self, store: FreezeStore) -> None:
        self._store = store
        self._known: dict[str, tuple[tuple[Freeze, ...], float]] = {}

    async def known(self, tenant: str, fresh: bool = False) -> tuple[Freeze, ...]:
        """Return all freezes, the lifted ones included, as they stood less than a second ago, or stand now."""
        held = self._known.get(tenant)
        if held is not None and not fresh and monotonic_ms() < held[1]:
            return held[0]
        asked_at_ms = monotonic_ms()
        found = await self._store.load(tenant)
        self._known[tenant] = (found, asked_at_ms + _REMEMBERED_MS)
        return found

    async def in_force(self, tenant: str, *, fresh: bool = False) -> list[Freeze]:
        """Return what is frozen."""
        return [one for one in await self.known(tenant, fresh=fresh) if one.in_force]

    def last_known(self, tenant: str) -> list[Freeze]:
        """Return what was frozen when this process last looked, without looking."""
        return [one for one in self._known.get(tenant, ((), 0.0))[0] if one.in_force]

    async def freeze(self, tenant: str, scope: str, reason: str, by: Actor) -> Freeze:
        """Let nothing new start within the scope; what is frozen already stays as it is."""
        for one in await self.in_force(tenant, fresh=True):
            if one.scope == scope:
                return one
        now_ms = await self._store.now_ms()
        await self._store.forget_old(tenant, now_ms)
        made = Freeze(id=new_id("frz"), scope=scope, reason=reason, by=by.id, at_ms=now_ms)
        await self._store.save(tenant, made)
        await self.known(tenant, fresh=True)
        return made

    async def lift(self, tenant: str, freeze_id: str, by: Actor) -> Freeze:
        """End a freeze: what waited goes on, and its deadlines move by as long as it was frozen; raises `NotFound`."""
        found = next((one for one in await self.known(tenant, fresh=True) if one.id == freeze_id), None)
        if found is None:
            raise NotFound(f"There is no freeze {freeze_id!r}. List them to see what is frozen.")
        if not found.in_force:
            return found
        lifted = found.model_copy(update={"lifted_by": by.id, "lifted_at_ms": await self._store.now_ms()})
        await self._store.save(tenant, lifted)
        await self.known(tenant, fresh=True)
        return lifted

    async def note_settled(self, tenant: str, freeze: Freeze) -> None:
        """Note that all that a lifted freeze held was woken."""
        await self._store.save(tenant, freeze.model_copy(update={"settled": True}))
        await self.known(tenant, fresh=True)
