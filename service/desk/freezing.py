"""Freeze and lift, and know what is frozen without asking the store each time.

A freeze holds everywhere within a second of being made: every process looks again at least that often. Whoever is about
to refuse something because of a freeze looks once more first, so that lifting one takes effect at once.

Time is frozen by the clocks alone, when the store's clock jumped; an admin says what becomes of it.
"""

from typing import Literal

from sayso.clock import new_id
from sayso.errors import Conflict, InvalidInput, NotFound
from sayso.records.decisions import Actor
from sayso.records.freezes import TIME, Freeze
from sayso.transitions.clock_jumps import JUMP_MS, ClockReading, describe_jump
from service.cache import Memory
from service.store.freezes import FreezeStore, Kept

HOLDS_WITHIN_MS = 1_000
"""From when on a freeze holds everywhere: for longer than this nobody starts anything by what they knew before it."""

_CLOCK = "clock"


class Freezes:
    """What is stopped: by an admin, or by a clock that does not believe the store's."""

    def __init__(self, store: FreezeStore) -> None:
        self._store = store
        self._memory = Memory(store.load)

    async def known(self, fresh: bool = False) -> tuple[Freeze, ...]:
        """Return all freezes, the lifted ones included, as they stood less than a second ago, or stand now."""
        return (await self._memory.find(fresh=fresh)).freezes

    async def in_force(self, *, fresh: bool = False) -> list[Freeze]:
        """Return what is frozen."""
        return [one for one in await self.known(fresh=fresh) if one.in_force]

    def last_known(self) -> list[Freeze]:
        """Return what was frozen when this process last looked, without looking."""
        return [one for one in self._last().freezes if one.in_force]

    def mark_ms(self) -> int:
        """Return up to when time was known to be right when this process last looked; 0 where no clock ever beat."""
        return self._last().mark_ms

    def sure_until_ms(self) -> int:
        """Return until when something may start by what this process last knew; 0 where it never looked."""
        at_ms = self._last().at_ms
        return at_ms + HOLDS_WITHIN_MS if at_ms else 0

    async def freeze(self, scope: str, reason: str, by: Actor) -> Freeze:
        """Let nothing new start within the scope; what is frozen already stays as it is.

        A pattern is refused with `InvalidInput`: taken for a name it would stop nothing.
        """
        if "*" in scope:
            raise InvalidInput(
                "A freeze names one tool or agent, not a pattern. Freeze each by its name, or everything."
            )
        for one in await self.in_force(fresh=True):
            if one.scope == scope:
                return one
        now_ms = await self._store.now_ms()
        await self._store.forget_old(now_ms)
        made = Freeze(id=new_id("frz"), scope=scope, reason=reason, by=by.id, at_ms=now_ms)
        await self._store.save(made)
        await self.known(fresh=True)
        return made

    async def unfreeze(self, freeze_id: str, by: Actor, deadlines: Literal["move", "pass"] = "move") -> Freeze:
        """End a freeze: what waited goes on, and its deadlines move by as long as it was frozen.

        After a freeze of time deadlines may also pass, because the clock is right. Raises `NotFound`, `Conflict`.
        """
        found = next((one for one in await self.known(fresh=True) if one.id == freeze_id), None)
        if found is None:
            raise NotFound(f"There is no freeze {freeze_id!r}. List them to see what is frozen.")
        if not found.in_force:
            return found
        if deadlines == "pass" and found.scope != TIME:
            raise Conflict("Deadlines always move by what an admin froze. Lift it without letting them pass.")
        return await self._unfreeze(found, by.id, deadlines)

    async def doubt_time(self, last_ms: int, now_ms: int) -> Freeze:
        """Freeze time from the last moment that was sure on; frozen already, it covers this jump too."""
        frozen = [one for one in await self.in_force(fresh=True) if one.scope == TIME]
        reason = describe_jump(last_ms, now_ms)
        made = Freeze(id=new_id("frz"), scope=TIME, reason=reason, by=_CLOCK, at_ms=last_ms, jumped_to_ms=now_ms)
        if frozen:
            made = frozen[0].model_copy(update={"jumped_to_ms": now_ms})
        await self._store.save(made)
        await self.known(fresh=True)
        return made

    async def notice_return(self, back_ms: int, now_ms: int) -> Freeze | None:
        """Lift a freeze of time when the store's clock has gone back by what it had jumped; return what was lifted."""
        for one in await self.in_force(fresh=True):
            if one.scope == TIME and abs((one.jumped_to_ms or 0) - one.at_ms - back_ms) <= JUMP_MS:
                return await self._unfreeze(one, _CLOCK, "pass", now_ms)
        return None

    async def keep_beat(self, beat: ClockReading, *, went_back: bool = False) -> None:
        """Keep a beat. The mark moves with it while time is not in doubt; back only where the clock was put back."""
        doubted = any(one.scope == TIME for one in await self.in_force(fresh=True))
        mark_ms = self.mark_ms()
        if not doubted:
            mark_ms = beat.at_ms if went_back else max(beat.at_ms, mark_ms)
        await self._store.save_beat(beat, mark_ms)
        await self.known(fresh=True)

    async def last_beat(self) -> ClockReading | None:
        """Return the last beat of any clock."""
        return await self._store.load_beat()

    async def note_settled(self, freeze: Freeze) -> None:
        """Note that all that a lifted freeze held was woken."""
        await self._store.save(freeze.model_copy(update={"settled": True}))
        await self.known(fresh=True)

    async def _unfreeze(
        self, freeze: Freeze, by: str, deadlines: Literal["move", "pass"], now_ms: int | None = None
    ) -> Freeze:
        now_ms = await self._store.now_ms() if now_ms is None else now_ms
        update = {"unfrozen_by": by, "unfrozen_at_ms": now_ms, "deadlines": deadlines}
        unfrozen = freeze.model_copy(update=update)
        await self._store.save(unfrozen, now_ms if freeze.scope == TIME else None)
        await self.known(fresh=True)
        return unfrozen

    def _last(self) -> Kept:
        return self._memory.last() or Kept()
